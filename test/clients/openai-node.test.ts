/** The official OpenAI package of npm talks to a real gateway, in every format and as a stream. */
import assert from 'node:assert/strict';
import { createReadStream } from 'node:fs';
import { test } from 'node:test';
import OpenAI from 'openai';
import { form, post, startGateway, toneWav } from '../http/harness.ts';
import { JFK, JFK_TEXT, MODEL, needsWeights, plain, startRealGateway } from '../model/gateway.ts';

const client = (base: string) => new OpenAI({ baseURL: `${base}/v1`, apiKey: 'none', maxRetries: 0 });

test('the official OpenAI package of npm gets every response format', async (t) => {
  if (!needsWeights(t)) return;
  await using gateway = await startRealGateway();
  const { transcriptions } = client(gateway.base).audio;
  const ask = { model: MODEL, language: 'en' };
  const json = await transcriptions.create({ ...ask, file: createReadStream(JFK), response_format: 'json' });
  assert.equal(plain(json.text), plain(JFK_TEXT));
  const verbose = await transcriptions.create({
    ...ask,
    file: createReadStream(JFK),
    response_format: 'verbose_json',
    timestamp_granularities: ['word', 'segment'],
  });
  assert.equal(verbose.words?.length, 22);
  assert.equal(verbose.language, 'english');
  assert(verbose.segments?.length);
  assert(verbose.segments.every((segment) => segment.tokens.length > 0));
  for (const response_format of ['text', 'srt', 'vtt'] as const) {
    const text: unknown = await transcriptions.create({
      ...ask,
      file: createReadStream(JFK),
      response_format,
    });
    assert.match(String(text), /what your country can do for you/, response_format);
  }
  const translated = await client(gateway.base).audio.translations.create({
    model: 'whisper-1',
    file: createReadStream(JFK),
  });
  assert.equal(plain(translated.text), plain(JFK_TEXT));
});

test('the official OpenAI package of npm reads the stream', async (t) => {
  if (!needsWeights(t)) return;
  await using gateway = await startRealGateway();
  const stream = await client(gateway.base).audio.transcriptions.create({
    model: 'gpt-4o-transcribe',
    file: createReadStream(JFK),
    stream: true,
    include: ['logprobs'],
    chunking_strategy: { type: 'server_vad', silence_duration_ms: 300 },
  });
  let text = '';
  let done = '';
  for await (const event of stream) {
    if (event.type === 'transcript.text.delta') {
      text += event.delta;
      assert(event.logprobs?.length);
    } else if (event.type === 'transcript.text.done') done = event.text;
  }
  assert.equal(text, done);
  assert.equal(plain(text), plain(JFK_TEXT));
});

test('the official OpenAI package of npm lists the models', async () => {
  await using gateway = await startGateway();
  const ids = [];
  for await (const model of client(gateway.base).models.list()) ids.push(model.id);
  assert.equal(ids[0], 'auto');
  const model = await client(gateway.base).models.retrieve('whisper-1');
  assert.deepEqual([model.id, Reflect.get(model, 'alias_of')], ['whisper-1', 'auto']);
});

test('errors reach the SDK with their code and parameter, and a permanent one is not retried', async () => {
  await using gateway = await startGateway({ engine: null });
  const openai = new OpenAI({ baseURL: `${gateway.base}/v1`, apiKey: 'none', maxRetries: 2 });
  const file = () => new File([Uint8Array.from(toneWav(1))], 'a.wav');
  await assert.rejects(
    openai.audio.transcriptions.create({ model: 'nope', file: file() }),
    (error: unknown) => {
      assert(error instanceof OpenAI.BadRequestError);
      assert.equal(error.code, 'unknown_model');
      assert.equal(error.param, 'model');
      assert(error.requestID);
      return true;
    },
  );
  const startedAt = Date.now();
  await assert.rejects(openai.audio.transcriptions.create({ model: 'whisper-1', file: file() }), {
    status: 503,
    code: 'backend_unavailable',
  });
  assert(Date.now() - startedAt < 2000, 'it was retried');
  assert.equal((await post(gateway, form(toneWav(1)))).status, 503);
});
