/** What the files of deploy/proxies/ do with uploads, streams, live sessions, paths and idle connections. */
import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import {
  form,
  type Gateway,
  heard,
  json,
  type Script,
  startGateway,
  toneWav,
  until,
  untilAborted,
  untilWaiting,
} from '../http/harness.ts';
import { rawClient, statusesIn } from '../http/raw-client.ts';
import { at16kHz, COMPLETED, connectLive, silence, tone } from '../http/realtime.ts';
import { SCRIPTED } from '../http/served.ts';
import { joinWavs } from '../wav.ts';
import { FRONT_PROXIES, type FrontProxy, type ReverseProxy, startFrontProxy } from './reverse-proxies.ts';

const run = promisify(execFile);

/** The chat upstream answers one line, and the other one when it is told to. */
let sayMore = (): void => undefined;
const upstream = createServer((req, res: ServerResponse) => {
  req.resume();
  res.writeHead(200, { 'Content-Type': 'application/x-ndjson' }).write('{"n":1}\n');
  sayMore = () => res.end('{"n":2}\n');
});

/** The second chunk of a transcription is ready when it is told so. */
let chunks = 0;
let second = Promise.resolve();
const transcribe: NonNullable<Script['transcribe']> = async (samples, options, hooks) => {
  if (options.prompt === 'endless') return untilAborted(samples, options, hooks);
  if (++chunks === 2) await second;
  return heard(' Hello there.');
};

let gateway: Gateway;
before(async () => {
  await once(upstream.listen(0, '127.0.0.1'), 'listening');
  const { port } = upstream.address() as AddressInfo;
  gateway = await startGateway({
    transcribe,
    env: {
      SVC_LLM_BACKEND_URL: `http://127.0.0.1:${port}`,
      SVC_TRUST_PROXY: '1',
      SVC_MAX_WAIT_SEC: '20',
    },
  });
});
after(async () => {
  await gateway?.[Symbol.asyncDispose]();
  upstream.close();
});

/** A short sound, with 20 MB behind it that no decoder reads. */
const LARGE = Buffer.concat([
  toneWav(1),
  Buffer.from([0x6a, 0x75, 0x6e, 0x6b, 0, 0x2d, 0x31, 1]),
  Buffer.alloc(20_000_000),
]);

const TWO_CHUNKS = joinWavs(toneWav(2), toneWav(4, 0), toneWav(2));

const transcription = (
  base: string,
  fields: Record<string, string> = {},
  headers: Record<string, string> = {},
) => fetch(`${base}/v1/audio/transcriptions`, { method: 'POST', body: form(toneWav(2), fields), headers });

test('HAProxy takes its file without a warning', () => {
  const file = new URL('../../deploy/proxies/haproxy.cfg', import.meta.url).pathname;
  const { status, stderr } = spawnSync('haproxy', ['-c', '-f', file], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  assert.doesNotMatch(stderr, /WARNING/);
});

for (const name of FRONT_PROXIES) {
  test(`${name} passes on what it should, as it comes`, async (t) => {
    await using proxy = await startFrontProxy(name, gateway.base);
    for (const [what, check] of Object.entries(CHECKS)) await t.test(what, () => check(proxy));
  });
}

const CHECKS: Record<string, (proxy: ReverseProxy) => Promise<void>> = {
  async 'an upload of 20 MB, and the address of its client'({ base }) {
    await uploadFrom(base, '127.0.0.9');
    assert.equal(gateway.exchanges.at(-1)?.clientIp, '127.0.0.9');
  },

  async 'the refusal of an upload that has not ended'({ base }) {
    const args = ['-sS', '-w', '\n%{http_code}', '--data-binary', '@-', '-H', 'Content-Type: text/plain'];
    const curl = run('curl', [...args, `${base}/v1/audio/transcriptions`]);
    curl.child.stdin?.on('error', () => undefined).end(Buffer.alloc(20_000_000));
    const [body = '', status] = (await curl).stdout.split('\n');
    assert.equal(status, '400');
    assert.equal(JSON.parse(body).error.provider, 'voxgate');
  },

  async 'an event before the next one is there'({ base }) {
    let release = (): void => undefined;
    second = new Promise((resolve) => (release = resolve));
    chunks = 0;
    const body = form(TWO_CHUNKS, { stream: 'true' });
    const answer = await fetch(`${base}/v1/audio/transcriptions`, { method: 'POST', body });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    assert.match((await reader?.read())?.value ?? '', /transcript.text.delta/);
    release();
    let rest = '';
    for (let read = await reader?.read(); read?.done === false; read = await reader?.read())
      rest += read.value;
    assert.match(rest, /transcript.text.done/);
  },

  async 'a line of an upstream before the next one is there'({ base }) {
    const body = JSON.stringify({ model: 'any', messages: [{ role: 'user', content: 'Hi' }], stream: true });
    const headers = { 'Content-Type': 'application/json' };
    const answer = await fetch(`${base}/v1/chat/completions`, { method: 'POST', body, headers });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    assert.equal((await reader?.read())?.value, '{"n":1}\n');
    sayMore();
    assert.equal((await reader?.read())?.value, '{"n":2}\n');
    assert.equal((await reader?.read())?.done, true);
  },

  async 'the end of a client, which ends its work'({ base }) {
    const begun = gateway.begun();
    const leaving = new AbortController();
    const init = { method: 'POST', body: form(toneWav(2), { prompt: 'endless' }), signal: leaving.signal };
    const answer = fetch(`${base}/v1/audio/transcriptions`, init);
    answer.catch(() => undefined);
    await until('it computes', () => gateway.begun() > begun);
    leaving.abort();
    await until('nothing computes', () => gateway.running() === 0);
  },

  async 'a live session'({ base }) {
    await using client = await connectLive({ base: `${base}/voice` });
    client.send(at16kHz());
    for (const samples of [silence(1), tone(1), silence(1)]) client.speak(samples);
    assert.equal((await client.event(COMPLETED)).transcript, 'Hello there.');
  },

  async 'a wait for the slot, unless the client asks for another'({ base }) {
    for (const [headers, applied] of [
      [{}, 'wait=20'],
      [{ Prefer: 'wait=7' }, 'wait=7'],
    ] as const) {
      const held = gateway.app.slot.take('llm', 'another');
      const answer = transcription(base, {}, headers);
      await untilWaiting(gateway, 1).finally(() => held[Symbol.dispose]());
      assert.deepEqual(
        [(await answer).status, (await answer).headers.get('preference-applied')],
        [200, applied],
      );
    }
  },

  async 'the same below a path'({ base }) {
    const entered = await fetch(`${base}/voice`, { redirect: 'manual' });
    assert([301, 302].includes(entered.status));
    assert.equal(new URL(entered.headers.get('location') ?? '', base).href, `${base}/voice/`);
    assert.equal((await transcription(`${base}/voice`)).status, 200);
    const unknown = await fetch(`${base}/voice/v2/models?x=1`);
    assert.deepEqual([unknown.status, (await json(unknown)).error.code], [404, 'not_found']);
    assert.equal(gateway.exchanges.at(-1)?.path, '/v2/models');
  },
};

/** Another address of this machine stands for a client. */
async function uploadFrom(base: string, localAddress: string): Promise<void> {
  const { headers, body } = new Request(base, { method: 'POST', body: form(LARGE) });
  const options = { method: 'POST', headers: Object.fromEntries(headers), agent: false, localAddress };
  const sent = request(`${base}/v1/audio/transcriptions`, options);
  sent.end(Buffer.from(await new Response(body).arrayBuffer()));
  const [answer]: IncomingMessage[] = (await once(sent, 'response')) as [IncomingMessage];
  assert.equal(answer?.statusCode, 200);
  await answer?.toArray();
}

/** At each proxy, as many at once as it keeps connections. */
const AT_ONCE = 64;
const ROUNDS = 6;

/** No proxy may send a POST a second time. */
const POST = `POST /v1/realtime/client_secrets HTTP/1.1\r
Host: 127.0.0.1\r
Connection: close\r
Content-Type: application/json\r
Content-Length: 2\r
\r
{}`;

/**
 * The gateway closes idle connections after 1.3 s here, and the proxy after 0.6 s: a hundredth of what both usually have.
 * Requests are on their way at both moments, to a gateway that looks at them late.
 */
test('of 384 requests that meet idle connections at the end of their time none is lost', async () => {
  assert.deepEqual(await lostRequests(), { nginx: 0, caddy: 0, haproxy: 0 });
});

/** Newer versions of Node keep connections for a second longer than they are told. */
const { keepAliveTimeoutBuffer = 0 } = upstream as { keepAliveTimeoutBuffer?: number };

async function lostRequests(): Promise<Record<FrontProxy, number>> {
  const env = { SVC_KEEP_ALIVE_SEC: String((1300 - keepAliveTimeoutBuffer) / 1000) };
  await using shortly = await startGateway({ env });
  const proxies = await Promise.all(
    FRONT_PROXIES.map((name) => startFrontProxy(name, shortly.base, '600ms')),
  );
  const lost = { nginx: 0, caddy: 0, haproxy: 0 };
  let endedAt = performance.now();
  for (let round = 0; round < ROUNDS; round++) {
    const clients = FRONT_PROXIES.flatMap((name, i) =>
      Array.from({ length: AT_ONCE }, () => ({ name, client: rawClient(proxies[i]?.base ?? '') })),
    );
    await Promise.all(clients.map(({ client }) => once(client.socket, 'connect')));
    await sleep((round % 2 === 0 ? 1300 : 600) - 100 - (performance.now() - endedAt));
    for (const { client } of clients) client.write(POST);
    // Behind `setImmediate`, Node looks at the timers of idle connections first, and then at the requests that have come.
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150));
    await until('all are answered', () => clients.every(({ client }) => client.closed()), 20_000);
    endedAt = performance.now();
    for (const { name, client } of clients) if (statusesIn(client.said())[0] !== 200) lost[name] += 1;
  }
  for (const proxy of proxies) await proxy[Symbol.asyncDispose]();
  return lost;
}

test('nginx reaches a gateway at a Unix socket, and says who asks', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-front-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const host = `unix:${join(dir, 'gateway.sock')}`;
  const own = { SVC_HOST: host, SVC_TRUST_PROXY: '1', SVC_OBS_LOG_DIR: '-', SVC_CRASH_DIR: dir };
  const child = spawn(process.execPath, SCRIPTED, { env: { ...process.env, ...own } });
  t.after(() => child.kill('SIGKILL'));
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (log += data));
  const listens = () => log.includes(`listens on ${host}`);
  await until('it listens', listens, 20_000).catch(() => assert.fail(log));
  await using proxy = await startFrontProxy('nginx', host);
  assert.equal((await transcription(proxy.base)).status, 200);
  await uploadFrom(proxy.base, '127.0.0.9');
  await until('the line of the upload', () => log.includes('"client_ip":"127.0.0.9"'));
});

test('while the gateway is away, the answer is the envelope', async () => {
  for (const name of FRONT_PROXIES) {
    const away = await startGateway();
    await using proxy = await startFrontProxy(name, away.base).finally(() => away[Symbol.asyncDispose]());
    const answer = await transcription(proxy.base);
    assert([502, 503].includes(answer.status), name);
    assert.equal((await json(answer)).error.code, 'upstream_failed', name);
  }
});
