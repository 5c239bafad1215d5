/** The commands an operator types, as processes. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { MODEL, needsWeights } from '../model/gateway.ts';

const ROOT = new URL('../../', import.meta.url).pathname;

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, 'close');
  return port;
}

async function output(child: ChildProcess): Promise<string> {
  let text = '';
  child.stdout?.on('data', (data) => (text += data));
  child.stderr?.on('data', (data) => (text += data));
  await once(child, 'close');
  return text;
}

test('npm run quickstart -- --once prints the text, the real-time factor and the addresses', async (t) => {
  if (!needsWeights(t)) return;
  const env = { ...process.env, SVC_PORT: String(await freePort()) };
  const child = spawn(process.execPath, ['scripts/quickstart.mjs', '--once'], { cwd: ROOT, env });
  const text = await output(child);
  assert.equal(child.exitCode, 0, text);
  assert.match(text, /ask not what your country can do for you/);
  assert.match(text, /real-time factor \d+\.\d+/);
  assert.match(text, /curl http:\/\/127\.0\.0\.1:\d+\/v1\/audio\/transcriptions/);
});

test('npm start answers /health within a second, and leaves on SIGTERM', async (t) => {
  const port = await freePort();
  const env = { ...process.env, SVC_PORT: String(port) };
  const startedAt = Date.now();
  const child = spawn(process.execPath, ['dist/main.js', 'serve'], { cwd: ROOT, env });
  const done = output(child);
  for (;;) {
    if (
      await fetch(`http://127.0.0.1:${port}/health`).then(
        (r) => r.ok,
        () => false,
      )
    )
      break;
    assert(Date.now() - startedAt < 20_000, 'never answered');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  t.diagnostic(`start to first /health: ${Date.now() - startedAt} ms`);
  child.kill('SIGTERM');
  const log = await done;
  assert.match(log, /listens on http:\/\/127\.0\.0\.1:/);
  assert.match(log, /device=cuda|models run on the CPU/i, 'the log says where models run, and why');
  assert.equal(child.exitCode, 0);
});

for (const [name, value, sentence] of [
  ['SVC_PORT', 'http', /^voxgate: SVC_PORT cannot be "http"/],
  ['SVC_MODEL_PRELOAD', 'multilingual-bse', /^voxgate: SVC_MODEL_PRELOAD cannot hold "multilingual-bse"/],
  ['SVC_MODEL_ALIASES', 'x=nope', /^voxgate: SVC_MODEL_ALIASES cannot hold "x=nope"/],
] as const) {
  test(`${name}=${value} stops the start with one sentence`, () => {
    const env = { ...process.env, SVC_PORT: '0', [name]: value };
    const { status, stderr } = spawnSync(process.execPath, ['dist/main.js', 'serve'], {
      ...{ cwd: ROOT, env, encoding: 'utf8', timeout: 20_000 },
    });
    assert.equal(status, 2, stderr);
    assert.match(stderr, sentence);
    assert.equal(stderr.trim().split('\n').length, 1);
  });
}

// npx links the command once and keeps the link: what it links to has to come out of the build executable.
for (const [name, command, ...args] of [
  ['as npx finds it', 'npx', 'voxgate'],
  ['as a program', 'dist/main.js'],
] as const)
  test(`voxgate --help, ${name}, shows the commands`, () => {
    const { status, stdout, stderr } = spawnSync(command, [...args, '--help'], {
      cwd: ROOT,
      encoding: 'utf8',
    });
    assert.equal(status, 0, stderr);
    for (const command of ['serve', 'models']) assert.match(stdout, new RegExp(`^\\s+${command}`, 'm'));
  });

test(`voxgate models list shows ${MODEL}`, () => {
  const { stdout } = spawnSync(process.execPath, ['dist/main.js', 'models', 'list'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  assert.match(stdout, new RegExp(MODEL));
});
