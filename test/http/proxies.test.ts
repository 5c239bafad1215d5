/** Speech and chat are passed on unchanged at both ends, and the clients that have to wait meanwhile are told so. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import { test } from 'node:test';
import { modelsListSchema } from '../../src/http/openapi/openapi.ts';
import { leastOf } from '../cost.ts';
import { head, startHostileUpstream, wholeAnswer } from '../faults/hostile-upstream.ts';
import { type LocalServer, listening } from '../local-server.ts';
import { form, type Gateway, json, post, startGateway, toneWav, until, untilAborted } from './harness.ts';

interface Arrived {
  method: string | undefined;
  url: string | undefined;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** Answers every request with a description of what arrived, as JSON. */
async function startEcho(): Promise<LocalServer> {
  const server = createServer(async (req, res) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk);
    const { method, url, headers } = req;
    res.setHeader('Content-Type', 'application/json');
    res.end(JSON.stringify({ method, url, headers, body: Buffer.concat(chunks).toString('base64') }));
  });
  return await listening(server);
}

/** Works below fetch, which does not send every header, method and path. */
function send(
  gateway: Gateway,
  path: string,
  { method = 'POST', headers = {}, body }: { method?: string; headers?: object; body?: Buffer } = {},
): Promise<{ status: number; headers: IncomingHttpHeaders; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(gateway.base);
    const options = { hostname, port, path, method, headers: { ...headers }, agent: false };
    const req = request(options, async (res) => {
      const chunks: Buffer[] = [];
      for await (const chunk of res) chunks.push(chunk);
      resolve({ status: res.statusCode ?? 0, headers: res.headers, body: Buffer.concat(chunks) });
    });
    req.on('error', reject);
    req.end(body);
  });
}

async function arrived(...args: Parameters<typeof send>): Promise<Arrived> {
  const { body } = await send(...args);
  const echo = JSON.parse(body.toString());
  return { ...echo, body: Buffer.from(echo.body, 'base64') };
}

const upstreams = (url: string) => ({ SVC_TTS_UPSTREAM_URL: url, SVC_LLM_BACKEND_URL: url });

test('path and query arrive untouched, below the upstream’s own path', async () => {
  await using echo = await startEcho();
  await using gateway = await startGateway({ env: upstreams(echo.base) });
  await using below = await startGateway({ env: upstreams(`${echo.base}/team/tts/`) });
  for (const path of [
    '/v1/audio/speech',
    '/v1/audio/voices/Jos%C3%A9%20x?a=1&b=%2F..%2F&&c=[]',
    '/v1/audio//a//b?u=http://x//y',
    "/v1/audio/a'b(c)|d{e}",
    '/v1/audio/%252e%252e/...',
  ]) {
    assert.equal((await arrived(gateway, path)).url, path);
    assert.equal((await arrived(below, path)).url, `/team/tts${path}`);
  }
  const { host } = new URL(gateway.base);
  const absolute = await arrived(gateway, `http://${host}/v1/audio//voices?x=%2F`, { method: 'GET' });
  assert.equal(absolute.url, '/v1/audio//voices?x=%2F');
});

test('a path that an upstream could take for one outside of its prefix is a 400 and reaches none', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({ env: upstreams(upstream.url) });
  const { host } = new URL(gateway.base);
  const outside = [
    '../../admin/shutdown',
    '%2e%2e/%2E%2E/admin',
    '..%2f..%2fadmin',
    '..\\..\\admin',
    'x%5c..',
    '..;/x',
  ];
  for (const below of [
    '/v1/audio/',
    `http://${host}/v1/audio/`,
    '/v1/audio/voices/',
    '/v1/chat/completions/',
  ])
    for (const path of outside) {
      const { status, body } = await send(gateway, below + path);
      assert.equal(status, 400, below + path);
      assert.equal(JSON.parse(body.toString()).error.code, 'bad_request');
    }
  const elsewhere = await send(gateway, 'http://elsewhere/v1/audio/voices', { method: 'GET' });
  assert.equal(elsewhere.status, 400, 'the host of the target is not the one in Host');
  assert.deepEqual(upstream.heads, []);
});

test('every method arrives, with its body in every framing', async () => {
  await using echo = await startEcho();
  await using gateway = await startGateway({ env: upstreams(echo.base) });
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const) {
    for (const framing of [{ 'Content-Length': '5' }, { 'Transfer-Encoding': 'chunked' }]) {
      const seen = await arrived(gateway, '/v1/audio/voices/anna', {
        ...{ method, headers: framing, body: Buffer.from('hello') },
      });
      assert.equal(seen.method, method);
      assert.equal(seen.body.toString(), 'hello', `${method} ${JSON.stringify(framing)}`);
    }
    if (method !== 'POST')
      assert.equal((await arrived(gateway, '/v1/audio/voices', { method })).body.length, 0);
  }
  assert.equal((await send(gateway, '/v1/audio/voices', { method: 'HEAD' })).status, 200);
});

test('OPTIONS is answered here, so no upstream sees it and no slot is taken', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({ env: upstreams(upstream.url) });
  using _held = gateway.app.slot.take('llm', 'test');
  for (const [path, allow] of [
    ['/v1/audio/speech', 'GET, POST, PUT, PATCH, DELETE, HEAD'],
    ['/v1/audio/voices/anna', 'GET, POST, PUT, PATCH, DELETE, HEAD'],
    ['/v1/chat/completions', 'POST'],
    ['/v1/audio/transcriptions', 'POST'],
    ['/v1/models', 'GET, HEAD'],
  ] as const) {
    for (const headers of [{}, { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'POST' }]) {
      const answer = await send(gateway, path, { method: 'OPTIONS', headers });
      assert.equal(answer.status, 204, path);
      assert.equal(answer.headers.allow, allow);
      assert.equal(answer.headers['access-control-allow-origin'], undefined);
    }
  }
  assert.deepEqual(upstream.heads, []);
  await until('all were observed', () => gateway.exchanges.length === 10);
  assert(gateway.exchanges.every((exchange) => exchange.category === undefined));
});

test('an upstream’s Access-Control headers stay behind, and the gateway decides who may read', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave(
    wholeAnswer('{}', '200 OK', {
      ...{ 'access-control-allow-origin': '*', 'Access-Control-Allow-Credentials': 'true' },
      ...{ 'Access-Control-Expose-Headers': 'X-Secret', 'X-Kept': 'yes' },
    }),
  );
  const friend = 'https://friend.example';
  await using gateway = await startGateway({
    env: { ...upstreams(upstream.url), SVC_CORS_ORIGINS: friend },
  });
  const own = await send(gateway, '/v1/audio/speech');
  assert.equal(own.headers['x-kept'], 'yes');
  assert(!Object.keys(own.headers).some((name) => name.startsWith('access-control-')));
  const shared = await send(gateway, '/v1/audio/speech', { headers: { Origin: friend } });
  assert.equal(shared.headers['access-control-allow-origin'], friend);
  assert.equal(shared.headers['access-control-allow-credentials'], undefined);
  assert.doesNotMatch(String(shared.headers['access-control-expose-headers']), /X-Secret/);
});

test('bodies of every size arrive byte for byte in every framing and in pieces of every size', async () => {
  await using echo = await startEcho();
  await using gateway = await startGateway({ env: upstreams(`${echo.base}/team`) });
  const { hostname, port } = new URL(gateway.base);
  const ask = (headers: object, pieces: Buffer[]) =>
    new Promise<Arrived>((resolve, reject) => {
      const options = { hostname, port, path: '/v1/audio/voices?a=1', method: 'POST', agent: false };
      const req = request({ ...options, headers: { ...headers } }, async (res) => {
        const chunks: Buffer[] = [];
        for await (const chunk of res) chunks.push(chunk);
        const seen = JSON.parse(Buffer.concat(chunks).toString());
        resolve({ ...seen, body: Buffer.from(seen.body, 'base64') });
      });
      req.on('error', reject);
      for (const piece of pieces) req.write(piece);
      req.end();
    });
  const mib = 1024 * 1024;
  for (const size of [1, 2, 65_536, mib - 1, mib, mib + 1, 3 * mib + 7]) {
    const body = randomBytes(size);
    const cut = [body.subarray(0, 1), body.subarray(1, size / 3), body.subarray(Math.max(1, size / 3))];
    for (const headers of [{ 'Content-Length': String(size) }, { 'Transfer-Encoding': 'chunked' }]) {
      for (const pieces of [[body], cut]) {
        const seen = await ask(headers, pieces);
        assert(body.equals(seen.body), `${size} bytes, ${JSON.stringify(headers)}, ${pieces.length} pieces`);
        assert.equal(seen.url, '/team/v1/audio/voices?a=1');
        assert.equal(seen.headers['content-length'], headers['Content-Length']);
        assert.equal(seen.headers['transfer-encoding'], headers['Transfer-Encoding']);
      }
    }
  }
});

test('headers arrive, except those of the connection', async () => {
  await using echo = await startEcho();
  await using gateway = await startGateway({ env: upstreams(echo.base) });
  const { headers } = await arrived(gateway, '/v1/chat/completions', {
    headers: {
      ...{ Authorization: 'Bearer secret', 'X-Custom': 'kept', 'Accept-Encoding': 'br', Cookie: 'a=1; b=2' },
      ...{ Connection: 'keep-alive, X-Hop', 'X-Hop': '1', TE: 'trailers', 'Proxy-Authorization': 'Basic x' },
      ...{
        'Keep-Alive': 'timeout=5',
        'Proxy-Connection': 'keep-alive',
        Upgrade: 'h2c',
        'X-Request-ID': 'mine',
        'Content-Type': 'application/json',
      },
    },
    body: Buffer.from('{}'),
  });
  assert.equal(headers.authorization, 'Bearer secret');
  assert.equal(headers['x-custom'], 'kept');
  assert.equal(headers['accept-encoding'], 'br');
  assert.equal(headers.cookie, 'a=1; b=2');
  assert.equal(headers['x-request-id'], 'mine');
  assert.equal(headers.host, new URL(echo.base).host);
  for (const name of ['x-hop', 'te', 'proxy-authorization', 'proxy-connection', 'keep-alive', 'upgrade'])
    assert.equal(headers[name], undefined, name);
});

test('a stream arrives byte for byte, each chunk within 5 ms', async () => {
  await using upstream = await startHostileUpstream();
  const events = Array.from(
    { length: 50 },
    (_, i) => `data: {"n":${i},"text":"ünï ${'x'.repeat(i)}"}\r\n\r\n`,
  );
  const sentAt: number[] = [];
  upstream.behave(async (socket) => {
    socket.setNoDelay(true);
    socket.write(head('200 OK', { 'Content-Type': 'text/event-stream' }));
    for (const event of events) {
      await new Promise((resolve) => setTimeout(resolve, 10));
      sentAt.push(performance.now());
      socket.write(event);
    }
    socket.end();
  });
  await using gateway = await startGateway({ env: upstreams(upstream.url) });
  // The machine may be busy with other tests, so the median counts, in the best of a few streams.
  const medianMs = await leastOf(5, async () => {
    sentAt.length = 0;
    const init = { method: 'POST', body: '{"stream":true}' };
    const response = await fetch(`${gateway.base}/v1/chat/completions`, init);
    const chunks: Buffer[] = [];
    const delaysMs: number[] = [];
    for await (const chunk of response.body ?? []) {
      delaysMs.push(performance.now() - (sentAt[chunks.length] ?? 0));
      chunks.push(Buffer.from(chunk));
    }
    assert.equal(Buffer.concat(chunks).toString(), events.join(''));
    delaysMs.sort((a, b) => a - b);
    return delaysMs[Math.floor(delaysMs.length / 2)] ?? Number.POSITIVE_INFINITY;
  });
  assert(medianMs < 5, `median ${medianMs} ms`);
});

test('headers are passed on before there is any body', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave((socket) => socket.write(head('200 OK', { 'Content-Type': 'text/event-stream' })));
  await using gateway = await startGateway({ env: upstreams(upstream.url) });
  const leave = new AbortController();
  const init = { method: 'POST', body: '{}', signal: leave.signal };
  const response = await fetch(`${gateway.base}/v1/chat/completions`, init);
  assert.equal(response.headers.get('content-type'), 'text/event-stream');
  leave.abort();
  await until('the upstream is let go', () => upstream.open() === 0);
});

test('while one capability holds the slot, all three are refused at once and told which one it is', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave(() => undefined);
  await using gateway = await startGateway({
    env: upstreams(upstream.url),
    transcribe: untilAborted,
  });
  const speak = (signal: AbortSignal) =>
    fetch(`${gateway.base}/v1/audio/speech`, { method: 'POST', body: '{}', signal });
  const chat = (signal: AbortSignal) =>
    fetch(`${gateway.base}/v1/chat/completions`, { method: 'POST', body: '{}', signal });
  const listen = (signal: AbortSignal) => post(gateway, form(toneWav(1)), { signal });
  for (const [holder, hold] of [
    ['tts', speak],
    ['llm', chat],
    ['asr', listen],
  ] as const) {
    const leave = new AbortController();
    const held = hold(leave.signal).catch(() => undefined);
    await until('it is held', () => gateway.app.slot.status().holder === holder);
    for (const refused of [speak, chat, listen]) {
      const response = await refused(AbortSignal.timeout(5000));
      const { error } = await json(response);
      assert.equal(response.status, 503);
      assert.equal(response.headers.get('retry-after'), '5');
      assert.deepEqual([error.code, error.provider, error.held_by], ['slot_busy', 'voxgate', holder]);
      assert(error.held_for_ms >= 0);
    }
    const { status } = await fetch(`${gateway.base}/v1/models`);
    assert.equal(status, 200, 'the models list never waits for the slot');
    leave.abort();
    await held;
    await until('it is free', () => gateway.app.slot.status().holder === null);
  }
  await until('all were observed', () => gateway.exchanges.length === 15);
  const classes = gateway.exchanges.filter((e) => e.category).map((e) => e.class);
  assert.equal(classes.filter((c) => c === '503-busy').length, 9);
  assert.equal(classes.filter((c) => c === 'client-disconnect').length, 3);
});

test('requests one after the other never meet a busy slot', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({
    env: { ...upstreams(upstream.url), SVC_MODEL_KEEP_ALIVE_SEC: '0' },
  });
  for (let i = 0; i < 20; i++) {
    for (const path of ['/v1/audio/speech', '/v1/chat/completions']) {
      const response = await fetch(`${gateway.base}${path}`, { method: 'POST', body: '{}' });
      assert.equal(await response.text(), 'fine');
    }
    for (const stream of ['false', 'true']) {
      const response = await post(gateway, form(toneWav(0.5), { stream }));
      assert.match(await response.text(), /Hello there/);
    }
  }
});

test('the operator can stop the holder of the slot', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave(() => undefined);
  await using gateway = await startGateway({
    env: upstreams(upstream.url),
    transcribe: untilAborted,
  });
  for (const [ask, isUnderWay] of [
    [
      () => fetch(`${gateway.base}/v1/audio/speech`, { method: 'POST', body: '{}' }),
      () => upstream.heads.length === 1,
    ],
    [() => post(gateway, form(toneWav(1))), () => gateway.running() === 1],
  ] as const) {
    const answer = ask();
    await until('it is under way', isUnderWay);
    assert.equal(gateway.app.slot.stopHolder(), true);
    const response = await answer;
    assert.equal(response.status, 503);
    assert.equal(response.headers.get('retry-after'), null);
    assert.equal((await json(response)).error.code, 'stopped_by_operator');
    await until('the slot is free', () => gateway.app.slot.status().holder === null);
  }
});

test('a request that holds the slot for longer than SVC_MAX_HOLD_SEC is stopped', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave((socket) => {
    // The upstream is never silent, so only the longest hold can end the request.
    const drip = setInterval(() => socket.write(' '), 20);
    socket.on('close', () => clearInterval(drip));
    socket.write(`${head('200 OK', { 'Content-Type': 'text/event-stream' })}`);
  });
  await using gateway = await startGateway({
    env: { ...upstreams(upstream.url), SVC_MAX_HOLD_SEC: '0.6' },
    transcribe: untilAborted,
  });
  const listening = await post(gateway, form(toneWav(1)));
  assert.equal(listening.status, 503);
  assert.equal(listening.headers.get('retry-after'), null);
  assert.equal((await json(listening)).error.code, 'held_too_long');
  const streaming = await post(gateway, form(toneWav(1), { stream: 'true' }));
  assert.match(await streaming.text(), /event: error\ndata: .*"held_too_long"/);
  const speaking = await fetch(`${gateway.base}/v1/audio/speech`, { method: 'POST', body: '{}' });
  await assert.rejects(speaking.text(), 'an answer cut short never looks whole');
  await until('the slot is free', () => gateway.app.slot.status().holder === null);
  await until('all are over', () => gateway.exchanges.length === 3);
  assert.deepEqual(
    gateway.exchanges.map((exchange) => [exchange.class, exchange.status]),
    [
      ['5xx', 503],
      ['5xx', 503],
      ['5xx', 503],
    ],
  );
});

test('a client that waits for 100 Continue gets it when the slot is free, and the 503 when it is not', async () => {
  await using echo = await startEcho();
  await using gateway = await startGateway({ env: upstreams(echo.base) });
  const ask = () =>
    new Promise<{ status: number; continued: boolean; body: string }>((resolve, reject) => {
      let continued = false;
      const headers = { Expect: '100-continue', 'Content-Length': '5' };
      const req = request(`${gateway.base}/v1/audio/speech`, { method: 'POST', headers, agent: false });
      req.on('continue', () => {
        continued = true;
        req.end('hello');
      });
      req.on('response', async (res) => {
        let body = '';
        for await (const chunk of res) body += chunk;
        resolve({ status: res.statusCode ?? 0, continued, body });
      });
      req.on('error', reject);
      req.flushHeaders();
    });
  const free = await ask();
  assert.deepEqual([free.status, free.continued], [200, true]);
  assert.equal(JSON.parse(free.body).headers.expect, undefined);
  using _held = gateway.app.slot.take('llm', 'test');
  const busy = await ask();
  assert.deepEqual([busy.status, busy.continued], [503, false]);
});

test('a large upload that is refused reads its 503 on a connection that stays in step', async () => {
  await using gateway = await startGateway();
  using _held = gateway.app.slot.take('llm', 'test');
  const { hostname, port } = new URL(gateway.base);
  const { Agent } = await import('node:http');
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let i = 0; i < 3; i++) {
    const status = await new Promise<number>((resolve, reject) => {
      const headers = {
        'Content-Length': String(30_000_000),
        'Content-Type': 'multipart/form-data; boundary=x',
      };
      const options = { hostname, port, path: '/v1/audio/transcriptions', method: 'POST', headers, agent };
      const req = request(options, (res) => {
        res.resume();
        res.on('end', () => resolve(res.statusCode ?? 0));
      });
      req.on('error', reject);
      req.end(Buffer.alloc(30_000_000));
    });
    assert.equal(status, 503);
  }
  agent.destroy();
});

test('the requested model and the sizes of the bodies are noted', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave(wholeAnswer('12345'));
  await using gateway = await startGateway({ env: upstreams(upstream.url) });
  const body = JSON.stringify({ messages: [], model: 'llama' });
  await (
    await fetch(`${gateway.base}/v1/chat/completions`, {
      ...{ method: 'POST', body, headers: { 'Content-Type': 'application/json' } },
    })
  ).text();
  await until('it is over', () => gateway.exchanges.length === 1);
  const [exchange] = gateway.exchanges;
  assert.equal(exchange?.model, 'llama');
  assert.equal(exchange?.provider, 'llm');
  assert.equal(exchange?.bytesIn, body.length);
  assert.equal(exchange?.bytesOut, 5);
  assert((exchange?.slotWaitMs ?? 1000) < 100);
});

test('the model is found in front of an image that is too large to be looked at', async () => {
  await using echo = await startEcho();
  await using gateway = await startGateway({ env: upstreams(echo.base) });
  const body = JSON.stringify({ model: 'llama', messages: [{ content: 'x'.repeat(3_000_000) }] });
  const headers = { 'Content-Type': 'application/json' };
  await (await fetch(`${gateway.base}/v1/chat/completions`, { method: 'POST', body, headers })).text();
  await until('it is over', () => gateway.exchanges.length === 1);
  assert.deepEqual([gateway.exchanges[0]?.model, gateway.exchanges[0]?.bytesIn], ['llama', body.length]);
});

test('a body counts as far as it was read when the slot is taken while it comes', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({ env: upstreams(upstream.url), transcribe: untilAborted });
  const { hostname, port } = new URL(gateway.base);
  const options = { hostname, port, path: '/v1/chat/completions', method: 'POST', agent: false };
  const sent = request({ ...options, headers: { 'Content-Length': 20 } });
  const answer = once(sent, 'response');
  sent.write('x'.repeat(10));
  await until('the slot was free when it came', () => gateway.arrived() === 1);
  const leave = new AbortController();
  const held = post(gateway, form(toneWav(0.5)), { signal: leave.signal }).catch(() => undefined);
  await until('the slot is held', () => gateway.app.slot.status().holder === 'asr');
  sent.end('x'.repeat(10));
  const [response] = await answer;
  assert.equal(response.statusCode, 503);
  response.resume();
  await until('it is over', () => gateway.exchanges.length === 1);
  assert.deepEqual([gateway.exchanges[0]?.class, gateway.exchanges[0]?.bytesIn], ['503-busy', 20]);
  leave.abort();
  await held;
});

test('a 499 of the upstream is its answer, and no client that left', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave((socket) => socket.end(`${head('499 Gone', { 'Content-Length': '2' })}no`));
  await using gateway = await startGateway({ env: upstreams(upstream.url) });
  const response = await fetch(`${gateway.base}/v1/chat/completions`, { method: 'POST', body: '{}' });
  assert.deepEqual([response.status, (await json(response)).error.kind], [499, 'malformed']);
  await until('it is over', () => gateway.exchanges.length === 1);
  const [{ status, class: as, errorKind } = {}] = gateway.exchanges;
  assert.deepEqual([status, as, errorKind], [499, '4xx', 'malformed']);
});

async function startDaemon(routes: Record<string, unknown>): Promise<LocalServer> {
  const server = createServer((req, res) => {
    const answer = routes[req.url ?? ''];
    if (answer === undefined) res.writeHead(404).end('{}');
    else if (answer !== 'hang') res.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  });
  return await listening(server);
}

async function upstreamModels(env: Record<string, string>) {
  await using gateway = await startGateway({ env });
  const { data } = modelsListSchema.parse(await json(await fetch(`${gateway.base}/v1/models`)));
  return data.filter((model) => !model.capabilities.includes('asr'));
}

test('the list of models has the speech upstream and the chat daemon’s models while they answer', async () => {
  await using tts = await startDaemon({ '/health': 'ok' });
  await using openai = await startDaemon({
    '/v1/models': { data: [{ id: 'llama3:8b', created: 5, owned_by: 'meta' }, { id: 'auto' }] },
  });
  await using ollama = await startDaemon({
    '/api/tags': { models: [{ name: 'hf.co/x/y:Q4', modified_at: '2024-01-01T00:00:00Z' }] },
  });
  const found = await upstreamModels({ SVC_TTS_UPSTREAM_URL: tts.base, SVC_LLM_BACKEND_URL: openai.base });
  assert.deepEqual(
    found.map((m) => [m.id, m.capabilities[0], m.supports_streaming, m.owned_by]),
    [
      ['tts', 'tts', true, 'tts'],
      ['llama3:8b', 'llm', true, 'meta'],
    ],
    'an id of the gateway’s own is not taken over',
  );
  assert(!found.some((model) => 'languages' in model));
  const named = await upstreamModels({
    ...{ SVC_TTS_UPSTREAM_URL: tts.base, SVC_TTS_MODEL_ID: 'kokoro', SVC_LLM_BACKEND_URL: ollama.base },
  });
  assert.deepEqual(
    named.map((m) => [m.id, m.created]),
    [
      ['kokoro', named[0]?.created],
      ['hf.co/x/y:Q4', 1_704_067_200],
    ],
  );
  await using gateway = await startGateway({ env: { SVC_LLM_BACKEND_URL: ollama.base } });
  for (const path of ['hf.co/x/y:Q4', encodeURIComponent('hf.co/x/y:Q4')])
    assert.equal((await json(await fetch(`${gateway.base}/v1/models/${path}`))).id, 'hf.co/x/y:Q4');
});

test('an id that an upstream lists again, or that is not its own, is listed once, as what it is asked for', async () => {
  const models = ['twice', 'twice', 'tts', 'auto'].map((id, created) => ({ id, created }));
  await using daemon = await startDaemon({ '/health': {}, '/v1/models': { data: models } });
  await using gateway = await startGateway({ env: upstreams(daemon.base) });
  const { data } = modelsListSchema.parse(await json(await fetch(`${gateway.base}/v1/models`)));
  assert.equal(new Set(data.map(({ id }) => id)).size, data.length);
  for (const entry of data)
    assert.deepEqual(await json(await fetch(`${gateway.base}/v1/models/${entry.id}`)), entry);
  const theirs = data.filter(({ owned_by }) => owned_by !== 'voxgate');
  assert.deepEqual(
    theirs.map((model) => [model.id, model.capabilities[0]]),
    [
      ['tts', 'tts'],
      ['twice', 'llm'],
    ],
  );
});

test('an embedding model is listed as one, by what its daemon says or by its name', async () => {
  const names = {
    ...{
      'nomic-embed-text:latest': true,
      'BAAI/bge-m3': true,
      'all-minilm:l6-v2': true,
      'qwen3-embedding': true,
    },
    ...{ 'llama3:8b': false, 'bge-reranker-v2-m3': false, minilms: false, gtech: false },
  };
  const data = [
    ...Object.keys(names).map((id) => ({ id })),
    ...[
      { id: 'says-so', capabilities: ['embedding'] },
      { id: 'embedless', capabilities: ['completion', 'vision'] },
    ],
    ...[
      { id: 'of-lm-studio', type: 'embeddings' },
      { id: 'embed-chat', type: 'llm' },
      { id: 'odd', type: 7 },
    ],
    ...[{ id: 'paraphrase' }, { id: 'tagged' }],
  ];
  const models = [
    { name: 'paraphrase', details: { family: 'bert' } },
    { name: 'tagged', details: { family: 'gemma3' }, capabilities: ['embedding'] },
    { name: 'null', details: null, capabilities: null },
  ];
  const embeds = [
    ...Object.entries(names).flatMap(([name, embeds]) => (embeds ? [name] : [])),
    ...['says-so', 'of-lm-studio', 'paraphrase', 'tagged'],
  ];
  await using openai = await startDaemon({ '/v1/models': { data }, '/api/tags': { models } });
  const listed = await upstreamModels({ SVC_LLM_BACKEND_URL: openai.base });
  assert.equal(listed.length, data.length);
  for (const { id, capabilities, supports_streaming } of listed)
    assert.deepEqual(
      [capabilities, supports_streaming],
      [[embeds.includes(id) ? 'embedding' : 'llm'], !embeds.includes(id)],
      id,
    );
  await using ollama = await startDaemon({ '/api/tags': { models } });
  const tags = await upstreamModels({ SVC_LLM_BACKEND_URL: ollama.base });
  assert.deepEqual(
    tags.map(({ capabilities: [capability] }) => capability),
    ['embedding', 'embedding', 'llm'],
  );
});

test('an odd entry of an upstream’s list costs itself or its odd field, never the list', async () => {
  await using openai = await startDaemon({
    '/v1/models': {
      data: [
        { id: 'null-date', created: null, owned_by: null },
        { id: 'fraction', created: 1.5, owned_by: 7 },
        ...[{ id: '' }, { id: 5 }, { name: 'no id' }, null, 'text', { id: 'x'.repeat(300) }],
        { id: 'good', created: 5, owned_by: 'meta' },
      ],
    },
  });
  await using ollama = await startDaemon({
    '/api/tags': {
      models: [
        { name: 'null-date', modified_at: null },
        { name: 'no-date', modified_at: 'yesterday' },
        ...[{ name: null }, null, {}],
        { name: 'good', modified_at: '2024-01-01T00:00:00Z' },
      ],
    },
  });
  const listed = async (url: string) =>
    (await upstreamModels({ SVC_LLM_BACKEND_URL: url })).map((m) => [m.id, m.created, m.owned_by]);
  const [nullDate, fraction, good] = await listed(openai.base);
  assert(Number.isInteger(nullDate?.[1]) && Number.isInteger(fraction?.[1]), 'the start of the gateway');
  assert.deepEqual(
    [nullDate?.[0], nullDate?.[2], fraction?.[0], fraction?.[2]],
    ['null-date', 'llm', 'fraction', 'llm'],
  );
  assert.deepEqual(good, ['good', 5, 'meta']);
  const tags = await listed(ollama.base);
  assert.deepEqual(
    tags.map(([id]) => id),
    ['null-date', 'no-date', 'good'],
  );
  assert.equal(tags[2]?.[1], 1_704_067_200);
});

test('upstreams that are dead, hang, fail or lie yield no entry, within 1.2 s', async () => {
  await using hanging = await startDaemon({ '/health': 'hang', '/v1/models': 'hang', '/api/tags': 'hang' });
  await using lying = await startDaemon({
    ...{ '/v1/models': '<html>', '/api/tags': { models: 'many' } },
  });
  await using endless = await startHostileUpstream();
  endless.behave((socket) => {
    socket.write(head('200 OK'));
    const pour = setInterval(() => socket.write('x'.repeat(1_000_000)), 1);
    socket.on('close', () => clearInterval(pour));
  });
  for (const url of ['http://127.0.0.1:9', hanging.base, lying.base, endless.url]) {
    const tookMs = await leastOf(1200, async () => {
      await using gateway = await startGateway({ env: upstreams(url) });
      const startedAt = performance.now();
      const { data } = await json(await fetch(`${gateway.base}/v1/models`));
      assert(!data.some((m: { capabilities: string[] }) => m.capabilities[0] === 'llm'));
      return performance.now() - startedAt;
    });
    assert(tookMs < 1200, `${url}: ${tookMs} ms`);
  }
});
