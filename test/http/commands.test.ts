/** These tests run the commands an operator types, as processes. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort } from '../../bench/common/processes.ts';
import { loadNative } from '../../src/engine/addon.ts';
import { type HostileUpstream, startHostileUpstream, wholeAnswer } from '../faults/hostile-upstream.ts';
import { MODEL, needsWeights } from '../model/gateway.ts';
import { type Gateway, json, startGateway, until } from './harness.ts';
import { refusesConnections, serve } from './served.ts';

const ROOT = new URL('../../', import.meta.url).pathname;

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

test('the quickstart reaches a gateway with keys, on IPv6, at a free port', async (t) => {
  if (!needsWeights(t)) return;
  if (!Object.values(networkInterfaces()).some((own) => own?.some(({ address }) => address === '::1')))
    return t.skip('this machine has no IPv6');
  const env = { ...process.env, SVC_PORT: '0', SVC_HOST: '::', SVC_API_KEY: 'one,two' };
  const child = spawn(process.execPath, ['scripts/quickstart.mjs', '--once'], { cwd: ROOT, env });
  const text = await output(child);
  assert.equal(child.exitCode, 0, text);
  assert.match(text, /curl -H 'Authorization: Bearer <key>' http:\/\/\[::1\]:\d+\/v1/);
});

test('a quickstart that fails leaves no gateway behind', async (t) => {
  if (!needsWeights(t)) return;
  const port = await freePort();
  const env = { ...process.env, SVC_PORT: String(port), SVC_MODEL_ALLOW: 'cjk' };
  const child = spawn(process.execPath, ['scripts/quickstart.mjs', '--once'], { cwd: ROOT, env });
  const text = await output(child);
  assert.equal(child.exitCode, 1, text);
  assert.match(text, /The sample was refused/);
  await refusesConnections(port);
});

test('npm start says where it listens, answers there, and ends on SIGTERM', async (t) => {
  const startedAt = Date.now();
  await using served = await serve();
  t.diagnostic(`start to first /health: ${Date.now() - startedAt} ms`);
  served.child.kill('SIGTERM');
  await served.ended;
  assert(served.log().includes(`listens on ${served.base}`), served.log());
  assert.match(served.log(), /device=cuda|models run on the CPU/i, 'the log says where models run, and why');
  assert.match(served.log(), new RegExp(`cpu=${loadNative().info.cpuLevel} `), 'and with which instructions');
  assert.equal(served.child.exitCode, 0);
});

test('a level of instructions that cannot be used stops the start with a sentence that names it', () => {
  // No build has this level where it computes on AMX tiles, and no other processor has those.
  const level = loadNative().info.cpuLevel === 'amx' ? 'avx2_vnni' : 'amx';
  const env = { ...process.env, SVC_CPU: level, SVC_PORT: '0' };
  const { status, stderr } = spawnSync(process.execPath, ['dist/main.js', 'serve'], { cwd: ROOT, env });
  assert.equal(status, 2);
  assert.match(
    stderr.toString(),
    new RegExp(`^voxgate: SVC_CPU cannot be "${level}": This (build|processor) .*: .*\\b(avx|sse|amx|neon)`),
  );
});

test(`SVC_MODEL_PRELOAD loads ${MODEL} before any request asks for it`, async (t) => {
  if (!needsWeights(t)) return;
  await using served = await serve({ SVC_MODEL_PRELOAD: MODEL });
  const loaded = async () => (await json(await fetch(`${served.base}/v1/models/${MODEL}`))).loaded;
  await until('it is loaded', loaded, 20_000);
});

test('models that cannot be preloaded are lines in the log, and the gateway still serves', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-commands-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  await using served = await serve({
    ...{ SVC_MODEL_PRELOAD: 'cjk,european', SVC_MODEL_DIR: dir, SVC_MODEL_DOWNLOAD: 'off' },
  });
  for (const id of ['cjk', 'european'])
    await until(`the line of ${id}`, () => served.log().includes(`error cannot preload ${id}: `), 20_000);
  assert.match(
    served.log(),
    /SVC_MODEL_DOWNLOAD is off: run voxgate models pull \S+, which puts them into \//,
  );
  assert.match(served.log(), /error no speech model is in .*: run voxgate models pull multilingual-small$/m);
  assert.equal((await fetch(`${served.base}/health`)).status, 200);
});

test('folders that cannot be written are named at the start, with what to do', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-commands-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'file');
  writeFileSync(file, '');
  await using served = await serve({
    ...{ SVC_OBS_ACCESS_LOG_ENABLED: '1', SVC_OBS_LOG_DIR: join(file, 'logs') },
    ...{ SVC_OBS_PAYLOAD_ENABLED: '1', SVC_OBS_PAYLOAD_DIR: file, SVC_CRASH_DIR: dir },
  });
  const lines = () => served.log().match(/\w+ folder of .*/gm) ?? [];
  await until('both are named', () => lines().length === 2, 20_000);
  assert.deepEqual(lines(), [
    `error folder of access log: ${file} is not a folder: set SVC_OBS_LOG_DIR to one`,
    `error folder of captures: ${file} is not a folder: set SVC_OBS_PAYLOAD_DIR to one`,
  ]);
  assert.equal((await fetch(`${served.base}/health`)).status, 200);
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

test('an address that this machine does not have stops the start with what to change', () => {
  // RFC 5737 keeps the address for documents.
  const env = { ...process.env, SVC_HOST: '192.0.2.1', SVC_API_KEY: 'key' };
  const { status, stderr } = spawnSync(process.execPath, ['dist/main.js', 'serve'], {
    ...{ cwd: ROOT, env, encoding: 'utf8', timeout: 20_000 },
  });
  assert.equal(status, 1, stderr);
  assert.match(
    stderr,
    /^voxgate: Cannot listen on 192\.0\.2\.1:\d+: this machine has no such address; SVC_HOST chooses another$/m,
  );
});

interface Ended {
  status: number | null;
  stdout: string;
  stderr: string;
}

/** The command runs in a process of its own, because the gateway that it asks runs in this one. */
async function replay(folder: string, base: string): Promise<Ended> {
  const child = spawn(process.execPath, ['dist/main.js', 'replay', folder, '--url', base], { cwd: ROOT });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (data) => (stdout += data));
  child.stderr.on('data', (data) => (stderr += data));
  const [status] = await once(child, 'close');
  return { status, stdout, stderr };
}

/** Starts a gateway that has captured one chat request, and gives the folder of that capture. */
async function capturedChat(upstream: HostileUpstream): Promise<Gateway & { folder: string }> {
  const env = { SVC_LLM_BACKEND_URL: upstream.url, SVC_OBS_PAYLOAD_ENABLED: '1' };
  const gateway = await startGateway({ env });
  const ask = {
    ...{ method: 'POST', body: '{"model":"m"}' },
    headers: { 'X-Request-ID': 'one', 'Content-Type': 'application/json' },
  };
  await (await fetch(`${gateway.base}/v1/chat/completions`, ask)).text();
  const { payloadDir } = gateway.config.observability;
  const folder = () => join(payloadDir, readdirSync(payloadDir)[0] ?? '', 'one');
  await until('the capture', () => existsSync(payloadDir) && existsSync(join(folder(), 'meta.json')));
  return Object.assign(gateway, { folder: folder() });
}

test('voxgate replay exits with 0 for the same answer and with 1 for another one', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave(wholeAnswer('one answer'));
  await using gateway = await capturedChat(upstream);
  const same = await replay(gateway.folder, gateway.base);
  assert.deepEqual([same.status, same.stderr], [0, '']);
  assert.match(
    same.stdout,
    /^The same answer\nstatus {3}200 then, 200 now\nlatency {2}[\d.]+ ms then, [\d.]+ ms now\n$/,
  );
  assert.equal(upstream.heads.length, 2, 'it was asked again');

  upstream.behave(wholeAnswer('one other'));
  const other = await replay(gateway.folder, gateway.base);
  assert.deepEqual([other.status, other.stderr], [1, '']);
  assert.match(
    other.stdout,
    /^The bodies differ from byte 4 on \(10 bytes then, 9 now\)\nstatus {3}200 then/,
  );

  upstream.behave(wholeAnswer('one answer', '400 Bad Request'));
  const refused = await replay(gateway.folder, gateway.base);
  assert.deepEqual([refused.status, refused.stderr], [1, '']);
  assert.match(refused.stdout, /^Status 200 then, 400 now\n/);
});

test('voxgate replay without a comparison prints one line on standard error, and its status is not 0', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave(wholeAnswer('one answer'));
  await using gateway = await capturedChat(upstream);
  const assertFailed = async (ended: Promise<Ended>, why: RegExp) => {
    const { status, stdout, stderr } = await ended;
    assert.notEqual(status, 0);
    assert.equal(stdout, '');
    assert.match(stderr, /^voxgate: Cannot replay [^\n]+\n$/);
    assert.match(stderr, why);
  };
  await assertFailed(
    replay(gateway.folder, 'http://127.0.0.1:9'),
    /no gateway answers at http:\/\/127\.0\.0\.1:9:/,
  );
  await assertFailed(
    replay(join(gateway.folder, 'none'), gateway.base),
    /meta\.json: no such file or directory/,
  );
  writeFileSync(join(gateway.folder, 'meta.json'), '{"method": "POST"}');
  await assertFailed(replay(gateway.folder, gateway.base), /is not a capture/);
});

// npx links the command once and keeps the link, so the linked file must be executable as the build makes it.
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
    for (const command of ['serve', 'models', 'replay'])
      assert.match(stdout, new RegExp(`^\\s+${command}`, 'm'));
  });

test(`voxgate models list shows ${MODEL}`, () => {
  const { stdout } = spawnSync(process.execPath, ['dist/main.js', 'models', 'list'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  assert.match(stdout, new RegExp(MODEL));
});
