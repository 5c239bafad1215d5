/** A download that is cut, resumed, lied to or changed on the hub ends whole and verified, or fails. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DownloadRequest, download } from '../../src/models/download.ts';
import { listening } from '../local-server.ts';
import { type HubServer, serveFile, sha256, someWeights, startHub } from '../model/hub-server.ts';
import { until } from '../until.ts';
import { onSmallDisk } from './observability-fixtures.ts';

const content = someWeights();
const limits = { connectTimeoutMs: 1000, stallTimeoutMs: 500, attempts: 3, backoffMs: 5 };
let dir: string;
let hub: HubServer;
let target: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'voxgate-download-'));
  target = join(dir, 'weights.bin');
  hub = await startHub(content);
});
afterEach(async () => {
  await hub.close();
  await rm(dir, { recursive: true });
});

function get(changes: Partial<DownloadRequest> = {}) {
  return download({
    url: `${hub.url}/weights.bin`,
    target,
    bytes: content.length,
    sha256: sha256(content),
    signal: new AbortController().signal,
    limits,
    ...changes,
  });
}

/** Breaks off when the client has written what came: a connection that breaks earlier may lose the last of it. */
async function breakOffAt(bytes: number, response: ServerResponse) {
  const part = `${target}.part`;
  await until(`${bytes} bytes arrive`, () => existsSync(part) && statSync(part).size >= bytes);
  response.destroy();
}

function cutAfter(bytes: number, etag = '"content-1"') {
  return (_: unknown, response: ServerResponse) => {
    response.writeHead(200, { etag, 'content-length': content.length });
    response.write(content.subarray(0, bytes));
    void breakOffAt(bytes, response);
  };
}

async function assertWhole() {
  assert.deepEqual(await readFile(target), content);
  assert.equal(existsSync(`${target}.part`), false);
  assert.equal(existsSync(`${target}.part.etag`), false);
}

test('a whole file arrives, with progress that ends at its size', async () => {
  const seen: number[] = [];
  assert.deepEqual(await get({ onProgress: (done) => seen.push(done) }), {
    bytes: content.length,
    sha256: sha256(content),
  });
  assert.equal(seen.at(-1), content.length);
  await assertWhole();
});

test('a web page in place of weights is called one at once, and what came before stays', async () => {
  const page = (length?: number) => (_: unknown, response: ServerResponse) => {
    const size = length === undefined ? {} : { 'content-length': length };
    response
      .writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...size })
      .end('<html>Log in</html>');
  };
  const part = content.subarray(0, 1000);
  await writeFile(`${target}.part`, part);
  await writeFile(`${target}.part.etag`, '"content-1"');
  const message = /^the answer of 127\.0\.0\.1:\d+ is a web page, not weights: is there a login or a proxy/;
  for (const answer of [page(), page(19)]) {
    hub.next.push(answer);
    await assert.rejects(get(), { message });
  }
  assert.equal(hub.requests.length, 2, 'asking again would give the same page');
  assert.deepEqual(await readFile(`${target}.part`), part);
  hub.next.push((_, response) => {
    const headers = { 'content-type': 'text/html', 'content-length': content.length };
    response.writeHead(200, headers).end(content);
  });
  await get();
  await assertWhole();
});

test('a cut connection is resumed where it broke, under the same ETag', async () => {
  hub.next.push(cutAfter(100_000));
  await get();
  await assertWhole();
  assert.equal(hub.requests.length, 2);
  assert.equal(hub.requests[1]?.headers.range, 'bytes=100000-');
  assert.equal(hub.requests[1]?.headers['if-range'], '"content-1"');
});

test('a later call resumes the part that an earlier one left', async () => {
  hub.next.push(cutAfter(100_000));
  await assert.rejects(get({ limits: { ...limits, attempts: 1 } }), /other side closed/);
  assert.equal(existsSync(target), false);
  await get();
  await assertWhole();
  assert.equal(hub.requests[1]?.headers.range, 'bytes=100000-');
});

test('a download that makes progress on every attempt is never given up', async () => {
  for (let at = 1; at <= 6; at++) {
    hub.next.push((request, response) => {
      const from = Number(/\d+/.exec(request.headers.range ?? '0')?.[0]);
      response.writeHead(from ? 206 : 200, {
        etag: '"content-1"',
        'content-length': content.length - from,
        ...(from ? { 'content-range': `bytes ${from}-${content.length - 1}/${content.length}` } : {}),
      });
      response.write(content.subarray(from, from + 20_000));
      void breakOffAt(from + 20_000, response);
    });
  }
  await get();
  await assertWhole();
  assert.equal(hub.requests.length, 7);
});

test('a server that ignores the range makes the file start again', async () => {
  hub.next.push(cutAfter(100_000), (_, response) => {
    response.writeHead(200, { etag: '"content-1"', 'content-length': content.length }).end(content);
  });
  await get();
  await assertWhole();
});

test('another ETag after the cut makes the file start again', async () => {
  hub.next.push(cutAfter(100_000, '"content-0"'));
  await get();
  await assertWhole();
});

test('a range that begins elsewhere is not appended', async () => {
  hub.next.push(cutAfter(100_000), (_, response) => {
    response.writeHead(206, { 'content-range': `bytes 5-${content.length - 1}/${content.length}` });
    response.end(content.subarray(5));
  });
  await get();
  await assertWhole();
});

test('a 416 for a part of other bytes makes the file start again', async () => {
  hub.next.push(cutAfter(100_000), (_, response) => response.writeHead(416).end());
  await get();
  await assertWhole();
});

test('a complete part is hashed and used without a request', async () => {
  await writeFile(`${target}.part`, content);
  await get();
  await assertWhole();
  assert.equal(hub.requests.length, 0);
});

test('a part of wrong bytes costs one fresh start, not a loop', async () => {
  await writeFile(`${target}.part`, Buffer.alloc(100_000));
  await get();
  await assertWhole();
  assert.equal(hub.requests.length, 2);
});

test('a wrong hash is named and leaves no file', async () => {
  await assert.rejects(get({ sha256: 'a'.repeat(64) }), /sha256 .* expected a{64}/);
  assert.equal(existsSync(target), false);
  assert.equal(existsSync(`${target}.part`), false);
  assert.equal(hub.requests.length, 1);
});

test('a file that is too large, by its header or without one, is stopped at once', async () => {
  await assert.rejects(get({ bytes: content.length - 1 }), /offers 300000 bytes, expected 299999/);
  hub.next.push((_, response) => {
    response.writeHead(200); // without a length, the body is chunked
    response.write(content);
    response.end(content);
  });
  await assert.rejects(get(), /more than the expected 300000/);
  assert.equal(existsSync(target), false);
});

test('a file that is too short is not accepted', async () => {
  for (let i = 0; i < 3; i++) hub.next.push((_, response) => response.writeHead(200).end('short'));
  await assert.rejects(get(), /ended after \d+ of 300000/);
  assert.equal(existsSync(target), false);
});

test('404 is final, 503 and 429 are asked again', async () => {
  hub.next.push((_, response) => response.writeHead(404).end());
  await assert.rejects(get(), /answered 404/);
  assert.equal(hub.requests.length, 1);
  hub.next.push(
    (_, response) => response.writeHead(503).end(),
    (_, response) => response.writeHead(429, { 'retry-after': '0' }).end(),
  );
  await get();
  await assertWhole();
});

test('401 says what to set, and the token is sent', async () => {
  hub.next.push((_, response) => response.writeHead(401).end());
  await assert.rejects(get(), /HF_TOKEN/);
  await get({ token: 'secret' });
  assert.equal(hub.requests[1]?.headers.authorization, 'Bearer secret');
});

test('the token does not follow a redirect to another host, and stays on its own', async () => {
  const storage = await startHub(content);
  try {
    hub.next.push(
      (_, response) => response.writeHead(307, { location: '/moved' }).end(),
      (_, response) => response.writeHead(302, { location: `${storage.url}/signed?x=1` }).end(),
    );
    await get({ token: 'secret' });
    await assertWhole();
    assert.equal(hub.requests[1]?.headers.authorization, 'Bearer secret');
    assert.equal(storage.requests[0]?.url, '/signed?x=1');
    assert.equal(storage.requests[0]?.headers.authorization, undefined);
  } finally {
    await storage.close();
  }
});

test('endless redirects come to an end', async () => {
  for (let i = 0; i < 30; i++)
    hub.next.push((_, response) => response.writeHead(302, { location: '/x' }).end());
  await assert.rejects(get({ limits: { ...limits, attempts: 1 } }), /redirects more than/);
});

test('a stalled body is dropped and resumed', async () => {
  hub.next.push((_, response) => {
    response.writeHead(200, { etag: '"content-1"', 'content-length': content.length });
    response.write(content.subarray(0, 50_000));
  });
  await get();
  await assertWhole();
  assert.equal(hub.requests[1]?.headers.range, 'bytes=50000-');
});

test('a server that accepts and never answers is given up', async () => {
  for (let i = 0; i < 3; i++) hub.next.push(() => {});
  await assert.rejects(get(), /did not answer within 500 ms/);
});

test('a slow body is no stall as long as bytes arrive', async () => {
  hub.next.push(async (_, response) => {
    response.writeHead(200, { etag: '"content-1"', 'content-length': content.length });
    for (let at = 0; at < content.length; at += 20_000) {
      response.write(content.subarray(at, at + 20_000));
      await sleep(limits.stallTimeoutMs / 10);
    }
    response.end();
  });
  await get();
  await assertWhole();
  assert.equal(hub.requests.length, 1);
});

test('a host that takes the connection but no TLS is unreachable, and not asked again', async () => {
  let connections = 0;
  await using silent = await listening(createServer(() => connections++));
  const quick = { ...limits, connectTimeoutMs: 150 };
  await assert.rejects(
    get({ url: `https://127.0.0.1:${silent.port}/x`, limits: quick }),
    /did not accept a connection/,
  );
  assert.equal(connections, 1);
});

test('a refused connection fails at once, without further attempts', async () => {
  const { url } = hub;
  await hub.close();
  const start = performance.now();
  await assert.rejects(get({ url: `${url}/x`, limits: { ...limits, backoffMs: 5000 } }), /ECONNREFUSED/);
  assert.ok(performance.now() - start < 2000);
  hub = await startHub(content);
});

test('an abort ends the download with its reason and keeps the part for later', async () => {
  const controller = new AbortController();
  const reason = new Error('the caller left');
  hub.next.push((_, response) => {
    response.writeHead(200, { etag: '"content-1"', 'content-length': content.length });
    response.write(content.subarray(0, 50_000));
  });
  const running = get({ signal: controller.signal, onProgress: () => controller.abort(reason) });
  await assert.rejects(running, (error) => error === reason);
  assert.ok(existsSync(`${target}.part`));
  await get();
  await assertWhole();
});

test('without a pinned hash the hub must name one, which the file has to match', async () => {
  const unpinned = { bytes: null, sha256: null };
  await assert.rejects(get(unpinned), /cannot be verified/);
  const linked = (hash: string) => (request: unknown, response: import('node:http').ServerResponse) => {
    response.setHeader('x-linked-etag', `"${hash}"`);
    serveFile(content, request as import('node:http').IncomingMessage, response);
  };
  hub.next.push(linked('b'.repeat(64)));
  await assert.rejects(get(unpinned), /expected b{64}/);
  hub.next.push(linked(sha256(content)));
  assert.equal((await get(unpinned)).sha256, sha256(content));
  await assertWhole();
});

test('without a pinned size the hub must name one, for which there is space', async () => {
  const unpinned = { bytes: null, sha256: null };
  const headers = { 'x-linked-etag': `"${sha256(content)}"` };
  hub.next.push((_, response) => {
    response.writeHead(200, headers); // without a length, the body is chunked and may never end
    response.write(content);
  });
  await assert.rejects(get(unpinned), /names no size/);
  hub.next.push((_, response) => {
    response.writeHead(200, { ...headers, 'content-length': 2 ** 50 });
    response.write(content);
  });
  await assert.rejects(get(unpinned), /Not enough space/);
  assert.equal(hub.requests.length, 2);
  assert.deepEqual([existsSync(target), existsSync(`${target}.part`)], [false, false]);
});

test('a hub that announces other content is refused before the download', async () => {
  hub.next.push((_, response) => {
    response.writeHead(200, { 'x-linked-etag': `"${'c'.repeat(64)}"` }).end(content);
  });
  await assert.rejects(get(), /the hub offers sha256 c{64}/);
});

test('a hub that cuts the whole file and knows no ranges is given up after as many attempts as any other', async () => {
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    if (request.headers.range === undefined) cutAfter(1000)(request, response);
    else response.writeHead(416).end();
  };
  hub.next.push(...new Array(100).fill(answer));
  await assert.rejects(get());
  assert(hub.requests.length <= 3 * limits.attempts, `${hub.requests.length} requests`);
});

test('a disk that becomes full while weights come is an error, and what came is no longer on it', (t) =>
  onSmallDisk(t, 64, async (small) => {
    writeFileSync(join(small, 'other'), Buffer.alloc(64 * 1024 - 4096 - 20_000));
    await assert.rejects(get({ target: join(small, 'weights.bin') }), /became full\. Free some space/);
    assert.deepEqual(readdirSync(small), ['other']);
    assert.equal(hub.requests.length, 1, 'another try would end the same way');
  }));
