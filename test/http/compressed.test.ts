/** The pages and what they load come compressed to who can read that, and as they are to others. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import express from 'express';
import { compressedFile } from '../../src/http/compressed.ts';
import { startGateway } from './harness.ts';

interface Answer {
  status: number;
  headers: NodeJS.Dict<string | string[]>;
  body: Buffer;
}

/** As `fetch` does not: the body stays as it was sent. */
const ask = (url: string, headers: Record<string, string> = {}, method = 'GET') =>
  new Promise<Answer>((resolve, reject) => {
    request(url, { method, headers }, async (response) => {
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: await buffer(response) });
    })
      .on('error', reject)
      .end();
  });

const GZIP = { 'Accept-Encoding': 'gzip, br' };
const playground = readFileSync(new URL('../../assets/playground.html', import.meta.url));

test('what pages load comes compressed, with a type and an ETag of its own', async () => {
  await using gateway = await startGateway();
  for (const [path, type] of [
    ['/playground', 'text/html; charset=utf-8'],
    ['/assets/playground.js', 'text/javascript; charset=utf-8'],
    ['/assets/playground/files.js', 'text/javascript; charset=utf-8'],
    ['/assets/voxgate.css', 'text/css; charset=utf-8'],
    ['/assets/vendor/htmx.min.js', 'text/javascript; charset=utf-8'],
    ['/assets/vendor/fflate.js', 'text/javascript; charset=utf-8'],
    ['/docs/swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
  ] as const) {
    const plain = await ask(gateway.base + path, { 'Accept-Encoding': 'identity' });
    const packed = await ask(gateway.base + path, GZIP);
    assert.deepEqual([plain.status, packed.status], [200, 200], path);
    assert.equal(packed.headers['content-encoding'], 'gzip', path);
    assert.equal(plain.headers['content-encoding'], undefined, path);
    assert.equal(packed.headers['content-type'], type);
    assert.equal(packed.headers.vary, 'Accept-Encoding');
    assert.equal(plain.headers.vary, 'Accept-Encoding');
    assert.notEqual(packed.headers.etag, plain.headers.etag);
    assert(gunzipSync(packed.body).equals(plain.body), path);
    assert(packed.body.length < plain.body.length / 1.5, path);
    const again = await ask(gateway.base + path, { ...GZIP, 'If-None-Match': String(packed.headers.etag) });
    assert.deepEqual([again.status, again.body.length], [304, 0], path);
    const head = await ask(gateway.base + path, GZIP, 'HEAD');
    assert.equal(head.headers['content-length'], String(packed.body.length));
    assert.equal(head.body.length, 0);
  }
});

test('a file that cannot be read for a while is a 404, and compressed again after that', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-compressed-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = mkdtempSync(join(dir, 'page-')); // a folder can be seen and not be read, as a file when too many are open
  const app = express().use('/page', compressedFile(path));
  const server = app.listen(0, '127.0.0.1');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  const page = () => ask(`http://127.0.0.1:${(server.address() as AddressInfo).port}/page`, GZIP);
  assert.equal((await page()).status, 404);
  const { size, atime, mtime } = statSync(path);
  rmdirSync(path);
  assert.equal((await page()).status, 404);
  writeFileSync(path, 'x'.repeat(size));
  utimesSync(path, atime, mtime);
  assert.equal(gunzipSync((await page()).body).length, size);
});

test('the description of the API comes compressed', async () => {
  await using gateway = await startGateway({ env: { SVC_TRUST_PROXY: '1' } });
  const url = `${gateway.base}/openapi.json`;
  const plain = await ask(url, { 'Accept-Encoding': 'identity' });
  for (const prefix of ['', '', '/voice']) {
    const packed = await ask(url, { ...GZIP, ...(prefix !== '' && { 'X-Forwarded-Prefix': prefix }) });
    assert.equal(packed.headers['content-encoding'], 'gzip');
    assert.equal(packed.headers['content-type'], plain.headers['content-type']);
    const { servers, ...document } = JSON.parse(gunzipSync(packed.body).toString());
    assert.deepEqual(document, JSON.parse(plain.body.toString()));
    assert.equal(servers?.[0].url, prefix === '' ? undefined : prefix);
    assert(packed.body.length < plain.body.length / 4, `${packed.body.length} of ${plain.body.length}`);
  }
  assert.deepEqual([plain.headers.vary, plain.headers['content-encoding']], ['Accept-Encoding', undefined]);
  assert.equal((await ask(url, GZIP, 'HEAD')).body.length, 0);
});

test('only the paths of files are answered, compressed or not', async () => {
  await using gateway = await startGateway();
  const statuses = async (path: string) => [
    (await ask(gateway.base + path)).status,
    (await ask(gateway.base + path, GZIP)).status,
  ];
  assert.deepEqual(await statuses('/assets/vendor/htmx.min.js/more'), [404, 404]);
  assert.deepEqual(await statuses('/assets/vendor/htmx.min.js/'), [404, 404]);
  assert.deepEqual(await statuses('/assets/..%2fpackage.json'), [400, 400]);
  assert.deepEqual(await statuses('/assets/none.js'), [404, 404]);
  assert.deepEqual(await statuses('/playground/more'), [404, 404]);
  const { status, body } = await ask(`${gateway.base}/playground?a=b/`, GZIP);
  assert.equal(status, 200);
  assert(gunzipSync(body).equals(playground));
});
