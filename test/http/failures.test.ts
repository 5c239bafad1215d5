/** An error tells the client, beside its kind, which request it was and what to do about an upstream. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHostileUpstream } from '../faults/hostile-upstream.ts';
import { form, type Gateway, json, post, startGateway, toneWav } from './harness.ts';

const ID = { 'X-Request-ID': 'failed:1' };
const NOWHERE = 'http://127.0.0.1:9';

const transcribe = (gateway: Gateway) => post(gateway, form(toneWav(1)), { headers: ID });
const ask = (path: string) => (gateway: Gateway) =>
  fetch(gateway.base + path, { method: 'POST', body: '{}', headers: ID });
const speak = ask('/v1/audio/speech');
const chat = ask('/v1/chat/completions');

test('every 5xx names its request, in the header and in the envelope', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave((socket) => socket.end());
  await using broken = await startGateway({
    transcribe: async () => Promise.reject(new Error('out of memory')),
    env: { SVC_TTS_UPSTREAM_URL: upstream.url, SVC_LLM_BACKEND_URL: NOWHERE },
  });
  await using missing = await startGateway({ engine: null });
  await using busy = await startGateway();
  using _held = busy.app.slot.take('llm', 'another');
  for (const [status, failed] of [
    [500, transcribe(broken)],
    [503, transcribe(missing)],
    [503, transcribe(busy)],
  ] as const)
    await namesItsRequest(await failed, status);
  // These requests run one after the other, because they share a slot.
  await namesItsRequest(await speak(broken), 502);
  await namesItsRequest(await chat(broken), 503);
});

async function namesItsRequest(response: Response, status: number): Promise<void> {
  assert.equal(response.status, status);
  assert.equal(response.headers.get('x-request-id'), 'failed:1');
  assert.equal((await json(response)).error.request_id, 'failed:1');
}

test('the message about an upstream that cannot be reached says what to start', async () => {
  await using gateway = await startGateway({
    env: { SVC_TTS_UPSTREAM_URL: NOWHERE, SVC_LLM_BACKEND_URL: NOWHERE },
  });
  for (const [send, hint] of [
    [speak, /start the speech container/],
    [chat, /start the chat daemon/],
  ] as const) {
    const response = await send(gateway);
    assert.equal(response.status, 503);
    assert.match((await json(response)).error.message, hint);
  }
});

test('the message about an upstream that breaks off says how it did', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({
    env: { SVC_TTS_UPSTREAM_URL: upstream.url, SVC_LLM_BACKEND_URL: upstream.url },
  });
  for (const send of [speak, chat]) {
    upstream.behave((socket) => socket.resetAndDestroy());
    const reset = await send(gateway);
    assert.equal(reset.status, 502);
    assert.match((await json(reset)).error.message, /ECONNRESET: \w/);
    upstream.behave((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'));
    assert.match((await json(await send(gateway))).error.message, /HPE_\w+: \w/);
  }
});
