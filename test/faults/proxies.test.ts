/**
 * An upstream or a client fails at every stage of a passed-on call, for both capabilities: these tests say what the
 * client gets, what the traffic counts as, and that nothing stays behind.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type ClientRequest, type IncomingHttpHeaders, request } from 'node:http';
import { connect } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { OtherBudgets } from '../../src/limits/budgets.ts';
import type { TrafficClass } from '../../src/observability/exchange.ts';
import { type Gateway, startGateway, until } from '../http/harness.ts';
import {
  type Behavior,
  type HostileUpstream,
  head,
  inPieces,
  startHostileUpstream,
  wholeAnswer,
} from './hostile-upstream.ts';

const SILENCE_MS = 250;

interface Scene {
  gateway: Gateway;
  upstream: HostileUpstream;
  path: string;
}

interface Seen {
  status: number;
  statusText: string;
  headers: IncomingHttpHeaders;
  rawHeaders: string[];
  body: Buffer;
  /** True where the connection ended before the answer was whole. */
  broken: boolean;
}

interface Row {
  name: string;
  upstream?: Behavior;
  /** Runs the client; by default it sends one POST with a small body and reads the answer to its end. */
  client?(scene: Scene): Promise<Seen | null>;
  settings?: Record<string, string>;
  budgets?: OtherBudgets;
  class: TrafficClass;
  status?: number;
  broken?: boolean;
  /** Code in the gateway's own envelope; absent when the answer is the upstream's. */
  code?: string;
  body?: string | Buffer;
  check?(seen: Seen, scene: Scene): void | Promise<void>;
}

const OK_HEAD = head('200 OK', { 'Content-Type': 'text/event-stream', 'Transfer-Encoding': 'chunked' });
const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const END = '0\r\n\r\n';
const BIG = randomBytes(50_000_000);
const sha = (data: Buffer) => createHash('sha256').update(data).digest('hex');
const nothing: Behavior = () => undefined;

const ROWS: Row[] = [
  // The connection to the upstream
  {
    name: 'no upstream listens',
    settings: { SVC_TTS_UPSTREAM_URL: 'http://127.0.0.1:9', SVC_LLM_BACKEND_URL: 'http://127.0.0.1:9' },
    ...{ class: '5xx', status: 503, code: 'upstream_unreachable' },
    check({ headers }) {
      assert.equal(headers['retry-after'], undefined);
      assert.equal(headers['x-should-retry'], 'false');
    },
  },
  {
    name: 'the upstream’s name does not exist',
    settings: { SVC_TTS_UPSTREAM_URL: 'http://none.invalid', SVC_LLM_BACKEND_URL: 'http://none.invalid' },
    ...{ class: '5xx', status: 503, code: 'upstream_unreachable' },
  },
  {
    name: 'the upstream closes at once',
    upstream: (s) => s.end(),
    class: '5xx',
    status: 502,
    code: 'upstream_failed',
  },
  {
    name: 'the upstream resets at once',
    upstream: (socket) => socket.resetAndDestroy(),
    ...{ class: '5xx', status: 502, code: 'upstream_failed' },
  },
  {
    name: 'the upstream says nothing',
    upstream: nothing,
    class: '5xx',
    status: 502,
    code: 'upstream_timeout',
  },
  // The head of its answer
  {
    name: 'the upstream speaks no HTTP',
    upstream: (socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'),
    ...{ class: '5xx', status: 502, code: 'upstream_failed' },
  },
  {
    name: 'the upstream sends headers without end',
    upstream: (socket) => socket.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}`),
    ...{ class: '5xx', status: 502, code: 'upstream_failed' },
  },
  {
    name: 'the upstream closes in the middle of its headers',
    upstream: (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Le'),
    ...{ class: '5xx', status: 502, code: 'upstream_failed' },
  },
  {
    name: 'the upstream stalls in the middle of its headers',
    upstream: (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Le'),
    ...{ class: '5xx', status: 502, code: 'upstream_timeout' },
  },
  {
    name: 'the upstream trickles its headers',
    upstream: inPieces([...`${head('200 OK', { 'Content-Length': '2' })}ok`], 10),
    ...{ class: '2xx', status: 200, body: 'ok' },
  },
  {
    name: 'the upstream has a header in UTF-8',
    upstream: (s) => s.end(Buffer.from('HTTP/1.1 200 OK\r\nX-Name: grüße\r\nContent-Length: 2\r\n\r\nok')),
    ...{ class: '2xx', status: 200, body: 'ok' },
    check: ({ headers }) =>
      assert.equal(Buffer.from(String(headers['x-name']), 'latin1').toString(), 'grüße'),
  },
  {
    name: 'the name of a file is in UTF-8, behind the length',
    upstream: (s) =>
      s.end(
        Buffer.from(
          'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Disposition: inline; filename="grüße"\r\n\r\nok',
        ),
      ),
    ...{ class: '2xx', status: 200, body: 'ok' },
    check({ headers }) {
      const name = Buffer.from(String(headers['content-disposition']), 'latin1').toString();
      assert.equal(name, 'inline; filename="grüße"');
    },
  },
  {
    name: 'the upstream says what no status line may say',
    upstream: (s) => s.end('HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\nok'),
    ...{ class: '2xx', status: 200, body: 'ok' },
    check: ({ statusText }) => assert.equal(statusText, 'OK'),
  },
  {
    name: 'the upstream answers with a status that there is not',
    upstream: (s) => s.end('HTTP/1.1 000 No\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\nok'),
    ...{ class: '5xx', status: 502, code: 'upstream_failed' },
    check: ({ headers }) => assert.equal(headers['set-cookie'], undefined),
  },
  {
    name: 'the upstream claims two lengths',
    upstream: (s) => s.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc'),
    ...{ class: '5xx', status: 502, code: 'upstream_failed' },
  },
  // The status of its answer
  {
    name: 'a 100 Continue that comes first is skipped',
    upstream: (s) => s.end(`HTTP/1.1 100 Continue\r\n\r\n${head('200 OK', { 'Content-Length': '2' })}ok`),
    ...{ class: '2xx', status: 200, body: 'ok' },
  },
  {
    name: 'a 103 Early Hints that comes first is skipped',
    upstream: (s) =>
      s.end(`HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${head('200 OK', { 'Content-Length': '2' })}ok`),
    ...{ class: '2xx', status: 200, body: 'ok' },
  },
  {
    name: 'a 101 that was not asked for is a failure',
    upstream: (s) => s.write(head('101 Switching Protocols', { Upgrade: 'chat', Connection: 'Upgrade' })),
    ...{ class: '5xx', status: 502, code: 'upstream_failed' },
  },
  {
    name: 'a 101 without an upgrade is a failure',
    upstream: (s) => s.end(`${head('101 Switching Protocols')}not HTTP`),
    ...{ class: '5xx', status: 502, code: 'upstream_failed' },
  },
  {
    name: 'a 204 has no length, whatever its upstream says',
    upstream: (s) => s.end(head('204 No Content', { 'Content-Length': '5' })),
    ...{ class: '2xx', status: 204, body: '' },
    check: ({ headers }) => assert.equal(headers['content-length'], undefined),
  },
  {
    name: 'a 204 passes on',
    upstream: (s) => s.end(head('204 No Content')),
    class: '2xx',
    status: 204,
    body: '',
  },
  {
    name: 'a 304 passes on, with the length that a 200 would have',
    upstream: (s) => s.end(head('304 Not Modified', { ETag: '"a"', 'Content-Length': '5' })),
    ...{ class: '2xx', status: 304, body: '' },
    check: ({ headers }) => assert.equal(headers['content-length'], '5'),
  },
  {
    name: 'a redirect is passed on, not followed',
    upstream: wholeAnswer('over there', '302 Found', { Location: 'http://127.0.0.1:9/secret' }),
    ...{ class: '2xx', status: 302, body: 'over there' },
    check: ({ headers }) => assert.equal(headers.location, 'http://127.0.0.1:9/secret'),
  },
  {
    name: 'the upstream’s own 400 keeps its members and gains the envelope’s',
    upstream: wholeAnswer('{"error":{"message":"no such voice","hint":1},"id":7}', '400 Bad Voice'),
    ...{ class: '4xx', status: 400, code: 'upstream_error' },
    check({ statusText, body }) {
      assert.equal(statusText, 'Bad Voice');
      const { id, error } = JSON.parse(body.toString());
      assert.deepEqual([id, error.message, error.hint, error.param], [7, 'no such voice', 1, null]);
    },
  },
  {
    name: 'the upstream’s own 500 is quoted in an envelope',
    upstream: wholeAnswer('out of memory', '500 Internal Server Error'),
    ...{ class: '5xx', status: 500, code: 'upstream_error' },
    check({ headers, body }) {
      assert.match(JSON.parse(body.toString()).error.message, / answered 500: out of memory$/);
      assert.equal(headers['x-should-retry'], undefined, 'that is the upstream’s to say');
    },
  },
  {
    name: 'the upstream’s own 503 is not the slot’s',
    upstream: wholeAnswer('warming up', '503 Service Unavailable', { 'Retry-After': '60' }),
    ...{ class: '5xx', status: 503, code: 'upstream_error' },
    check({ headers, body }) {
      assert.equal(headers['retry-after'], undefined);
      assert.equal(JSON.parse(body.toString()).error.retry_after_sec, 60);
    },
  },
  {
    name: 'the upstream’s own 429 keeps its Retry-After',
    upstream: wholeAnswer('slowly', '429 Too Many Requests', { 'Retry-After': '7' }),
    ...{ class: '4xx', status: 429, code: 'upstream_error' },
    check: ({ headers }) => assert.equal(headers['retry-after'], '7'),
  },
  {
    name: 'a 404 without a body keeps its status in an envelope',
    upstream: wholeAnswer('', '404 Not Found', { 'Content-Encoding': 'gzip' }),
    ...{ class: '4xx', status: 404, code: 'upstream_error' },
  },
  {
    name: 'a 500 with an empty chunked body becomes an envelope',
    upstream: (s) => s.end(`${head('500 Oops', { 'Transfer-Encoding': 'chunked' })}${END}`),
    ...{ class: '5xx', status: 500, code: 'upstream_error' },
  },
  {
    name: 'a 500 that is reset before its body becomes an envelope',
    upstream: inPieces([head('500 Oops', { 'Content-Length': '10' }), null]),
    ...{ class: '5xx', status: 500, code: 'upstream_error' },
  },
  {
    name: 'a 500 that stalls in its body becomes an envelope with what has come',
    upstream: inPieces([`${head('500 Oops', { 'Content-Length': '10' })}half`]),
    ...{ class: '5xx', status: 500, code: 'upstream_error' },
    check: ({ body }) => assert.match(JSON.parse(body.toString()).error.message, /: half$/),
  },
  {
    name: 'an error without end is quoted as far as it may be read',
    upstream: (s) => {
      s.write(head('500 Oops', { 'Content-Type': 'application/json' }));
      const pour = setInterval(() => s.write('{"x":'.repeat(20_000)), 1);
      s.on('close', () => clearInterval(pour));
    },
    ...{ class: '5xx', status: 500, code: 'upstream_error' },
    check: ({ body }) => assert(body.length < 1000),
  },
  {
    name: 'an error that trickles is answered in time',
    budgets: { upstream: { errorMs: 200 } },
    upstream: inPieces([head('400 Bad', { 'Content-Length': '500' }), ...'slowly'.repeat(80)], 15),
    ...{ class: '4xx', status: 400, code: 'upstream_error' },
    check: ({ body }) => assert.match(JSON.parse(body.toString()).error.message, /: slowly/),
  },
  // The body of its answer
  {
    name: 'a coding before the chunks is a failure, as its name would stay behind',
    upstream: (s) =>
      s.end(`${head('200 OK', { 'Transfer-Encoding': 'gzip, chunked' })}${chunk('\x1f\x8b')}${END}`),
    ...{ class: '5xx', status: 502, code: 'upstream_failed' },
  },
  {
    name: 'a coding without chunks is a failure',
    upstream: (s) => s.end(`${head('200 OK', { 'Transfer-Encoding': 'gzip' })}\x1f\x8b`),
    ...{ class: '5xx', status: 502, code: 'upstream_failed' },
  },
  {
    name: 'chunks in capitals are chunks',
    upstream: (s) => s.end(`${head('200 OK', { 'Transfer-Encoding': 'Chunked' })}${chunk('ok')}${END}`),
    ...{ class: '2xx', status: 200, body: 'ok' },
  },
  {
    name: 'the upstream stalls in its body',
    upstream: inPieces([OK_HEAD, chunk('data: 1\n\n')]),
    class: '5xx',
    broken: true,
  },
  {
    name: 'the upstream resets in its body',
    upstream: inPieces([OK_HEAD, chunk('data: 1\n\n'), null]),
    ...{ class: '5xx', broken: true },
  },
  {
    name: 'the upstream promises more than it sends',
    upstream: (s) => s.end(`${head('200 OK', { 'Content-Length': '100' })}short`),
    ...{ class: '5xx', broken: true },
  },
  {
    name: 'the upstream ends without its last chunk',
    upstream: (s) => s.end(OK_HEAD + chunk('data: 1\n\n')),
    ...{ class: '5xx', broken: true },
  },
  {
    name: 'the upstream breaks the chunk encoding',
    upstream: inPieces([OK_HEAD, chunk('data: 1\n\n'), 'no chunk\r\n']),
    ...{ class: '5xx', broken: true },
  },
  {
    name: 'the upstream sends more than it promised',
    upstream: (s) => s.end(`${head('200 OK', { 'Content-Length': '2' })}ok and more`),
    ...{ class: '2xx', status: 200, body: 'ok' },
  },
  {
    name: 'the upstream gives no length and closes',
    upstream: (s) => s.end(`${head('200 OK')}as it was in 1.0`),
    ...{ class: '2xx', status: 200, body: 'as it was in 1.0' },
  },
  {
    name: 'the upstream stalls in a body that only its closing would end',
    upstream: inPieces([`${head('200 OK')}half of it`]),
    ...{ class: '5xx', broken: true },
  },
  {
    name: 'the upstream resets in a body that only its closing would end',
    upstream: inPieces([`${head('200 OK')}half of it`, null]),
    ...{ class: '5xx', broken: true },
  },
  { name: 'an empty body passes on', upstream: wholeAnswer(''), class: '2xx', status: 200, body: '' },
  {
    name: '50 MB arrive whole',
    upstream: (s) => {
      s.write(head('200 OK', { 'Content-Length': String(BIG.length) }));
      s.end(BIG);
    },
    ...{ class: '2xx', status: 200 },
    check: ({ body }) => assert.equal(sha(body), sha(BIG)),
  },
  {
    name: 'the upstream trickles, but is never silent for long',
    upstream: inPieces([OK_HEAD, ...Array.from({ length: 20 }, (_, i) => chunk(`data: ${i}\n\n`)), END], 25),
    ...{ class: '2xx', status: 200 },
    check: ({ body }) => assert.equal(body.toString().split('\n\n').length, 21),
  },
  {
    name: 'the coding and repeated headers of the upstream stay, and those of its connection do not',
    upstream: (s) =>
      s.end(
        'HTTP/1.1 200 Fine\r\nContent-Encoding: br\r\nLink: </a>\r\nLink: </b>\r\nX-Own: 1\r\nX-Request-ID: theirs\r\n' +
          'Connection: close, X-Own\r\nKeep-Alive: timeout=9\r\nTrailer: X\r\nContent-Length: 2\r\n\r\nok',
      ),
    ...{ class: '2xx', status: 200, body: 'ok' },
    check({ headers, rawHeaders }) {
      assert.equal(rawHeaders.filter((name) => name === 'Link').length, 2);
      assert.equal(headers['content-encoding'], 'br');
      for (const name of ['x-own', 'trailer']) assert.equal(headers[name], undefined, name);
      assert(!rawHeaders.includes('timeout=9') && !rawHeaders.includes('theirs'));
    },
  },
  // The client
  {
    name: 'the client leaves before the answer',
    upstream: nothing,
    client: (scene) => leave(scene, (_, { upstream }) => until('asked', () => upstream.heads.length === 1)),
    class: 'client-disconnect',
  },
  {
    name: 'the client leaves in the middle of the answer',
    upstream: inPieces([OK_HEAD, chunk('data: 1\n\n')]),
    client: (scene) =>
      leave(scene, (req) => new Promise((done) => req.on('response', (r) => r.once('data', done)))),
    class: 'client-disconnect',
  },
  {
    name: 'the client leaves in the middle of its upload',
    upstream: nothing,
    client: (scene) =>
      leave(
        scene,
        (req, { gateway }) => {
          req.write(randomBytes(3_000_000));
          return until('some of it came', () => gateway.uploads().length === 1);
        },
        { 'Content-Length': '10000000' },
      ),
    class: 'client-disconnect',
  },
  {
    name: 'the client stops reading',
    budgets: { answer: { stallMs: SILENCE_MS } },
    upstream: (s) => {
      s.write(head('200 OK', { 'Content-Length': String(BIG.length) }));
      s.write(BIG);
    },
    client: (scene) =>
      leave(
        scene,
        (req, { gateway }) =>
          new Promise((done) => {
            req.on('response', (r) => r.pause());
            void until('it is given up', () => gateway.exchanges.length > 0, 5000).then(done);
          }),
      ),
    class: 'client-disconnect',
  },
  {
    name: 'the client closes its sending side, which is leaving',
    upstream: nothing,
    client: async ({ gateway, path }) => {
      const { port, hostname } = new URL(gateway.base);
      const socket = connect(Number(port), hostname);
      socket.end(`POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}`);
      socket.resume();
      return null;
    },
    class: 'client-disconnect',
  },
  {
    name: 'a refused upload is read to its end, so that the client sees why',
    upstream: (s) => s.write(`${head('413 Too Large', { 'Content-Length': '3' })}big`),
    client: (scene) => ask(scene, { body: randomBytes(20_000_000) }),
    ...{ class: '4xx', status: 413, code: 'upstream_error' },
  },
  {
    name: 'a refused upload is answered when its reader is gone',
    upstream: (s) => s.end(`${head('413 Too Large', { 'Content-Length': '3' })}big`, () => s.destroy()),
    client: (scene) => ask(scene, { body: randomBytes(20_000_000) }),
    ...{ class: '4xx', status: 413, code: 'upstream_error' },
  },
  // The operator
  {
    name: 'the gateway stops before the answer',
    upstream: nothing,
    client: async (scene) => {
      const answer = ask(scene);
      await until('asked', () => scene.upstream.heads.length === 1);
      await scene.gateway.app.close();
      return answer;
    },
    ...{ class: '5xx', status: 503, code: 'shutting_down' },
  },
  {
    name: 'the operator stops a call in the middle of a body that only its closing would end',
    upstream: inPieces([`${head('200 OK')}half of it`]),
    client: (scene) => askUntilBegun(scene, () => assert(scene.gateway.app.slot.stopHolder())),
    ...{ class: '5xx', broken: true },
  },
  {
    name: 'the gateway stops in the middle of the answer',
    upstream: inPieces([OK_HEAD, chunk('data: 1\n\n')]),
    client: (scene) => askUntilBegun(scene, () => scene.gateway.app.close()),
    ...{ class: '5xx', broken: true },
  },
];

for (const [category, path] of [
  ['tts', '/v1/audio/speech'],
  ['llm', '/v1/chat/completions'],
] as const) {
  for (const row of ROWS) {
    test(`${category}: ${row.name}`, async () => {
      await using upstream = await startHostileUpstream();
      if (row.upstream) upstream.behave(row.upstream);
      await using gateway = await startGateway({
        env: settings(upstream, row.settings),
        budgets: row.budgets,
      });
      const scene = { gateway, upstream, path };
      const seen = await (row.client?.(scene) ?? ask(scene));
      await until('it is over', () => gateway.exchanges.length === 1, 5000);
      if (seen !== null) await compare(seen, row, category, scene);
      const [exchange] = gateway.exchanges;
      assert.equal(exchange?.category, category);
      assert.equal(exchange?.class, row.class);
      if (seen !== null && !seen.broken) assert.equal(exchange?.status, seen.status);
      await nothingStays(scene);
    });
  }
}

test('a client that reads when it has sent all sees why it was refused, also from an upstream that stays', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave((s) => s.end(`${head('413 Too Large', { 'Content-Length': '3' })}big`));
  await using gateway = await startGateway({ env: settings(upstream) });
  const bytes = 20_000_000;
  const socket = connect(Number(new URL(gateway.base).port), '127.0.0.1').pause();
  let answer = '';
  socket.on('data', (data) => {
    answer += data.toString('latin1');
  });
  const lines = ['POST /v1/chat/completions HTTP/1.1', 'Host: localhost', `Content-Length: ${bytes}`];
  socket.write(`${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`);
  socket.write(randomBytes(bytes), () => socket.resume());
  await once(socket, 'close'); // it rejects where the connection is reset
  assert.match(answer, /^HTTP\/1\.1 413 [\s\S]*answered 413: big/);
});

test('an answer that its end would end is no whole one when the connection breaks while the body is sent', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({ env: settings(upstream) });
  upstream.behave((socket) => {
    socket.write(`${head('200 OK')}${'half '.repeat(400)}`);
    setTimeout(() => socket.resetAndDestroy(), 60);
  });
  const scene = { gateway, upstream, path: '/v1/chat/completions' };
  for (let i = 1; i <= 12; i += 1) {
    const seen = await ask(scene, { body: BIG, pieceBytes: 262_144 }).catch(() => null);
    if (seen !== null) assert.equal(seen.broken, true); // else the client's own writing failed before the answer
    await until('it is over', () => gateway.exchanges.length === i, 5000);
    assert.equal(gateway.exchanges.at(-1)?.class, '5xx');
  }
  await nothingStays(scene);
});

test('an upstream that takes the connection but no TLS is unreachable after 5 s', async () => {
  await using silent = await startHostileUpstream();
  await using gateway = await startGateway({
    env: { SVC_LLM_BACKEND_URL: silent.url.replace('http:', 'https:') },
  });
  const scene = { gateway, upstream: silent, path: '/v1/chat/completions' };
  const start = performance.now();
  const seen = await ask(scene);
  assert.equal(seen.status, 503);
  assert.match(seen.body.toString(), /ERR_CONNECT_TIMEOUT.*upstream_unreachable/);
  assert.ok(performance.now() - start < 8000);
  await nothingStays(scene);
});

const KINDS: Record<number, string> = {
  ...{ 400: 'malformed', 404: 'not_found', 413: 'too_large', 429: 'rate_limited', 503: 'network' },
};

async function compare(seen: Seen, row: Partial<Row>, category: string, scene: Scene): Promise<void> {
  assert.equal(seen.broken, row.broken ?? false, 'the answer is whole, or visibly not');
  assert.equal(seen.status, row.status ?? 200, seen.body.subarray(0, 300).toString());
  assert(seen.headers['x-request-id']);
  if (row.code !== undefined) {
    const { error } = JSON.parse(seen.body.toString());
    assert.equal(error.code, row.code);
    assert.equal(error.provider, row.code === 'shutting_down' ? 'voxgate' : category);
    assert.equal(error.kind, KINDS[seen.status] ?? 'upstream');
    assert.equal(seen.headers['content-encoding'], undefined);
  }
  if (row.body !== undefined) assert.equal(seen.body.toString(), row.body.toString());
  await row.check?.(seen, scene);
}

/** Checks that the next call finds the slot free, and that no connection and no file is left. */
async function nothingStays({ gateway, upstream, path }: Scene): Promise<void> {
  await until('the upstream’s connection is closed', () => upstream.open() === 0, 100);
  await until('no file is left', () => gateway.uploads().length === 0);
  if (!gateway.app.server.listening) return;
  const connections = () =>
    new Promise<number>((resolve) => gateway.app.server.getConnections((_error, count) => resolve(count)));
  await until('no client connection is left', async () => (await connections()) === 0);
  upstream.behave(wholeAnswer('next'));
  const next = await ask({ gateway, upstream, path });
  assert.notEqual(next.status === 503 && JSON.parse(next.body.toString()).error.code, 'slot_busy');
}

function settings(upstream: HostileUpstream, own: Record<string, string> = {}): Record<string, string> {
  const limit = String(SILENCE_MS / 1000);
  return {
    ...{ SVC_TTS_UPSTREAM_URL: upstream.url, SVC_LLM_BACKEND_URL: upstream.url },
    ...{ SVC_TTS_TIMEOUT_SEC: limit, SVC_LLM_TIMEOUT_SEC: limit, ...own },
  };
}

function open({ gateway, path }: Scene, headers: Record<string, string>): ClientRequest {
  return request(`${gateway.base}${path}`, {
    ...{ method: 'POST', agent: false, headers: { 'Content-Type': 'application/json', ...headers } },
  });
}

function ask(
  scene: Scene,
  { body = Buffer.from('{"model":"m"}'), pieceBytes = 0, onData = () => {} } = {},
): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const req = open(scene, { 'Content-Length': String(body.length) });
    let answered = false;
    req.on('error', (error) => answered || reject(error));
    req.on('response', (response) => {
      answered = true;
      const chunks: Buffer[] = [];
      response.on('data', (data) => {
        chunks.push(data);
        onData();
      });
      response.on('error', () => undefined);
      response.on('close', () => {
        const { statusCode = 0, statusMessage = '', headers, rawHeaders, complete } = response;
        const seen = { status: statusCode, statusText: statusMessage, headers, rawHeaders };
        resolve({ ...seen, body: Buffer.concat(chunks), broken: !complete });
      });
    });
    if (pieceBytes > 0) void sendInPieces(req, body, pieceBytes);
    else req.end(body);
  });
}

/** Sends a body with pauses, so that the gateway is about to write the next piece at any moment. */
async function sendInPieces(req: ClientRequest, body: Buffer, bytes: number): Promise<void> {
  for (let at = 0; at < body.length && !req.destroyed; at += bytes) {
    req.write(body.subarray(at, at + bytes));
    await sleep(1);
  }
}

/** Asks, and runs `act` when a part of the answer has come. */
async function askUntilBegun(scene: Scene, act: () => unknown): Promise<Seen> {
  let begun = false;
  const onData = () => {
    begun = true;
  };
  const answer = ask(scene, { onData });
  await until('some of the answer came', () => begun);
  await act();
  return answer;
}

/** Begins a request, and leaves when `moment` has come. */
async function leave(
  scene: Scene,
  moment: (req: ClientRequest, scene: Scene) => Promise<unknown>,
  headers: Record<string, string> = { 'Content-Length': '2' },
): Promise<null> {
  const req = open(scene, headers);
  req.on('error', () => undefined);
  if (headers['Content-Length'] === '2') req.end('{}');
  await moment(req, scene);
  req.destroy();
  return null;
}
