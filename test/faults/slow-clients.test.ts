/**
 * Clients of speech and chat are slow or silent while they send or read: those that send never hold the slot, those that
 * read hold it for a while at most, and none of their failures counts as the upstream's.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import type { OtherBudgets } from '../../src/limits/budgets.ts';
import { watchReading } from '../../src/limits/client-pace.ts';
import { type Gateway, json, startGateway, until } from '../http/harness.ts';
import { listening } from '../local-server.ts';
import { type HostileUpstream, head, startHostileUpstream, wholeAnswer } from './hostile-upstream.ts';

const PATIENT = '600';
const MIB = 1024 * 1024;
const LATE = /^HTTP\/1\.1 408 [\s\S]*Connection: close[\s\S]*"code":"request_timeout"/;
const PATHS = [
  ['tts', '/v1/audio/speech'],
  ['llm', '/v1/chat/completions'],
] as const;

/** The limits on how slowly clients may send, which are those of uploads, and read. */
type Clients = NonNullable<OtherBudgets['upload'] & OtherBudgets['answer']>;

interface Scene extends AsyncDisposable {
  gateway: Gateway;
  upstream: HostileUpstream;
}

async function startScene(clients: Clients, silenceSec = PATIENT, proxied = {}): Promise<Scene> {
  const upstream = await startHostileUpstream();
  const gateway = await startGateway({
    env: {
      ...{ SVC_TTS_UPSTREAM_URL: upstream.url, SVC_LLM_BACKEND_URL: upstream.url },
      ...{ SVC_TTS_TIMEOUT_SEC: silenceSec, SVC_LLM_TIMEOUT_SEC: silenceSec },
    },
    budgets: { upload: clients, answer: clients, proxied, linger: { idleMs: 100 } },
  });
  return {
    gateway,
    upstream,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

/** Works below HTTP, so that a client can be as slow as it likes. */
function begin({ gateway }: Scene, path: string, framing: string): Socket & { said(): string } {
  const { port, hostname } = new URL(gateway.base);
  const socket = connect(Number(port), hostname);
  let said = '';
  socket.on('error', () => undefined);
  socket.on('data', (data) => {
    said += data.toString('latin1');
  });
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${framing}\r\n\r\n`,
  );
  return Object.assign(socket, { said: () => said });
}

/** Writes a piece every `everyMs` until the connection is gone. */
function trickle(socket: Socket, piece: string | Buffer, everyMs: number): void {
  const timer = setInterval(() => socket.write(piece), everyMs);
  socket.on('close', () => clearInterval(timer));
}

const ask = ({ gateway }: Scene, path: string) =>
  fetch(`${gateway.base}${path}`, { method: 'POST', body: '{"model":"m"}' });

async function over(scene: Scene, limitMs = 5000) {
  const { exchanges } = scene.gateway;
  await until('it is over', () => exchanges.length > 0, limitMs);
  await until('the slot is free', () => scene.gateway.app.slot.status().holder === null);
  return exchanges[0];
}

for (const [category, path] of PATHS) {
  for (const [what, framing] of [
    ['announces a body', 'Content-Length: 100'],
    ['announces chunks', 'Transfer-Encoding: chunked'],
    ['announces a large body', `Content-Length: ${50 * MIB}`],
  ] as const)
    test(`${category}: a client that ${what} and sends nothing holds nothing and is given up`, async () => {
      await using scene = await startScene({ stallMs: 400 });
      const socket = begin(scene, path, framing);
      for (let i = 0; i < 5; i++) {
        const response = await ask(scene, path);
        assert.equal(await response.text(), 'fine', 'others are served meanwhile');
      }
      await until('it is given up', () => socket.closed);
      await until('all are over', () => scene.gateway.exchanges.length === 6);
      const silent = scene.gateway.exchanges.find((exchange) => exchange.status === 408);
      assert.equal(silent?.class, '4xx', 'it has not left');
      assert.equal(silent.category, category);
      assert.equal(scene.upstream.heads.length, 5, 'the upstream was never asked for it');
      assert.match(socket.said(), LATE);
    });

  test(`${category}: a client that trickles a small body holds nothing and is given up`, async () => {
    await using scene = await startScene({ stallMs: 400, leastBytesPerSec: 1000 });
    const socket = begin(scene, path, 'Content-Length: 10000');
    trickle(socket, 'x', 20); // 50 bytes a second are never silent, and much too slow
    assert.equal(await (await ask(scene, path)).text(), 'fine');
    await until('it is given up', () => socket.closed);
    await until('both are over', () => scene.gateway.exchanges.length === 2);
    assert.deepEqual(scene.gateway.exchanges.map((exchange) => exchange.status).sort(), [200, 408]);
    assert((scene.gateway.exchanges.find(({ status }) => status === 408)?.bytesIn ?? 0) > 1);
    assert.match(socket.said(), LATE);
    assert.equal(scene.upstream.heads.length, 1);
  });

  test(`${category}: a slow client that keeps the least rate is served when its body is there`, async () => {
    await using scene = await startScene({ stallMs: 300, leastBytesPerSec: 1000 });
    const socket = begin(scene, path, 'Content-Length: 2000');
    for (let sent = 0; sent < 2000; sent += 100) {
      assert.equal(scene.gateway.app.slot.status().holder, null);
      assert.equal(scene.upstream.heads.length, 0);
      socket.write('x'.repeat(100));
      await new Promise((resolve) => setTimeout(resolve, 40)); // 2500 bytes a second, for longer than the stall
    }
    await until('it is answered', () => socket.said().includes('fine'));
    assert.equal((await over(scene))?.class, '2xx');
    socket.destroy();
  });

  for (const [what, rest] of [
    ['falls silent', ''],
    ['goes on too slowly', 'x'],
    ['goes on just fast enough', 'x'.repeat(1000)],
  ] as const)
    test(`${category}: a client that ${what} in the middle of a large body never held the slot`, async () => {
      await using scene = await startScene({ stallMs: 400, leastBytesPerSec: 10_000, totalMs: 1000 });
      const { gateway, upstream } = scene;
      const socket = begin(scene, path, `Content-Length: ${3 * MIB}`);
      socket.write(Buffer.alloc(2 * MIB, 'x'));
      await until('it is on its way', () => gateway.uploads().length === 1);
      if (rest !== '') trickle(socket, rest, 20);
      assert.equal(gateway.app.slot.status().holder, null);
      assert.equal(await (await ask(scene, path)).text(), 'fine', 'another is served meanwhile');
      await until('it is given up', () => gateway.exchanges.length === 2);
      const late = gateway.exchanges[1];
      assert.deepEqual([late?.status, late?.class, late?.errorKind], [408, '4xx', 'malformed']);
      await until('it is told so', () => LATE.test(socket.said()));
      assert.equal(upstream.heads.length, 1, 'the upstream was never asked for it');
      await until('its file is gone', () => gateway.uploads().length === 0);
      socket.destroy();
    });

  test(`${category}: a client that pauses in a large body is not the upstream’s silence`, async () => {
    await using scene = await startScene({ stallMs: 5000 }, '0.2');
    let body = 0;
    scene.upstream.behave((socket, start) => {
      body = Buffer.byteLength(start) - start.indexOf('\r\n\r\n') - 4;
      socket.on('data', (data) => {
        body += data.length;
        if (body >= 3 * MIB) socket.end(`${head('200 OK', { 'Content-Length': '4' })}done`);
      });
    });
    const socket = begin(scene, path, `Content-Length: ${3 * MIB}`);
    socket.write(Buffer.alloc(2 * MIB, 'x'));
    await until('it is on its way', () => scene.gateway.uploads().length === 1);
    await new Promise((resolve) => setTimeout(resolve, 700));
    assert.equal(body, 0, 'it is passed on when it is whole');
    socket.write(Buffer.alloc(MIB, 'x'));
    await until('it is answered', () => socket.said().endsWith('done'));
    assert.equal((await over(scene))?.class, '2xx');
    socket.destroy();
  });

  test(`${category}: an upstream that takes no more of a body is not the client’s silence`, async () => {
    await using scene = await startScene({}, '0.6');
    scene.upstream.behave((socket) => void socket.pause());
    const socket = begin(scene, path, `Content-Length: ${100 * MIB}`);
    socket.write(Buffer.alloc(100 * MIB, 'x'));
    const exchange = await over(scene);
    assert.deepEqual([exchange?.status, exchange?.errorKind], [502, 'upstream']);
    socket.destroy();
  });

  test(`${category}: a client that breaks the framing of its body is the client’s failure`, async () => {
    await using scene = await startScene({});
    for (const before of ['', `${(2 * MIB).toString(16)}\r\n${'x'.repeat(2 * MIB)}\r\n`]) {
      scene.upstream.behave(() => undefined);
      scene.gateway.exchanges.length = 0;
      const socket = begin(scene, path, 'Transfer-Encoding: chunked');
      socket.write(before);
      if (before !== '') await until('it is on its way', () => scene.gateway.uploads().length === 1);
      socket.write('no chunk\r\n');
      const exchange = await over(scene);
      // The parser refuses it: a mistake of the client, not a client that left, and never the upstream's failure.
      assert.deepEqual([exchange?.status, exchange?.class], [400, '4xx']);
      assert.equal(exchange?.errorKind, 'malformed');
      assert.equal(scene.upstream.heads.length, 0, 'the upstream was never asked for it');
      await until('its file is gone', () => scene.gateway.uploads().length === 0);
      socket.destroy();
    }
  });

  test(`${category}: a client that reads nothing lets go of the slot`, async () => {
    await using scene = await startScene({ stallMs: 400 });
    scene.upstream.behave((socket) => {
      socket.write(head('200 OK', { 'Content-Length': String(100 * MIB) }));
      socket.write(Buffer.alloc(100 * MIB));
    });
    const socket = begin(scene, path, 'Content-Length: 2');
    socket.write('{}');
    await until('it is being answered', () => socket.said().length > 0);
    socket.pause();
    const exchange = await over(scene);
    assert.deepEqual([exchange?.status, exchange?.class], [499, 'client-disconnect']);
    await until('the upstream is let go', () => scene.upstream.open() === 0);
    socket.destroy();
  });

  for (const [what, act] of [
    ['does not read', () => undefined],
    ['leaves', (socket: Socket) => void socket.destroy()],
  ] as const)
    test(`${category}: a client that ${what} when only the end of its answer is left`, async () => {
      await using scene = await startScene({ stallMs: 400 });
      let res: ServerResponse | undefined;
      scene.gateway.app.server.on('request', (_req, its) => {
        res = its;
      });
      // The answer is a little more than the kernel takes, so that the upstream has nothing left to do.
      scene.upstream.behave(async (socket) => {
        socket.write(head('200 OK'));
        while (res?.writableLength === 0) {
          socket.write(Buffer.alloc(8192));
          await new Promise((resolve) => setImmediate(resolve));
        }
        socket.end();
      });
      const socket = begin(scene, path, 'Content-Length: 2');
      socket.pause();
      socket.write('{}');
      await until(
        'the upstream is done',
        () => scene.upstream.heads.length === 1 && scene.upstream.open() === 0,
      );
      assert.equal(scene.gateway.app.slot.status().holder, category);
      act(socket);
      const exchange = await over(scene);
      assert.deepEqual([exchange?.status, exchange?.class], [499, 'client-disconnect']);
      socket.destroy();
    });

  test(`${category}: a client that reads too slowly lets go of the slot`, async () => {
    await using scene = await startScene({ stallMs: 400, leastBytesPerSec: 50 * MIB });
    scene.upstream.behave((socket) => {
      socket.write(head('200 OK', { 'Content-Length': String(200 * MIB) }));
      socket.write(Buffer.alloc(200 * MIB));
    });
    const socket = begin(scene, path, 'Content-Length: 2');
    socket.write('{}');
    // The client takes a piece of 64 KiB every 20 ms: it is never silent for long, and much slower than asked.
    socket.on('data', () => {
      socket.pause();
      setTimeout(() => socket.resume(), 20);
    });
    const exchange = await over(scene, 10_000);
    assert.deepEqual([exchange?.status, exchange?.class], [499, 'client-disconnect']);
    socket.destroy();
  });

  test(`${category}: a client that pauses while it reads is not the upstream’s silence`, async () => {
    await using scene = await startScene({ stallMs: 5000 }, '0.2');
    const answer = randomBytes(40 * MIB);
    scene.upstream.behave((socket) => {
      socket.write(head('200 OK', { 'Content-Length': String(answer.length) }));
      socket.write(answer);
    });
    const response = await ask(scene, path);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    assert.equal(scene.gateway.app.slot.status().holder, category);
    assert(answer.equals(Buffer.from(await response.arrayBuffer())));
    assert.equal((await over(scene))?.class, '2xx');
  });

  test(`${category}: an upstream that is slow to answer costs the client nothing`, async () => {
    await using scene = await startScene({ stallMs: 100, leastBytesPerSec: 1e9 });
    scene.upstream.behave((socket) => {
      setTimeout(() => socket.write(head('200 OK', { 'Content-Length': '4' })), 400);
      setTimeout(() => socket.end('done'), 800);
    });
    assert.equal(await (await ask(scene, path)).text(), 'done');
    assert.equal((await over(scene))?.class, '2xx');
  });
}

test('a client that reads nothing of an answer of the gateway itself is cut off, and others are not', async () => {
  await using scene = await startScene({ stallMs: 400 });
  const { port, hostname } = new URL(scene.gateway.base);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.pause();
  // The answers are more than the kernel takes. The last ones wait for those before them, and not for the client.
  socket.write('GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(8));
  await until('it is cut off', () => scene.gateway.exchanges.length === 8, 20_000);
  const ends = scene.gateway.exchanges.map(({ status }) => status);
  assert(ends.includes(499), ends.join());
  socket.destroy();
});

test('a large answer in one piece may take as long as the least rate allows', async () => {
  const whole = 16 * MIB;
  const server = createServer((_req, res) => {
    const stop = watchReading(res, { stallMs: 400, leastBytesPerSec: MIB }, (error) => res.destroy(error));
    res.once('close', stop);
    res.end(Buffer.alloc(whole));
  });
  await using local = await listening(server);
  const response = await fetch(local.base);
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    bytes += piece.length;
    await new Promise((resolve) => setTimeout(resolve, 8)); // 64 KiB each: some 7 MiB a second
  }
  assert.equal(bytes, whole);
});

test('a bounded number of bodies is in memory at once', async () => {
  await using scene = await startScene({ leadMs: 60_000 }, PATIENT, { inMemory: 2 });
  const sockets = Array.from({ length: 3 }, () =>
    begin(scene, '/v1/chat/completions', `Content-Length: ${MIB / 2 + 1}`),
  );
  for (const socket of sockets) socket.write(Buffer.alloc(MIB / 2, 'x'));
  const refused = () => sockets.find((socket) => socket.said() !== '')?.said() ?? '';
  await until('one was too much', () => refused().endsWith('}'));
  assert.equal(scene.gateway.exchanges.length, 1);
  assert.match(refused(), /^HTTP\/1\.1 503 [\s\S]*"code":"overloaded"/);
  assert.doesNotMatch(refused(), /Retry-After|X-Should-Retry/);
  for (const socket of sockets) socket.destroy();
  await until('their memory is given back', () => scene.gateway.exchanges.length === 3);
  scene.upstream.behave(wholeAnswer('next'));
  const body = Buffer.alloc(MIB - 100, 'x');
  const response = await fetch(`${scene.gateway.base}/v1/chat/completions`, { method: 'POST', body });
  assert.equal(await response.text(), 'next');
});

test('a slot that was taken while a body was on its way is a refusal like any other', async () => {
  await using scene = await startScene({});
  const socket = begin(scene, '/v1/chat/completions', 'Content-Length: 2');
  socket.write('{');
  await until('it has arrived', () => scene.gateway.arrived() === 1);
  using _held = scene.gateway.app.slot.take('asr', 'other');
  socket.write('}');
  await until('it is refused', () => socket.said() !== '');
  assert.match(socket.said(), /^HTTP\/1\.1 503 [\s\S]*Retry-After: 5[\s\S]*"code":"slot_busy"/);
  socket.write('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await until('the connection goes on', () => socket.said().includes('"status":"ok"'));
  const busy = await ask(scene, '/v1/chat/completions');
  assert.equal((await json(busy)).error.held_by, 'asr');
  socket.destroy();
});
