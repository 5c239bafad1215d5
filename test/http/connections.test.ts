/** Connections are bounded before anything is known about the client: in time, bytes, fields, requests and number. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorEnvelopeSchema } from '../../src/http/openapi/openapi.ts';
import { head, startHostileUpstream } from '../faults/hostile-upstream.ts';
import { form, json, post, startGateway, toneWav, until, untilAborted } from './harness.ts';
import { type RawClient, rawClient, statusesIn, trickle } from './raw-client.ts';

const HEALTH = 'GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n';
const posting = (path: string, type: string, framing = 'Content-Length: 1000') =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\n${framing}\r\n\r\n`;

async function refusal(client: RawClient, status: number, code: string) {
  await until('it is closed', client.closed);
  assert.deepEqual(statusesIn(client.said()), [status], client.said());
  const { error } = errorEnvelopeSchema.parse(JSON.parse(client.said().split('\r\n\r\n')[1] ?? ''));
  assert.equal(error.code, code);
}

test('a head that trickles is a 408 at the deadline, on a used connection too', async () => {
  await using gateway = await startGateway({ budgets: { connection: { headMs: 300 } } });
  using first = rawClient(gateway.base, 'GET /health HTTP/1.1\r\nHost: localhost\r\nX: ');
  trickle(first, 'x', 20);
  using used = rawClient(gateway.base, HEALTH);
  await until('it is answered', () => statusesIn(used.said()).length === 1);
  used.write('GET /health HTTP/1.1\r\nX: ');
  trickle(used, 'x', 20);
  await refusal(first, 408, 'request_timeout');
  await until('the other is closed', used.closed);
  assert.deepEqual(statusesIn(used.said()), [200, 408]);
  const seen = gateway.exchanges.map((exchange) => [exchange.path, exchange.status]);
  assert.deepEqual(seen, [
    ['/health', 200],
    [undefined, 408],
    [undefined, 408],
  ]);
});

test('a connection that never sends a byte is closed at the deadline of a head, without an answer', async () => {
  await using gateway = await startGateway({ budgets: { connection: { headMs: 300 } } });
  using client = rawClient(gateway.base);
  await until('it is closed', client.closed);
  assert.equal(client.said(), '');
});

test('a head of 100 fields is served, and one of 101 is a 431', async () => {
  await using gateway = await startGateway();
  const fields = (count: number) => Array.from({ length: count }, (_, i) => `X${i}: y\r\n`).join('');
  const get = (count: number) =>
    `GET /health HTTP/1.1\r\nConnection: close\r\n${fields(count - 2)}Host: localhost\r\n\r\n`;
  using most = rawClient(gateway.base, get(100));
  await until('it is answered', most.closed);
  assert.deepEqual(statusesIn(most.said()), [200]);
  for (const count of [101, 2500]) {
    using client = rawClient(gateway.base, get(count));
    await refusal(client, 431, 'headers_too_large');
  }
});

test('a head of 16 KiB is served, and a longer one is a 431', async () => {
  await using gateway = await startGateway();
  const get = (bytes: number) => {
    const [before, after] = [
      'GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: ',
      '\r\n\r\n',
    ];
    return before + 'x'.repeat(bytes - before.length - after.length) + after;
  };
  using most = rawClient(gateway.base, get(16 * 1024 - 100));
  await until('it is answered', most.closed);
  assert.deepEqual(statusesIn(most.said()), [200]);
  using client = rawClient(gateway.base, get(16 * 1024 + 100));
  await refusal(client, 431, 'headers_too_large');
});

for (const [what, bytes] of [
  ['a key for the dashboard', posting('/admin/session', 'application/json')],
  ['a form of the dashboard', posting('/admin/api/observability/toggle', 'multipart/form-data; boundary=x')],
  [
    'a form of the dashboard in chunks',
    posting('/admin/api/slot/stop', 'application/x-www-form-urlencoded', 'Transfer-Encoding: chunked'),
  ],
] as const)
  test(`${what} that trickles is a 408 at the deadline of a body`, async () => {
    await using gateway = await startGateway({ budgets: { connection: { bodyMs: 300 } } });
    using client = rawClient(gateway.base, bytes);
    trickle(client, bytes.includes('chunked') ? '1\r\nx\r\n' : 'x', 50);
    await refusal(client, 408, 'request_timeout');
    await until('it was observed', () => gateway.exchanges.length === 1);
    assert.deepEqual([gateway.exchanges[0]?.status, gateway.exchanges[0]?.class], [408, '4xx']);
  });

test('an upload and a forwarded body may take longer than other bodies', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({
    env: { SVC_LLM_BACKEND_URL: upstream.url },
    budgets: { connection: { bodyMs: 100 } },
  });
  const file = toneWav(1).toString('latin1');
  const part = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n';
  const body = `${part}${file}\r\n--x--\r\n`;
  const type = 'multipart/form-data; boundary=x';
  for (const [path, sent, contentType] of [
    ['/v1/audio/transcriptions', body, type],
    ['/v1/chat/completions', '{"model":"m"}', 'application/json'],
  ] as const) {
    using client = rawClient(gateway.base, posting(path, contentType, `Content-Length: ${sent.length}`));
    client.write(sent.slice(0, 10));
    await new Promise((resolve) => setTimeout(resolve, 500)); // the time is what is tested
    client.write(sent.slice(10));
    await until('it is answered', () => client.said() !== '');
    assert.deepEqual(statusesIn(client.said()), [200]);
  }
});

test('8 requests may wait for their answers on one connection, and the 9th ends it', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({ env: { SVC_LLM_BACKEND_URL: upstream.url } });
  using client = rawClient(gateway.base, HEALTH.repeat(8));
  await until('all are answered', () => statusesIn(client.said()).length === 8);
  assert.deepEqual([...new Set(statusesIn(client.said()))], [200]);
  client.write(HEALTH);
  await until('the connection goes on', () => statusesIn(client.said()).length === 9);
  gateway.exchanges.length = 0;
  const chat = `${posting('/v1/chat/completions', 'application/json', 'Content-Length: 2')}{}`;
  upstream.behave(() => undefined);
  using flood = rawClient(gateway.base, chat + HEALTH.repeat(1000));
  await until('it is closed', flood.closed);
  assert.equal(flood.said(), '');
  await until('they were observed', () => gateway.exchanges.length === 8);
  assert.deepEqual([...new Set(gateway.exchanges.map(({ status }) => status))], [400]);
  // An answer that has begun is broken off instead.
  upstream.behave((socket) => void socket.write(head('200 OK', { 'Content-Length': '100' })));
  using begun = rawClient(gateway.base, chat);
  await until('it has begun', () => begun.said() !== '');
  begun.write(HEALTH.repeat(8));
  await until('it is closed', begun.closed);
  assert.deepEqual(statusesIn(begun.said()), [200]);
  await until('the slot is free', () => gateway.app.slot.status().holder === null);
});

test('a client that leaves ends all of its requests, also those that wait behind another', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave(() => undefined);
  await using gateway = await startGateway({ env: { SVC_LLM_BACKEND_URL: upstream.url } });
  const list = 'GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n'; // it waits for the upstream, too
  const chat = `${posting('/v1/chat/completions', 'application/json', 'Content-Length: 2')}{}`;
  using client = rawClient(gateway.base, list + chat + HEALTH);
  await until('all have arrived', () => gateway.arrived() === 3);
  await until('the chat has the slot', () => gateway.app.slot.status().holder === 'llm');
  client.socket.destroy();
  await until('the slot is free', () => gateway.app.slot.status().holder === null);
  await until('all are over', () => gateway.exchanges.length === 3);
  assert.deepEqual([...new Set(gateway.exchanges.map(({ status }) => status))], [499]);
});

test('a connection that waits too long for its next request is closed', async () => {
  await using gateway = await startGateway({ env: { SVC_KEEP_ALIVE_SEC: '0.2' } });
  using client = rawClient(gateway.base, HEALTH);
  await until('it is closed', client.closed);
  assert.deepEqual(statusesIn(client.said()), [200]);
});

test('at the limit of connections those without a request give way, the silent ones first', async () => {
  const budgets = { connection: { sparedMs: 0 } };
  await using gateway = await startGateway({ env: { SVC_MAX_CONNECTIONS: '4' }, budgets });
  using waiting = rawClient(gateway.base, HEALTH);
  await until('it is answered', () => statusesIn(waiting.said()).length === 1);
  const silent = Array.from({ length: 20 }, () => rawClient(gateway.base));
  await until('most are closed', () => silent.filter((client) => client.closed()).length === 17);
  using honest = rawClient(gateway.base, HEALTH);
  await until('it is answered', () => statusesIn(honest.said()).length === 1);
  assert(!waiting.closed(), 'a connection that was used is kept while a silent one is there');
  waiting.write(HEALTH);
  await until('it goes on', () => statusesIn(waiting.said()).length === 2);
  // Used connections give way too, the one that has waited longest first.
  for (const client of silent) client.socket.destroy();
  const used = [];
  for (let count = 0; count < 4; count++) {
    const client = rawClient(gateway.base, HEALTH);
    used.push(client);
    await until('it is answered', () => statusesIn(client.said()).length === 1);
  }
  await until('the earlier ones gave way', () => honest.closed() && waiting.closed());
  assert(used.every((client) => !client.closed()));
  for (const client of used) client.socket.destroy();
});

test('a new connection is spared for a moment, because its request may be on its way', async () => {
  const budgets = { connection: { sparedMs: 60_000 } };
  await using gateway = await startGateway({ env: { SVC_MAX_CONNECTIONS: '2' }, budgets });
  using used = rawClient(gateway.base, HEALTH);
  await until('it is answered', () => statusesIn(used.said()).length === 1);
  using young = rawClient(gateway.base);
  await until('it is there', () => young.socket.readyState === 'open');
  using third = rawClient(gateway.base, HEALTH);
  await until('it is answered', () => statusesIn(third.said()).length === 1);
  assert(used.closed(), 'the used one gave way');
  young.write(HEALTH);
  await until('it is answered', () => statusesIn(young.said()).length === 1);
});

test('an address that holds every connection gives one up to another, the one that began a request last', async () => {
  await using gateway = await startGateway({ env: { SVC_MAX_CONNECTIONS: '4' } });
  const sending: RawClient[] = [];
  for (let i = 0; i < 4; i++) {
    const client = rawClient(gateway.base, posting('/admin/session', 'application/json'));
    sending.push(client);
    await until('its request has arrived', () => gateway.arrived() === i + 1);
  }
  using other = rawClient(gateway.base, posting('/admin/session', 'application/json'), '127.0.0.2');
  await until('its request has arrived', () => gateway.arrived() === 5);
  await until('the newest is closed', () => sending[3]?.closed() === true);
  assert.deepEqual(
    sending.map((client) => client.closed()),
    [false, false, false, true],
  );
  using again = rawClient(gateway.base, HEALTH);
  await until('it is closed', again.closed);
  assert.equal(again.said(), '');
  assert(!other.closed(), 'the other address keeps its connection');
  for (const client of sending) client.socket.destroy();
});

test('nothing is made of the requests behind the one that ends a connection', async () => {
  let made = 0;
  await using gateway = await startGateway({
    beforeListening: (server) => void server.on('request', () => (made += 1)),
  });
  using flood = rawClient(gateway.base, HEALTH.repeat(1000));
  await until('it is closed', flood.closed);
  await until('it was observed', () => gateway.exchanges.length > 0);
  assert(made <= 9, `${made} requests were made`);
});

test('when every connection has a request under way, a new one is closed and those go on', async () => {
  await using gateway = await startGateway({ env: { SVC_MAX_CONNECTIONS: '2' }, transcribe: untilAborted });
  const running = post(gateway, form(toneWav(1)));
  await until('it runs', () => gateway.running() === 1);
  using sending = rawClient(gateway.base, posting('/admin/session', 'application/json'));
  await until('it has arrived', () => gateway.arrived() === 2);
  using late = rawClient(gateway.base, HEALTH);
  await until('it is closed', late.closed);
  assert.equal(late.said(), '');
  sending.socket.destroy();
  await until('it is gone', () => gateway.exchanges.length === 1);
  assert.equal((await fetch(`${gateway.base}/health`)).status, 200);
  gateway.app.slot.stopHolder();
  assert.equal((await json(await running)).error.code, 'stopped_by_operator');
});
