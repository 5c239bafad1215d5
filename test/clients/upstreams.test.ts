/** The OpenAI SDK talks to real upstreams directly, then through the gateway, and must not see a difference. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startGateway } from '../http/harness.ts';
import { testUpstreams } from '../upstreams/behavior.ts';
import { chatLacks, speechLacks, startChat, startSpeech } from '../upstreams/start.ts';

const lacks = speechLacks() ?? chatLacks();

if (lacks !== null) {
  test('the upstreams', (t) => t.skip(lacks));
} else {
  const speech = await startSpeech();
  const chat = await startChat();
  const gateway = await startGateway({
    env: { SVC_TTS_UPSTREAM_URL: speech.base, SVC_LLM_BACKEND_URL: chat.base },
  });
  after(async () => {
    await gateway[Symbol.asyncDispose]();
    await speech.stop();
    await chat.stop();
  });

  testUpstreams('directly', speech.base, chat.base);
  testUpstreams('through the gateway', gateway.base, gateway.base, {
    speech: speech.base,
    chat: chat.base,
  });

  test('the upstreams answer health and tags, by which the gateway finds them', async () => {
    assert.equal((await fetch(`${speech.base}/health`)).status, 200);
    assert.match(await (await fetch(`${chat.base}/api/tags`)).text(), /"name":"tiny:latest"/);
  });
}
