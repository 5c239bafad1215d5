/** A gateway that listens at a Unix socket, as `SVC_HOST=unix:/run/voxgate.sock` says. These tests run real processes. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { askFor } from '../../src/cli/transcribe-client.ts';
import { ConfigError, readConfig } from '../../src/config/config.ts';
import { program } from '../program.ts';
import { until } from '../until.ts';
import { toneWav } from './harness.ts';
import { childOf, SCRIPTED, SUPERVISED } from './served.ts';

const LIMIT_MS = 20_000;
const ROOT = new URL('../../', import.meta.url).pathname;
const skip = process.platform === 'win32' && 'Windows has no such sockets';

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-socket-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

function start(t: TestContext, path: string, settings: NodeJS.ProcessEnv = {}, command = SCRIPTED) {
  const own = {
    SVC_HOST: `unix:${path}`,
    SVC_CRASH_DIR: join(path, '..', 'crashes'),
    SVC_OBS_LOG_DIR: '-',
    SVC_MAX_WAIT_SEC: '10',
  };
  const env = { ...process.env, ...own, ...settings };
  const child = spawn(process.execPath, command, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (said += data));
  return { child, ended: once(child, 'close'), log: () => said };
}

async function ask(path: string, url: string, headers = {}): Promise<{ status: number; body: string }> {
  const [response] = (await once(
    request({ socketPath: path, path: url, headers, agent: false }).end(),
    'response',
  )) as [IncomingMessage];
  return { status: response.statusCode ?? 0, body: await text(response) };
}

const serves = (path: string) =>
  until(
    'it serves',
    () =>
      ask(path, '/ready').then(
        ({ status }) => status === 200,
        () => false,
      ),
    LIMIT_MS,
    25,
  );

test('a gateway at a Unix socket serves whom its file lets, and takes it away at the end', {
  skip,
  timeout: 6 * LIMIT_MS,
}, async (t) => {
  const path = join(folder(t), 'gateway.sock');
  const { child, ended, log } = start(t, path, { SVC_SOCKET_MODE: '600', SVC_TRUST_PROXY: 'loopback' });
  await serves(path);
  assert(log().includes(`listens on unix:${path}`), log());
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal((await ask(path, '/v1/models')).status, 200);
  assert.equal((await ask(path, '/v1/models', { Host: 'localhost' })).status, 200);
  assert.equal((await ask(path, '/v1/models', { Host: 'evil.example' })).status, 403, 'as on loopback');
  await ask(path, '/v1/models', { 'X-Request-ID': 'who-peer' });
  await ask(path, '/v1/models', { 'X-Request-ID': 'who-forwarded', 'X-Forwarded-For': '203.0.113.7' });
  const lines = () =>
    log()
      .split('\n')
      .filter((line) => line.startsWith('{') && line.includes('"who-'));
  await until('both are in the access log', () => lines().length === 2);
  assert.deepEqual(
    lines().map((line) => JSON.parse(line).client_ip),
    ['127.0.0.1', '203.0.113.7'],
  );

  const asked = { base: `unix:${path}`, key: undefined, signal: AbortSignal.timeout(LIMIT_MS) };
  const answer = await askFor({ ...asked, audio: new Blob([toneWav(0.3)]), fields: {} });
  assert.equal(JSON.parse(answer).text, 'Hello there.');
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null], log());
  assert(!existsSync(path));
});

test('the commands reach a gateway at a Unix socket', { skip, timeout: 6 * LIMIT_MS }, async (t) => {
  const dir = folder(t);
  const path = join(dir, 'gateway.sock');
  const { log } = start(t, path, {
    SVC_OBS_PAYLOAD_ENABLED: '1',
    SVC_OBS_PAYLOAD_DIR: join(dir, 'payloads'),
  });
  await serves(path);
  const clip = join(dir, 'clip.wav');
  writeFileSync(clip, toneWav(0.3));
  const command = async (...args: string[]) => {
    const env = { ...process.env, SVC_HOST: `unix:${path}` };
    const child = spawn(process.execPath, [...program('test/http/scripted-serve.ts'), ...args], {
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [out, err, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ]);
    return { out, err, code };
  };
  const heard = await command('transcribe', '--server', `unix:${path}`, clip);
  assert.deepEqual([heard.out.trim(), heard.code], ['Hello there.', 0], heard.err);
  const live = await command('live', '--raw', '16000');
  assert.doesNotMatch(live.err, /nothing answers|getaddrinfo|ENOENT/, live.err);
  await until('the connection of `live` is in the access log', () => log().includes('"/v1/realtime'));
  const found = /"request_id":"([^"]+)","method":"POST","path":"\/v1\/audio\/transcriptions"/.exec(log());
  const day = new Date();
  const date = `${day.getFullYear()}-${`${day.getMonth() + 1}`.padStart(2, '0')}-${`${day.getDate()}`.padStart(2, '0')}`;
  const replayed = await command('replay', join(dir, 'payloads', date, found?.[1] ?? ''));
  assert.match(replayed.out, /status {3}200 then, 200 now/, replayed.err);
});

test('what a dead server has left is removed, and nothing else is', {
  skip,
  timeout: 6 * LIMIT_MS,
}, async (t) => {
  const path = join(folder(t), 'gateway.sock');
  const killed = start(t, path);
  await serves(path);
  const second = start(t, path);
  assert.deepEqual(await second.ended, [1, null]);
  assert.match(second.log(), /Cannot listen on \/.*: another server listens there; SVC_HOST chooses another/);
  assert.equal((await ask(path, '/health')).status, 200, 'the first one has its socket');
  killed.child.kill('SIGKILL');
  await killed.ended;
  assert(existsSync(path));
  const next = start(t, path);
  await serves(path);
  next.child.kill('SIGTERM');
  await next.ended;
  writeFileSync(path, 'precious');
  const third = start(t, path);
  assert.deepEqual(await third.ended, [1, null]);
  assert.match(third.log(), /what is there is no socket, and stays/);
  assert(statSync(path).isFile());
});

test('a supervisor keeps a Unix socket from one server to the next', {
  skip: process.platform !== 'linux' && 'the children of a process are found in /proc',
  timeout: 6 * LIMIT_MS,
}, async (t) => {
  const path = join(folder(t), 'gateway.sock');
  const { child, ended, log } = start(t, path, {}, SUPERVISED);
  await serves(path);
  assert.equal(statSync(path).mode & 0o777, 0o660);
  for (const end of [
    () => child.kill('SIGUSR2'),
    () => process.kill(childOf(child.pid ?? 0), 'SIGKILL'),
    () => child.kill('SIGUSR2'),
  ]) {
    const old = childOf(child.pid ?? 0);
    end();
    await until('another server', () => ![0, old].includes(childOf(child.pid ?? 0)), LIMIT_MS);
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(path, '/v1/models')));
    assert(answers.every(({ status }) => status === 200));
  }
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null], log());
  assert(!existsSync(path));
});

test('a path alone, a relative one and a mode that is none are refused', () => {
  for (const host of ['/run/voxgate.sock', 'unix:voxgate.sock', `unix:/${'x'.repeat(200)}`])
    assert.throws(() => readConfig({ HOME: '/', SVC_HOST: host }), ConfigError);
  assert.throws(() => readConfig({ HOME: '/', SVC_SOCKET_MODE: 'rw' }), /SVC_SOCKET_MODE .*octal/);
  const { config, warnings } = readConfig({ HOME: '/', SVC_HOST: 'unix:/run/x.sock', SVC_PORT: '8000' });
  assert.deepEqual([config.host, config.socketMode, warnings], ['unix:/run/x.sock', 0o660, []]);
});
