/** A gateway that is told to stop takes nothing new and ends what it has begun. These tests stop real processes. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { head, startHostileUpstream } from '../faults/hostile-upstream.ts';
import { until } from '../until.ts';
import { form, json, toneWav } from './harness.ts';
import { holdsSlot, refusesConnections, SCRIPTED, type Served, serve } from './served.ts';

/** The machine may be busy, so a process gets this long for what it does in less than a second. */
const LIMIT_MS = 20_000;

interface Scene extends Served {
  /** The transcriptions with `prompt: until` end when this file exists. */
  release(): void;
  /** Sends a transcription that ends after `release`, and waits until it holds the slot. */
  transcription(fields?: Record<string, string>): Promise<{ answer: Promise<Response> }>;
  /** Opens a connection that collects what it receives. */
  open(): Promise<Connection>;
  dir: string;
}

interface Connection {
  socket: Socket;
  received(): string;
  closed: Promise<unknown>;
}

async function begin(t: TestContext, settings: NodeJS.ProcessEnv = {}): Promise<Scene> {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-drain-test-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const own = {
    SVC_TMP_DIR: dir,
    SVC_OBS_LOG_DIR: join(dir, 'logs'),
    SVC_OBS_PAYLOAD_DIR: join(dir, 'payloads'),
  };
  const served = await serve({ ...own, ...settings }, SCRIPTED);
  const released = join(dir, 'released');
  return Object.assign(served, {
    dir,
    release: () => writeFileSync(released, ''),
    async transcription(fields = {}) {
      const body = form(toneWav(1), { prompt: `until ${released}`, ...fields });
      const answer = fetch(`${served.base}/v1/audio/transcriptions`, { method: 'POST', body });
      answer.catch(() => undefined);
      await until('it holds the slot', () => holdsSlot(served.base), LIMIT_MS);
      return { answer }; // in an object, because a promise for a promise waits for both
    },
    async open() {
      const socket = connect(served.port, '127.0.0.1');
      let text = '';
      socket.on('data', (data) => (text += data));
      socket.on('error', () => undefined);
      const closed = new Promise((resolve) => socket.once('close', resolve));
      await once(socket, 'connect');
      return { socket, closed, received: () => text };
    },
  });
}

const request = (line: string, body = '') =>
  `${line} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

const REFUSED = /^HTTP\/1\.1 503 [\s\S]*\r\nConnection: close\r\n[\s\S]*"code":"shutting_down"/i;

test('a gateway that is told to stop is not ready, takes nothing new, and ends what it has begun', async (t) => {
  await using scene = await begin(t, { SVC_OBS_PAYLOAD_ENABLED: '1', SVC_OBS_ACCESS_LOG_ENABLED: '1' });
  const ready = await fetch(`${scene.base}/ready`);
  assert.deepEqual([ready.status, await json(ready)], [200, { status: 'ready' }]);
  const [idle, probe, chat] = await Promise.all([scene.open(), scene.open(), scene.open()]);
  idle.socket.write(request('GET /health'));
  await until('the answer', () => idle.received().includes('"status":"ok"'), LIMIT_MS);
  const running = await scene.transcription();

  scene.child.kill('SIGTERM');
  await refusesConnections(scene.port);
  await idle.closed;
  probe.socket.write(request('GET /ready'));
  chat.socket.write(request('POST /v1/chat/completions', '{"model":"m"}'));
  await Promise.all([probe.closed, chat.closed]);
  assert.match(probe.received(), REFUSED);
  assert.match(chat.received(), REFUSED);
  assert.doesNotMatch(chat.received(), /X-Should-Retry/i, 'another gateway, or the next start, may serve it');
  assert.equal(scene.child.exitCode, null, 'it waits for the transcription');

  scene.release();
  const ended = await running.answer;
  assert.deepEqual([ended.status, ended.headers.get('connection')], [200, 'close']);
  assert.equal((await json(ended)).text, 'Hello there.');
  await scene.ended;
  assert.equal(scene.child.exitCode, 0, scene.log());
  const id = ended.headers.get('x-request-id') ?? '';
  const [log = ''] = readdirSync(join(scene.dir, 'logs'));
  assert(readFileSync(join(scene.dir, 'logs', log), 'utf8').includes(id), 'its line is in the access log');
  const [day = ''] = readdirSync(join(scene.dir, 'payloads'));
  assert(existsSync(join(scene.dir, 'payloads', day, id, 'meta.json')), 'its capture is on disk');
});

test('a stream that is not over in time ends with an error event, and the gateway exits with 0', async (t) => {
  await using scene = await begin(t, { SVC_DRAIN_SEC: '0.3' });
  const running = await scene.transcription({ stream: 'true' });
  const toldAt = Date.now();
  scene.child.kill('SIGTERM');
  const events = await (await running.answer).text();
  assert(Date.now() - toldAt >= 300, 'it had its time');
  assert.match(events, /event: error\ndata: \{[^\n]*"code":"shutting_down"[^\n]*\}\n\n$/);
  await scene.ended;
  assert.equal(scene.child.exitCode, 0, scene.log());
});

test('an answer of an upstream that is under way reaches its end', async (t) => {
  await using upstream = await startHostileUpstream();
  let finish = () => undefined as unknown;
  upstream.behave((socket) => {
    socket.write(`${head('200 OK', { 'Content-Type': 'text/event-stream' })}data: one\n\n`);
    finish = () => socket.end('data: two\n\n');
  });
  await using scene = await begin(t, { SVC_LLM_BACKEND_URL: upstream.url });
  const headers = { 'Content-Type': 'application/json' };
  const response = await fetch(`${scene.base}/v1/chat/completions`, { method: 'POST', headers, body: '{}' });
  scene.child.kill('SIGTERM');
  await refusesConnections(scene.port);
  finish();
  assert.equal(await response.text(), 'data: one\n\ndata: two\n\n');
  await scene.ended;
  assert.equal(scene.child.exitCode, 0, scene.log());
});

test('an upload that is under way may end, and is transcribed', async (t) => {
  await using scene = await begin(t);
  const encoded = new Request('http://localhost', { method: 'POST', body: form(toneWav(1)) });
  const body = Buffer.from(await encoded.arrayBuffer());
  const { socket, received, closed } = await scene.open();
  const half = body.length >> 1;
  socket.write(
    'POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\n' +
      `Content-Type: ${encoded.headers.get('content-type')}\r\nContent-Length: ${body.length}\r\n\r\n`,
  );
  socket.write(body.subarray(0, half));
  const onDisk = () =>
    readdirSync(scene.dir, { recursive: true }).some((path) => /voxgate-[\w-]+\/[\w-]+$/.test(String(path)));
  await until('the upload is on disk', onDisk, LIMIT_MS);
  scene.child.kill('SIGTERM');
  await refusesConnections(scene.port);
  socket.write(body.subarray(half));
  await closed;
  assert.match(
    received(),
    /^HTTP\/1\.1 200 [\s\S]*\r\nConnection: close\r\n[\s\S]*\{"text":"Hello there\."[\s\S]*\}$/i,
  );
  await scene.ended;
  assert.equal(scene.child.exitCode, 0, scene.log());
});

test('with SVC_DRAIN_SEC=0 a running request is stopped at once', async (t) => {
  await using scene = await begin(t, { SVC_DRAIN_SEC: '0' });
  const running = await scene.transcription();
  scene.child.kill('SIGINT');
  const answer = await running.answer;
  assert.deepEqual([answer.status, (await json(answer)).error.code], [503, 'shutting_down']);
  await scene.ended;
  assert.equal(scene.child.exitCode, 0, scene.log());
});

test('a second signal ends the process at once', async (t) => {
  await using scene = await begin(t, { SVC_DRAIN_SEC: '3600' });
  const running = await scene.transcription();
  scene.child.kill('SIGTERM');
  await refusesConnections(scene.port);
  scene.child.kill('SIGTERM');
  await scene.ended;
  assert.equal(scene.child.exitCode, 1, scene.log());
  await assert.rejects(running.answer);
});
