/** The bodies of speech and chat calls: whole before the slot is taken, byte for byte, bounded, and fair to addresses. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { listening } from '../local-server.ts';
import { type Gateway, type Script, startGateway, until } from './harness.ts';
import { type RawClient, rawClient } from './raw-client.ts';

const MIB = 1024 * 1024;
const CALLS = ['/v1/chat/completions', '/v1/audio/speech'] as const;
const [ATTACKER, HONEST] = ['127.0.0.5', '127.0.0.9'];

interface Visit {
  method: string | undefined;
  framing: (string | undefined)[];
  bytes: number;
  sha256: string;
}

interface Scene extends AsyncDisposable {
  gateway: Gateway;
  /** What the upstream has received whole. */
  visits: Visit[];
}

async function startScene({ env, ...script }: Script = {}): Promise<Scene> {
  const visits: Visit[] = [];
  const upstream = createServer(async (req, res) => {
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const chunk of req) {
      hash.update(chunk);
      bytes += chunk.length;
    }
    const framing = [req.headers['content-length'], req.headers['transfer-encoding']];
    visits.push({ method: req.method, framing, bytes, sha256: hash.digest('hex') });
    res.end('made');
  });
  const served = await listening(upstream);
  const urls = { SVC_TTS_UPSTREAM_URL: served.base, SVC_LLM_BACKEND_URL: served.base };
  const gateway = await startGateway({ ...script, env: { ...urls, ...env } });
  return {
    gateway,
    visits,
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await served[Symbol.asyncDispose]();
    },
  };
}

/** Calls from the honest address, on a connection of its own. @returns the status and the text of the answer */
async function call({ gateway }: Scene, path: string, body: Buffer | string, how: object = {}) {
  const options = { method: 'POST', localAddress: HONEST, agent: false, headers: {}, ...how };
  const req = request(gateway.base + path, options).end(body);
  const [res] = (await once(req, 'response')) as [IncomingMessage];
  return [res.statusCode, await text(res)];
}

/** Begins a body that is never sent to its end. */
function park({ gateway }: Scene, path: string, bytes: number): RawClient {
  const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n`;
  const body = Buffer.alloc(bytes, 'x');
  const framing = `Content-Length: ${bytes + 1}\r\n\r\n`;
  return rawClient(gateway.base, Buffer.concat([Buffer.from(head + framing), body]), ATTACKER);
}

const nothingIsLeft = ({ gateway }: Scene) => until('no file is left', () => gateway.uploads().length === 0);

test('bodies that one address parks keep no call of another address out, whatever their size', async () => {
  const budgets = { upload: { leadMs: 60_000 }, proxied: { inMemory: 16 } };
  await using scene = await startScene({ env: { SVC_MAX_UPLOADS: '16' }, budgets });
  for (const bytes of [MIB - 1, MIB + 100]) {
    const parked: RawClient[] = [];
    try {
      for (let i = 0; i < 20; i++) parked.push(park(scene, CALLS[i % 2] ?? '', bytes));
      await until('some are refused', () => parked.some(({ said }) => said().includes('"overloaded"')));
      for (let i = 0; i < 5; i++)
        for (const path of CALLS)
          assert.deepEqual(await call(scene, path, Buffer.alloc(bytes, 'y')), [200, 'made'], `${path} ${i}`);
    } finally {
      for (const { socket } of parked) socket.destroy();
    }
    await nothingIsLeft(scene);
  }
});

test('a body arrives byte for byte, in its own framing, in memory and from a file', async () => {
  await using scene = await startScene();
  for (const [i, size] of [0, 1, 65_537, MIB, MIB + 1, 5 * MIB].entries())
    for (const headers of [{ 'Content-Length': size }, { 'Transfer-Encoding': 'chunked' }])
      for (const method of i % 2 ? ['POST', 'DELETE'] : ['PUT']) {
        const body = randomBytes(size);
        assert.deepEqual(await call(scene, '/v1/audio/voices', body, { method, headers }), [200, 'made']);
        const chunked = 'Transfer-Encoding' in headers;
        assert.deepEqual(scene.visits.at(-1), {
          method,
          framing: chunked ? [undefined, 'chunked'] : [String(size), undefined],
          bytes: size,
          sha256: createHash('sha256').update(body).digest('hex'),
        });
      }
  await until('all are counted', () => scene.gateway.exchanges.length === scene.visits.length);
  const sizes = scene.gateway.exchanges.map(({ bytesIn }) => bytesIn);
  assert.deepEqual(
    sizes,
    scene.visits.map(({ bytes }) => bytes),
  );
  await nothingIsLeft(scene);
});

test('a body that is larger than an upload may be is a 413, announced or not', async () => {
  await using scene = await startScene({ env: { SVC_MAX_UPLOAD_MB: '2' } });
  using announced = rawClient(
    scene.gateway.base,
    `POST /v1/audio/voices HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${3 * MIB}\r\nExpect: 100-continue\r\n\r\n`,
  );
  await until('it is refused', () => announced.said() !== '');
  assert.match(announced.said(), /^HTTP\/1\.1 413 [\s\S]*"code":"file_too_large"/);
  const headers = { 'Transfer-Encoding': 'chunked' };
  const [status, said] = await call(scene, '/v1/audio/voices', Buffer.alloc(3 * MIB), { headers });
  assert.deepEqual([status, JSON.parse(String(said)).error.code], [413, 'file_too_large']);
  assert.deepEqual(scene.visits, []);
  await nothingIsLeft(scene);
});

test('a client that waits for 100 Continue gets it for a large body, and the upstream gets the body', async () => {
  await using scene = await startScene();
  const head = `POST /v1/audio/voices HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${2 * MIB}\r\n`;
  using client = rawClient(scene.gateway.base, `${head}Expect: 100-continue\r\n\r\n`);
  await until('it may continue', () => client.said().startsWith('HTTP/1.1 100 '));
  client.write(Buffer.alloc(2 * MIB));
  await until('it is answered', () => client.said().endsWith('made'));
  assert.equal(scene.visits[0]?.bytes, 2 * MIB);
  await nothingIsLeft(scene);
});

test('the file of a body is gone and its place free, however its call ends', async () => {
  const env = { SVC_MAX_UPLOADS: '1', SVC_MAX_UPLOAD_MB: '3', SVC_MAX_SPOOL_MB: '3' };
  await using scene = await startScene({ env });
  const { gateway } = scene;
  const body = Buffer.alloc(2 * MIB, 'x');
  const ends: [name: string, run: () => Promise<void>][] = [
    ['it is served', async () => void assert.equal((await call(scene, CALLS[0], body))[0], 200)],
    [
      'its client leaves',
      async () => {
        const client = park(scene, CALLS[0], body.length);
        await until('it is on disk', () => gateway.uploads().length === 1);
        client.socket.destroy();
      },
    ],
    [
      'the slot is taken meanwhile',
      async () => {
        const client = park(scene, CALLS[0], body.length);
        await until('it is on disk', () => gateway.uploads().length === 1);
        using _held = gateway.app.slot.take('asr', 'other');
        client.write('x');
        await until('it is refused', () => client.said().includes('"slot_busy"'));
        client.socket.destroy();
      },
    ],
  ];
  for (const [name, run] of ends) {
    await run();
    await nothingIsLeft(scene);
    await until(`${name}: all of the room is free`, async () => {
      const [status] = await call(scene, CALLS[1], body);
      return status === 200;
    });
  }
});

test('a body that cannot be stored is a 503 that says so, and a small one is served', async () => {
  await using scene = await startScene({ budgets: { upload: { leastFreeBytes: 2 ** 62 } } });
  const [status, said] = await call(scene, CALLS[0], Buffer.alloc(2 * MIB));
  assert.deepEqual([status, JSON.parse(String(said)).error.code], [503, 'storage_unavailable']);
  assert.equal((await call(scene, CALLS[0], '{}'))[0], 200);
});
