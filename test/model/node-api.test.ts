/** What programs import (src/index.ts), with real weights. test/deep/package.test.ts imports it from the package. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ConfigError, createGateway, RequestError, transcribe } from '../../src/index.ts';
import { JFK, JFK_TEXT, MODEL, needsWeights, plain } from './gateway.ts';

const OFFLINE = { SVC_MODEL_DOWNLOAD: false, SVC_OBS_ACCESS_LOG_ENABLED: false };

test('a program gets the text of a file by its path, and of the same file by its bytes', async (t) => {
  if (!needsWeights(t)) return;
  const fields = { model: MODEL, language: 'en' };
  const { text, usage } = await transcribe(JFK, fields, { settings: OFFLINE });
  assert.equal(plain(text), plain(JFK_TEXT));
  assert.equal(usage.seconds, 11);
  const subtitles = await transcribe(
    readFileSync(JFK),
    { ...fields, response_format: 'vtt' },
    { settings: OFFLINE },
  );
  assert.match(subtitles, /^WEBVTT\n/);
  assert.ok(plain(subtitles).includes('ask not what your country'));
});

test('a gateway in a program serves at its address, transcribes, and is gone when it is closed', async (t) => {
  if (!needsWeights(t)) return;
  const settings = { ...OFFLINE, SVC_PORT: 0, SVC_API_KEY: 'a-key', SVC_MODEL_PRELOAD: MODEL };
  await using gateway = await createGateway(settings);
  assert.equal(gateway.url, `http://127.0.0.1:${gateway.port}`);
  assert.equal((await fetch(`${gateway.url}/v1/models`)).status, 401);
  const headers = { Authorization: 'Bearer a-key' };
  const listed = await fetch(`${gateway.url}/v1/models/${MODEL}`, { headers });
  assert.equal(((await listed.json()) as { loaded: boolean }).loaded, true);
  const { words, segments, duration } = await gateway.transcribe(JFK, {
    model: MODEL,
    response_format: 'verbose_json',
    timestamp_granularities: ['word'],
    translate: true,
    prompt: null as unknown as string, // a program in JavaScript; null means "not given"
    chunking_strategy: { type: 'server_vad', threshold: 0.4 },
  });
  assert.equal(segments, undefined);
  assert.ok(words?.some(({ word, start, end }) => /country/.test(word) && start < end && end <= duration));
  await gateway.close();
  await assert.rejects(fetch(`${gateway.url}/health`));
});

test('a failure tells a program what is wrong', async (t) => {
  await assert.rejects(
    createGateway({ SVC_PORT: 'http' }),
    (error) => error instanceof ConfigError && /SVC_PORT/.test(error.message),
  );
  if (!needsWeights(t)) return;
  await using gateway = await createGateway({ ...OFFLINE, SVC_PORT: 0 });
  await assert.rejects(
    gateway.transcribe(Buffer.from('no sound'), { model: MODEL }),
    (error) => error instanceof RequestError && error.status === 400 && error.kind === 'malformed',
  );
  await assert.rejects(createGateway({ SVC_PORT: gateway.port }), /EADDRINUSE.*SVC_PORT/);
  await assert.rejects(gateway.transcribe(JFK, { model: MODEL }, { signal: AbortSignal.abort() }), {
    name: 'AbortError',
  });
});
