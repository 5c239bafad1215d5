/** Odd traffic below Express still gets the envelope, the request id and, where it is a request, its line. */
import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { errorEnvelopeSchema } from '../../src/http/openapi/openapi.ts';
import { head, startHostileUpstream } from '../faults/hostile-upstream.ts';
import { type Gateway, startGateway, toneWav, until, untilAborted } from './harness.ts';

const LIMIT_MS = 5000;

interface Talk {
  begun?(socket: Socket): void;
  /** The client keeps its own side open when the gateway has closed its own. */
  lingering?: boolean;
}

/** Collects everything that the gateway sends on one connection until it closes it. */
function talk(gateway: Gateway, bytes: string, { begun, lingering = false }: Talk = {}): Promise<string> {
  const { port, hostname } = new URL(gateway.base);
  return new Promise((resolve, reject) => {
    let said = '';
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: lingering }, () => {
      socket.write(bytes, 'latin1');
      begun?.(socket);
    });
    const limit = setTimeout(() => {
      socket.destroy();
      reject(new Error(`The connection is still open after ${LIMIT_MS} ms; it said: ${said}`));
    }, LIMIT_MS);
    const over = () => {
      clearTimeout(limit);
      resolve(said);
    };
    socket.on('data', (data) => {
      said += data.toString('latin1');
    });
    socket.on('error', () => undefined);
    socket.on('end', over);
    socket.on('close', over);
  });
}

/** Parses one error answer, and fails when anything else came. */
function refusalIn(said: string): { status: number; id: string; allow: string | undefined; error: any } {
  assert.equal(said.match(/HTTP\/1\.1 /g)?.length, 1, said);
  const [top = '', body = ''] = said.split('\r\n\r\n');
  const header = (name: string) => new RegExp(`^${name}: (.*)$`, 'im').exec(top)?.[1]?.trim();
  assert.match(header('Content-Type') ?? '', /^application\/json/);
  const { error } = errorEnvelopeSchema.parse(JSON.parse(body));
  const id = header('X-Request-ID') ?? '';
  return { status: Number(said.slice(9, 12)), id, allow: header('Allow'), error };
}

const get = (target: string, headers = 'Host: localhost\r\n') =>
  `GET ${target} HTTP/1.1\r\n${headers}Connection: close\r\n\r\n`;
const CONNECT = 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n';
const chat = (headers: string) => `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n`;

for (const [what, bytes, status, kind, code] of [
  ['no Host', get('/health', ''), 400, 'malformed', 'bad_request'],
  ['two Hosts', get('/health', 'Host: localhost\r\nHost: evil.example\r\n'), 400, 'malformed', 'bad_request'],
  [
    'a Host that could be read as two names',
    get('/health', 'Host: evil.example#@localhost\r\n'),
    400,
    'malformed',
    'bad_request',
  ],
  [
    'an odd Expect',
    get('/health', 'Host: localhost\r\nExpect: 200-ok\r\n'),
    417,
    'malformed',
    'expectation_failed',
  ],
  [
    'an odd Expect beside a known one, with a body to come',
    chat('Expect: 100-continue, more\r\nContent-Length: 5\r\n'),
    417,
    'malformed',
    'expectation_failed',
  ],
  ['a target that is no URL', get('http://[x/'), 400, 'malformed', 'bad_request'],
  ['a target without a path', get('foo://x'), 400, 'malformed', 'bad_request'],
  ['CONNECT', CONNECT, 405, 'method_not_allowed', 'method_not_allowed'],
] as const) {
  test(`${what} is answered with the envelope and has its line`, async () => {
    await using gateway = await startGateway();
    const { status: answered, id, allow, error } = refusalIn(await talk(gateway, bytes));
    assert.deepEqual([answered, error.kind, error.code], [status, kind, code]);
    assert.match(id, /^[0-9a-f]{16}$/);
    if (status === 405) assert.match(allow ?? '', /GET/);
    await until('it was observed', () => gateway.exchanges.length === 1);
    const [line] = gateway.exchanges;
    assert.deepEqual([line?.requestId, line?.status, line?.class], [id, status, '4xx']);
    assert.equal(line?.path, bytes.split(' ')[1]);
    assert.equal(line?.clientIp, '127.0.0.1');
  });
}

test('HTTP/1.0 needs no Host, and has no interim answers', async () => {
  await using gateway = await startGateway();
  assert.match(await talk(gateway, 'GET /health HTTP/1.0\r\n\r\n'), /^HTTP\/1\.1 200 /);
  const body = 'request_id=none';
  const form = `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}`;
  const stop = `POST /admin/api/slot/stop HTTP/1.0\r\nExpect: 100-continue\r\n${form}\r\n\r\n${body}`;
  assert.match(await talk(gateway, stop), /^HTTP\/1\.1 200 /);
});

const upgrading = (path: string, protocol: string) =>
  get(path, `Host: localhost\r\nUpgrade: ${protocol}\r\n`).replace('close', 'Upgrade');
const WEBSOCKET = upgrading('/v1/realtime', 'websocket');
const UNCLEAR = 'POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n';
const CSS = 'GET /assets/voxgate.css HTTP/1.1\r\nHost: localhost\r\n\r\n';

for (const [first, before] of [
  ['a request without an answer', CSS],
  ['a refusal', UNCLEAR],
] as const)
  for (const [wish, bytes] of [
    ['CONNECT', CONNECT],
    ['a WebSocket', WEBSOCKET],
    ['another protocol', upgrading('/health', 'h2c')],
  ] as const)
    test(`${wish} right behind ${first} ends its own connection and nothing else`, async () => {
      await using gateway = await startGateway();
      for (const reset of [false, true]) {
        const begun = (socket: Socket) =>
          socket.once('data', () => {
            if (reset) socket.resetAndDestroy();
          });
        assert.match(await talk(gateway, before + bytes, { begun }), /^HTTP\/1\.1 (200|400) /);
        assert.equal((await fetch(`${gateway.base}/health`)).status, 200);
      }
    });

test('a wish for a WebSocket where there is none gets the whole answer, however large', async () => {
  await using gateway = await startGateway();
  const path = '/docs/swagger-ui-bundle.js';
  const whole = (await (await fetch(gateway.base + path)).arrayBuffer()).byteLength;
  assert(whole > 1_000_000);
  const said = await talk(gateway, upgrading(path, 'websocket'));
  assert.equal(said.length - said.indexOf('\r\n\r\n') - 4, whole);
});

for (const [what, bytes] of [
  ['CONNECT', CONNECT],
  ['a WebSocket', WEBSOCKET],
] as const)
  test(`${what} that is refused leaves no connection, whatever its client does next`, async () => {
    await using gateway = await startGateway();
    const begun = (socket: Socket) =>
      void setTimeout(() => {
        if (!socket.destroyed) socket.write('more');
      }, 50);
    const held = Array.from({ length: 3 }, () => talk(gateway, bytes, { begun, lingering: true }));
    for (const said of await Promise.all(held)) assert.match(said, /^HTTP\/1\.1 4\d\d /);
    const count = () =>
      new Promise<number>((resolve) => gateway.app.server.getConnections((_error, open) => resolve(open)));
    await until('the connections are gone', async () => (await count()) === 0);
    await until('they were observed', () => gateway.exchanges.length === 3);
  });

for (const [what, bytes, status, code] of [
  ['no HTTP at all', 'hello\r\n\r\n', 400, 'bad_request'],
  ['a bad header', 'GET /health HTTP/1.1\r\nHost: localhost\r\nbad header\r\n\r\n', 400, 'bad_request'],
  [
    'headers that never end',
    `GET /health HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
    431,
    'headers_too_large',
  ],
  ['another protocol', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'bad_request'],
] as const) {
  test(`${what}: the parser's refusal has the envelope and an id that the log knows`, async () => {
    await using gateway = await startGateway({ env: { SVC_LOG_LEVEL: 'debug' } });
    const { status: answered, id, error } = refusalIn(await talk(gateway, bytes));
    assert.deepEqual([answered, error.kind, error.code], [status, 'malformed', code]);
    assert.match(id, /^[0-9a-f]{16}$/);
    assert(gateway.logged.some((line) => line.includes(id)));
  });
}

test('a body that breaks the rules is answered under the request’s own id', async () => {
  await using gateway = await startGateway();
  const upload = [
    'POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: mine\r\n',
    'Content-Type: multipart/form-data; boundary=x\r\nTransfer-Encoding: chunked\r\n\r\n',
    '5\r\nhello\r\nno chunk\r\n',
  ];
  const { status, id, error } = refusalIn(await talk(gateway, upload.join('')));
  assert.deepEqual([status, id, error.kind], [400, 'mine', 'malformed']);
  await until('it was observed', () => gateway.exchanges.length === 1);
  assert.deepEqual([gateway.exchanges[0]?.status, gateway.exchanges[0]?.class], [400, '4xx']);
});

for (const [what, rest] of [
  ['breaks the rules', 'no chunk\r\n'],
  ['never comes', null],
] as const)
  test(`a request that was answered has one answer and one line, also when the rest of its body ${what}`, async () => {
    await using gateway = await startGateway();
    const refused = 'POST /nowhere HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n';
    const begun = (socket: Socket) =>
      socket.once('data', () => {
        if (rest === null) socket.end();
        else socket.write(rest);
      });
    const { status, id } = refusalIn(await talk(gateway, refused, { begun, lingering: true }));
    assert.equal(status, 404);
    assert.deepEqual(
      gateway.exchanges.map((exchange) => exchange.requestId),
      [id],
    );
  });

test('no second answer is written into a running one: it is broken off, and never looks whole', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave((socket) => {
    socket.write(head('200 OK', { 'Content-Type': 'text/event-stream', 'Transfer-Encoding': 'chunked' }));
    socket.write('6\r\nfirst!\r\n');
  });
  await using gateway = await startGateway({ env: { SVC_LLM_BACKEND_URL: upstream.url } });
  const said = await talk(gateway, `${chat('Content-Length: 2\r\n')}{}`, {
    begun: (socket) => void socket.once('data', () => socket.write('garbage\r\n\r\n')),
  });
  assert.equal(said.match(/HTTP\/1\.1 /g)?.length, 1, said);
  assert.match(said, /first!/);
  assert.doesNotMatch(said, /\r\n0\r\n\r\n$/, 'no end of a whole answer');
  await until('the slot is free', () => gateway.app.slot.status().holder === null);
  await until('it was observed', () => gateway.exchanges.length === 1);
  assert.equal(gateway.exchanges[0]?.errorKind, 'malformed');
});

test('garbage after a request that waits for its answer frees what it held', async () => {
  await using gateway = await startGateway({ transcribe: untilAborted });
  const file = toneWav(1).toString('latin1');
  const part = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n';
  const body = `${part}${file}\r\n--x--\r\n`;
  const top =
    'POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n';
  let open: Socket | undefined;
  const said = talk(gateway, `${top}Content-Length: ${body.length}\r\n\r\n${body}`, {
    lingering: true,
    async begun(socket) {
      open = socket;
      await until('it runs', () => gateway.running() === 1);
      socket.write('garbage\r\n\r\n');
    },
  });
  assert.equal(refusalIn(await said).status, 400);
  await until('the slot is free', () => gateway.app.slot.status().holder === null);
  await until('it stopped', () => gateway.running() === 0);
  open?.destroy();
});

test('who listens to the server behind the router sees whole addresses', async () => {
  await using gateway = await startGateway();
  const seen: (string | undefined)[] = [];
  gateway.app.server.on('request', ({ url }) => seen.push(url));
  const paths = [
    '/v1/models',
    '/admin/api/metrics',
    '/asr?output=json',
    '/v1/audio/transcriptions',
    '/health',
  ];
  for (const path of paths) await (await fetch(`${gateway.base}${path}`)).text();
  assert.deepEqual(seen, paths);
});
