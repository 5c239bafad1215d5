/** These tests say which requests are captured; other tests say what a capture holds. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { replay } from '../../src/capture/replay.ts';
import { errorEnvelopeSchema } from '../../src/http/openapi/openapi.ts';
import { startHostileUpstream, wholeAnswer } from '../faults/hostile-upstream.ts';
import { listening } from '../local-server.ts';
import { form, json, post, startGateway, toneWav, until } from './harness.ts';

test('only inference is captured', async () => {
  await using gateway = await startGateway({ env: { SVC_OBS_PAYLOAD_ENABLED: '1' } });
  const headers = { 'X-Request-ID': 'no-inference' };
  for (const [method, path] of [
    ['GET', '/health'],
    ['GET', '/v1/models'],
    ['GET', '/admin/api/metrics'],
    ['POST', '/admin/api/reset-asr-state'],
    ['GET', '/nowhere'],
  ] as const)
    await (await fetch(gateway.base + path, { method, headers })).text();
  await (await post(gateway, form(toneWav(0.5)), { headers: { 'X-Request-ID': 'inference' } })).text();
  const { payloadDir } = gateway.config.observability;
  const captures = () =>
    existsSync(payloadDir) ? readdirSync(payloadDir, { recursive: true }).map(String) : [];
  const complete = () => captures().some((path) => path.endsWith(join('inference', 'meta.json')));
  await until('the last request is captured', complete);
  // Captures are written in the order of their requests, so an earlier one would be there by now.
  assert(!captures().some((path) => path.includes('no-inference')), captures().join(', '));
});

test('what is refused after its body was read is not captured', async () => {
  const env = { SVC_OBS_PAYLOAD_ENABLED: '1', SVC_MODEL_ALLOW: 'multilingual-base' };
  await using gateway = await startGateway({ env });
  const send = async (id: string, model: string) => {
    const answer = await post(gateway, form(toneWav(0.5), { model }), { headers: { 'X-Request-ID': id } });
    await answer.text();
    return answer.status;
  };
  assert.equal(await send('refused', 'multilingual-tiny'), 403);
  assert.equal(await send('served', 'multilingual-base'), 200);
  const { payloadDir } = gateway.config.observability;
  const folders = () => readdirSync(payloadDir, { recursive: true }).map(String);
  await until('the served one is captured', () => folders().some((path) => /served.meta\.json$/.test(path)));
  await until('nothing is left of the other', () => !folders().some((path) => path.endsWith('refused')));
});

test('whatever was captured is replayed as it was, and a capture that is not whole is a 400', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({
    env: { SVC_TTS_UPSTREAM_URL: upstream.url, SVC_OBS_PAYLOAD_ENABLED: '1' },
  });
  const { payloadDir } = gateway.config.observability;
  const metaOf = (id: string) => {
    const names = existsSync(payloadDir) ? readdirSync(payloadDir, { recursive: true }).map(String) : [];
    const name = names.find((path) => path.endsWith(join(id, 'meta.json')));
    return name === undefined ? undefined : join(payloadDir, name);
  };
  const replayed = (id: string) => fetch(`${gateway.base}/admin/captures/${id}/replay`, { method: 'POST' });
  for (const [method, path, body] of [
    ['GET', '/v1/audio/x?a=%2e%2e&b=|', 'a body'],
    ['HEAD', '/v1/audio/x', 'a body'],
    ['PATCH', '/v1/audio/x', 'a body'],
    ['DELETE', '/v1/audio/x;y//z/', 'a body'],
  ] as const) {
    const id = method.toLowerCase();
    const headers = { 'X-Request-ID': id, 'Content-Length': body.length };
    await new Promise((resolve, reject) => {
      const sent = request(gateway.base + path, { method, headers, agent: false }, (res) =>
        res.resume().once('end', resolve),
      );
      sent.once('error', reject).end(body);
    });
    await until('it is captured', () => metaOf(id) !== undefined);
    const report = await json(await replayed(id));
    assert.equal(report.same, true, JSON.stringify(report));
    const [first, second] = upstream.heads.splice(0).map((head) => head.split('\r\n', 1)[0]);
    assert.equal(first, `${method} ${path} HTTP/1.1`);
    assert.equal(second, first);
  }
  const meta = metaOf('get') ?? '';
  const whole = JSON.parse(readFileSync(meta, 'utf8'));
  for (const [text, status, code] of [
    [JSON.stringify({ ...whole, truncated: true }), 400, 'not_replayable'],
    [JSON.stringify({ ...whole, method: 'a b' }), 400, 'not_replayable'],
    [JSON.stringify({ ...whole, url: 'elsewhere' }), 400, 'not_replayable'],
    ['{', 404, 'capture_not_found'],
    [null, 404, 'capture_not_found'],
  ] as const) {
    if (text === null) rmSync(join(meta, '../req.bin'));
    else writeFileSync(meta, text);
    if (text === null) writeFileSync(meta, JSON.stringify(whole));
    const refused = await replayed('get');
    const { error } = errorEnvelopeSchema.parse(await json(refused));
    assert.deepEqual([refused.status, error.code], [status, code], String(text));
  }
});

test('a request that its client did not send whole is not replayed', async () => {
  await using gateway = await startGateway({ env: { SVC_OBS_PAYLOAD_ENABLED: '1' } });
  const headers = {
    'X-Request-ID': 'half',
    'Content-Type': 'multipart/form-data; boundary=b',
    'Content-Length': 9999,
  };
  const sent = request(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', headers, agent: false });
  sent.on('error', () => undefined);
  sent.write('--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nau');
  await until('it is there', () => gateway.app.server.listening && sent.socket?.bytesWritten !== 0);
  setTimeout(() => sent.destroy(), 200);
  await until('it is over', () => gateway.exchanges.length === 1);
  await until(
    'it is captured',
    async () => (await fetch(`${gateway.base}/admin/captures/half`)).status === 200,
  );
  const refused = await fetch(`${gateway.base}/admin/captures/half/replay`, { method: 'POST' });
  assert.equal(refused.status, 400);
  assert.equal(errorEnvelopeSchema.parse(await refused.json()).error.code, 'not_replayable');
});

test('a replay ends with the operator who asked for it', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({
    env: { SVC_TTS_UPSTREAM_URL: upstream.url, SVC_OBS_PAYLOAD_ENABLED: '1' },
  });
  const body = '{"input":"x"}';
  const headers = { 'X-Request-ID': 'slow', 'Content-Type': 'application/json' };
  await (await fetch(`${gateway.base}/v1/audio/speech`, { method: 'POST', headers, body })).text();
  await until(
    'it is captured',
    async () => (await fetch(`${gateway.base}/admin/captures/slow`)).status === 200,
  );
  upstream.behave(() => undefined); // it says nothing more
  const leaving = new AbortController();
  const path = `${gateway.base}/admin/captures/slow/replay`;
  const asked = fetch(path, { method: 'POST', signal: leaving.signal }).catch(() => undefined);
  await until('it runs', () => gateway.app.slot.status().holder !== null);
  const second = await fetch(path, { method: 'POST' });
  assert.equal(second.status, 503);
  assert.equal(errorEnvelopeSchema.parse(await second.json()).error.code, 'overloaded');
  leaving.abort();
  await asked;
  await until('the slot is free', () => gateway.app.slot.status().holder === null);
  upstream.behave(wholeAnswer('one other'));
  const next = async () => (await fetch(path, { method: 'POST' })).status;
  await until('the next one is replayed', async () => (await next()) === 200);
});

test('a replay holds neither the body of the request nor an answer in memory', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-replay-test-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const bytes = 150_000_000;
  const meta = { method: 'POST', url: '/v1/x', request_headers: {}, status: 200, timings: { latency_ms: 1 } };
  writeFileSync(join(dir, 'meta.json'), JSON.stringify(meta));
  for (const body of ['req.bin', 'resp.bin']) {
    writeFileSync(join(dir, body), '');
    truncateSync(join(dir, body), bytes);
  }
  const before = process.memoryUsage().arrayBuffers;
  let most = 0;
  const watch = () => (most = Math.max(most, process.memoryUsage().arrayBuffers - before));
  let received = 0;
  let last = '';
  const server = createServer(async (req, res) => {
    for await (const chunk of req) received += chunk.length;
    watch();
    const piece = Buffer.alloc(1_000_000);
    for (let sent = 0; sent < bytes; sent += piece.length) {
      watch();
      if (!res.write(piece)) await once(res, 'drain');
    }
    res.end(last);
  });
  await using local = await listening(server);
  const report = await replay(dir, local.base);
  assert.deepEqual([report.same, received], [true, bytes]);
  assert(most < bytes, `${most} bytes`);
  last = 'and more';
  const { summary } = await replay(dir, local.base);
  assert.equal(summary, `The bodies differ from byte ${bytes} on (${bytes} bytes then, ${bytes + 8} now)`);
});
