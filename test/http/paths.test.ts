/** How clients join addresses and paths: what is the gateway's own never leaves it, and a 404 names what was meant. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AzureOpenAI } from 'openai';
import { startHostileUpstream, wholeAnswer } from '../faults/hostile-upstream.ts';
import { form, json, startGateway, toneWav } from './harness.ts';

const upstreams = (url: string) => ({ SVC_TTS_UPSTREAM_URL: url, SVC_LLM_BACKEND_URL: url });

test('a path that was meant for the gateway itself never reaches the speech upstream, and its 404 names it', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({ env: upstreams(upstream.url) });
  for (const [sent, meant] of [
    ['/v1/audio/transcriptions/audio/transcriptions', '/v1/audio/transcriptions'],
    ['/v1/audio/transcriptions/v1/audio/translations', '/v1/audio/transcriptions'],
    ['/v1/audio/transcriptions//', '/v1/audio/transcriptions'],
    ['/v1/audio/translations/x', '/v1/audio/translations'],
    ['/v1/audio/alignments/x?y=1', '/v1/audio/alignments'],
    ['/v1/audio/Transcriptions', '/v1/audio/transcriptions'],
    ['/v1/audio/%74ranscriptions', '/v1/audio/transcriptions'],
    ['/v1/audio//transcriptions', '/v1/audio/transcriptions'],
    ['/v1/audio/transcriptions;v=1', '/v1/audio/transcriptions'],
    ['/v1/audio/transcriptions.json', undefined],
  ] as const) {
    const response = await fetch(gateway.base + sent, { method: 'POST', body: form(toneWav(0.1)) });
    const { error } = await json(response);
    assert.deepEqual([response.status, error.kind, error.code], [404, 'not_found', 'not_found'], sent);
    assert.equal(/; perhaps (\S+) was meant$/.exec(error.message)?.[1], meant, sent);
  }
  assert.deepEqual(upstream.heads, []);
  for (const path of ['/v1/audio/transcriptions-of-ours', '/v1/audio/x/transcriptions'])
    assert.equal((await fetch(gateway.base + path)).status, 200, 'those are the upstream’s');
  assert.equal(upstream.heads.length, 2);
});

test('the 404 names the right path where there is one, and no other', async () => {
  await using gateway = await startGateway();
  for (const [sent, meant] of [
    ['/v1/v1/audio/transcriptions', '/v1/audio/transcriptions'],
    ['/audio/transcriptions', '/v1/audio/transcriptions'],
    ['/api/v1/chat/completions', '/v1/chat/completions'],
    ['//v1/models', '/v1/models'],
    ['/V1/Models', '/v1/models'],
    ['/v1/v1/models/hf.co/X', '/v1/models/hf.co/X'],
    ['/audio/voices/Anna', '/v1/audio/voices/Anna'],
    ['/chat/completions/', '/v1/chat/completions'],
    ['/v1/chat/completions/x', '/v1/chat/completions'],
    ['/v1/health', '/health'],
    ['/Docs', '/docs'],
    ['/embeddings', '/v1/embeddings'],
    ['/v1/responses/a/b', '/v1/responses/a'],
    ['/v1/asr', '/asr'],
    ['/openai/v1/v1/models', '/v1/models'],
    ['/nowhere', undefined],
    ['/v1', undefined],
    ['/v1/audio', undefined],
    ['/v1/fine_tuning/jobs', undefined],
    ['/%zz/models', '/v1/models'],
    [`${'/x'.repeat(40)}/v1/models`, undefined],
    [`${'/v1'.repeat(4000)}/models`, undefined],
  ] as const) {
    const response = await fetch(gateway.base + sent, { method: 'GET' });
    const { error } = await json(response);
    assert.deepEqual([response.status, error.kind], [404, 'not_found'], sent);
    assert.equal(/; perhaps (\S+) was meant$/.exec(error.message)?.[1], meant, sent);
  }
});

test('Azure’s package transcribes, speaks and chats: its paths are OpenAI’s, and the deployment is the model', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({
    env: {
      ...upstreams(upstream.url),
      SVC_API_KEY: 'right',
      SVC_MODEL_ALIASES: 'my-whisper=multilingual-base',
    },
  });
  const azure = new AzureOpenAI({
    ...{ endpoint: gateway.base, apiKey: 'right', apiVersion: '2024-10-21', maxRetries: 0 },
    deployment: 'my-whisper',
  });
  const file = new File([new Uint8Array(toneWav(1))], 'speech.wav');
  const { text } = await azure.audio.transcriptions.create({ file, model: 'whatever' });
  assert.equal(text, 'Hello there.');
  const exchange = gateway.exchanges.at(-1);
  assert.deepEqual([exchange?.path, exchange?.model], ['/v1/audio/transcriptions', 'multilingual-base']);
  upstream.behave(wholeAnswer('{"choices":[]}', '200 OK', { 'Content-Type': 'application/json' }));
  await azure.chat.completions.create({ model: 'llama', messages: [] });
  assert.match(upstream.heads.at(-1) ?? '', /^POST \/v1\/chat\/completions\?api-version=2024-10-21 /);
  await azure.audio.speech.create({ model: 'tts', voice: 'alloy', input: 'Hello.' });
  assert.match(upstream.heads.at(-1) ?? '', /^POST \/v1\/audio\/speech\?/);
  assert(!upstream.heads.some((head) => head.includes('right')));

  const headers = { 'api-key': 'right' };
  const ask = (path: string, body: FormData) => fetch(gateway.base + path, { method: 'POST', body, headers });
  const unknown = await ask('/openai/deployments/none%20such/audio/transcriptions', form(toneWav(0.5)));
  assert.match((await json(unknown)).error.message, /^Unknown model "none such"/);
  const listed = await fetch(`${gateway.base}/openai/v1/models`, { headers });
  assert.equal((await json(listed)).data[0].id, 'auto');
  for (const path of [
    '/openai/deployments/x/audio/transcriptions',
    '/openai/v1/models',
    '/openai/v1/audio/speech',
  ])
    assert.equal(
      (await fetch(gateway.base + path, { method: 'POST' })).status,
      401,
      'a key is wanted there too',
    );
  assert.equal((await ask('/openai/deployments/x/../../admin', new FormData())).status, 404);
  assert.equal((await ask('/openai/deployments//audio/speech', new FormData())).status, 404);
});

test('completions, embeddings and responses go to the chat daemon by the rules of chat', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({ env: upstreams(upstream.url) });
  for (const [method, path] of [
    ['POST', '/v1/completions'],
    ['POST', '/v1/embeddings'],
    ['POST', '/v1/responses'],
    ['GET', '/v1/responses/resp_1?include=x'],
    ['DELETE', '/v1/responses/resp_1'],
    ['POST', '/v1/responses/resp_1/cancel'],
    ['GET', '/v1/responses/resp_1/input_items'],
  ] as const) {
    const headers = { 'Content-Type': 'application/json' };
    const init = method === 'POST' ? { method, body: '{"model":"m","input":"a"}', headers } : { method };
    const before = gateway.exchanges.length;
    assert.equal(await (await fetch(gateway.base + path, init)).text(), 'fine');
    assert(upstream.heads.at(-1)?.startsWith(`${method} ${path} HTTP/1.1`), path);
    const exchange = gateway.exchanges[before];
    assert.deepEqual([exchange?.category, exchange?.provider, exchange?.class], ['llm', 'llm', '2xx']);
    assert.equal(exchange?.model, method === 'POST' ? 'm' : undefined);
    using _held = gateway.app.slot.take('tts', 'test');
    const busy = await fetch(gateway.base + path, init);
    assert.deepEqual([busy.status, (await json(busy)).error.held_by], [503, 'tts']);
  }
  const wrong = await fetch(`${gateway.base}/v1/embeddings`);
  assert.deepEqual([wrong.status, wrong.headers.get('allow')], [405, 'POST']);
});
