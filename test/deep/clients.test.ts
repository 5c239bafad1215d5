/**
 * The blocks of docs/clients.md in JavaScript and Python do what the page says, as it stands, against a real gateway.
 * Its blocks of shell are in documents.test.ts.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { nodeOfPackages, PACKAGES } from '../clients/npm.ts';
import { pythonBin } from '../clients/python.ts';
import { startGateway } from '../http/harness.ts';
import { JFK, needsWeights, plain, startRealGateway } from '../model/gateway.ts';
import { until } from '../until.ts';
import { chatLacks, startChat } from '../upstreams/start.ts';
import { type CodeBlock, codeBlocks } from './document-commands.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const ADDRESS = 'http://127.0.0.1:8000';
/** Blocks with this model chat; the others transcribe. */
const CHAT_MODEL = 'llama3.2';
const LIMIT_MS = 120_000;

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const page = read('docs/clients.md');
const blocks = codeBlocks(page).filter(({ language }) => language === 'js' || language === 'python');

const dir = mkdtempSync(join(tmpdir(), 'voxgate-clients-'));
let node: string;
let python: string;
let pythonOfFrameworks: string;
before(async () => {
  python = join(await pythonBin(), 'python');
  pythonOfFrameworks = join(await pythonBin('frameworks'), 'python');
  node = nodeOfPackages();
  symlinkSync(join(PACKAGES, 'node_modules'), join(dir, 'node_modules'));
  cpSync(JFK, join(dir, 'speech.mp3'));
});
after(() => rmSync(dir, { recursive: true, force: true }));

/** Runs a block where speech.mp3 and the packages are, and gives what it prints. */
async function print({ section, language, code }: CodeBlock, base: string): Promise<string> {
  const here = code.replaceAll(ADDRESS, base).replace(CHAT_MODEL, 'tiny');
  assert(here.includes(base));
  const env = { ...process.env, LITELLM_LOCAL_MODEL_COST_MAP: 'True' };
  const options = { cwd: dir, timeout: LIMIT_MS, env };
  if (language === 'python') {
    const interpreter = section.startsWith('OpenAI') ? python : pythonOfFrameworks;
    return (await promisify(execFile)(interpreter, ['-c', here], options)).stdout;
  }
  return (await promisify(execFile)(node, ['--input-type=module', '-e', here], options)).stdout;
}

test('the page has blocks in both languages', () => {
  assert.deepEqual(new Set(blocks.map(({ language }) => language)), new Set(['js', 'python']));
});

test('the pages name the versions that are tested', () => {
  const pinned = new Map<string, string>();
  for (const folder of ['npm', 'talks'])
    for (const [name, version] of Object.entries<string>(
      JSON.parse(read(`test/clients/${folder}/package.json`)).dependencies,
    ))
      pinned.set(`${name} npm`, version);
  for (const folder of ['clients/frameworks', 'deep', 'clients'])
    for (const line of read(`test/${folder}/requirements.txt`).split('\n')) {
      const [name = '', version = ''] = line.replace(/\[.*\]/, '').split('==');
      pinned.set(`${name} PyPI`, version);
    }
  for (const named of [page, read('docs/conversations.md')]) {
    const rows = [...named.matchAll(/^\| [^|]* \| `(\S+)` \((npm|PyPI)\) +\| (\S+) +\|$/gm)];
    assert(rows.length >= 6);
    for (const [row, name, registry, version] of rows)
      assert.equal(version, pinned.get(`${name} ${registry}`), row);
  }
});

const OF_THE_PACKAGE = ['openai-node', 'realtime', 'speakers'].map((name) => `test/clients/${name}.test.ts`);

test('the newest OpenAI package of npm passes the tests of the one that runs on the oldest Node', async () => {
  const args = ['--import', 'tsx', '--import', './test/clients/npm/resolve.mjs', '--test'];
  const only = ['--test-name-pattern', 'npm|SDK', '--test-reporter', 'tap'];
  const options = { cwd: ROOT, timeout: LIMIT_MS };
  const { stdout } = await promisify(execFile)(node, [...args, ...only, ...OF_THE_PACKAGE], options);
  assert.match(stdout, /^# pass [1-9]/m);
});

test('the types of the newest OpenAI package of npm fit what the tests send and read', async () => {
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  const { stdout } = await promisify(execFile)(tsc, ['-p', PACKAGES, '--listFiles'], { cwd: ROOT });
  assert.match(stdout, /test\/clients\/npm\/node_modules\/openai\/index\.d\.mts/);
  for (const file of OF_THE_PACKAGE) assert(stdout.includes(file), file);
});

const isChat = ({ code }: CodeBlock) => code.includes(CHAT_MODEL);

/** It is no request that a busy gateway could refuse: it waits for the slot. */
const isLive = ({ code }: CodeBlock) => code.includes('streamTranscribe');
const says = /ask not what your country can do for you/;

for (const block of blocks.filter((one) => !isChat(one) && !isLive(one))) {
  test(`${block.section}: its ${block.language} block waits for a busy gateway, then transcribes`, async (t) => {
    if (!needsWeights(t)) return;
    await using gateway = await startRealGateway();
    const statuses: number[] = [];
    gateway.app.server.on('request', (_req, res) => res.on('finish', () => statuses.push(res.statusCode)));
    const hold = gateway.app.slot.take('llm', 'somebody');
    const printing = print(block, gateway.base);
    let isOver = false; // so that a block that fails before it asks is not waited for
    printing.catch(() => undefined).then(() => (isOver = true));
    await until('it was refused', () => isOver || statuses.length > 0, LIMIT_MS);
    hold[Symbol.dispose]();
    assert.match(plain(await printing), says);
    assert.deepEqual(statuses, [503, 200]);
  });
}

for (const block of blocks.filter(isLive)) {
  test(`${block.section}: its ${block.language} block transcribes live`, async (t) => {
    if (!needsWeights(t)) return;
    await using gateway = await startRealGateway();
    assert.match(plain(await print(block, gateway.base)), says);
  });
}

for (const block of blocks.filter(isChat)) {
  test(`${block.section}: its ${block.language} block chats`, async (t) => {
    const lacks = chatLacks();
    if (lacks !== null) return t.skip(lacks);
    await using chat = await startChat();
    await using gateway = await startGateway({ env: { SVC_LLM_BACKEND_URL: chat.base } });
    assert.match(await print(block, gateway.base), /\S/);
    assert.deepEqual(
      gateway.exchanges.map(({ path, status }) => [path, status]),
      [['/v1/chat/completions', 200]],
    );
  });
}
