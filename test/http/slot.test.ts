/** The slot is free until everything that inference needs has arrived, and other endpoints never take it. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { form, post, startGateway, toneWav, until } from './harness.ts';

const speech = toneWav(1);

test('an upload in progress holds no slot, so another request is served meanwhile', async () => {
  await using gateway = await startGateway();
  const { port, hostname } = new URL(gateway.base);
  const slow = connect(Number(port), hostname);
  slow.on('error', () => undefined);
  const head = [
    'POST /v1/audio/transcriptions HTTP/1.1',
    'Host: localhost',
    'Content-Type: multipart/form-data; boundary=x',
    'Content-Length: 10000000',
    '\r\n',
  ].join('\r\n');
  slow.write(`${head}--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n`);
  slow.write(Buffer.alloc(100_000, 1));
  await until('a part of it is on disk', () => gateway.uploads().length === 1);
  assert.equal(gateway.app.slot.status().holder, null);
  assert.equal((await post(gateway, form(speech))).status, 200);
  await until('only the slow one is left', () => gateway.uploads().length === 1);
  slow.destroy();
  await until('nothing of it is left', () => gateway.uploads().length === 0);
});

test('endpoints without inference answer while the slot is held', async () => {
  await using gateway = await startGateway();
  using _held = gateway.app.slot.take('llm', 'another');
  for (const [method, path] of [
    ['GET', '/health'],
    ['GET', '/v1/models'],
    ['GET', '/v1/models/auto'],
    ['GET', '/metrics'],
    ['GET', '/admin'],
    ['GET', '/admin/api/metrics'],
    ['POST', '/admin/api/reset-asr-state'],
  ] as const) {
    const response = await fetch(gateway.base + path, { method });
    assert.equal(response.status, 200, path);
    await response.text();
  }
  assert.equal(gateway.app.slot.status().holder, 'llm');
});
