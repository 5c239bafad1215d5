/** What programs import (src/index.ts), with real weights. test/deep/package.test.ts imports it from the package. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import {
  type Audio,
  ConfigError,
  createGateway,
  type Fields,
  RequestError,
  type Settings,
  transcribe,
} from '../../src/index.ts';
import { wav } from '../wav.ts';
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
  await assert.rejects(createGateway({ SVC_PORT: gateway.port }), /another program listens there.*SVC_PORT/);
  await assert.rejects(gateway.transcribe(JFK, { model: MODEL }, { signal: AbortSignal.abort() }), {
    name: 'AbortError',
  });
});

test('audio comes as a path, a file: URL, a Blob or bytes of any kind', async (t) => {
  if (!needsWeights(t)) return;
  await using gateway = await createGateway({ ...OFFLINE, SVC_PORT: 0 });
  const silence = (seconds: number) => wav(new Int16Array(16_000 * seconds));
  const shared = new SharedArrayBuffer(silence(6).length);
  new Uint8Array(shared).set(silence(6));
  const path = join(tmpdir(), `voxgate node api ${process.pid}.wav`);
  writeFileSync(path, silence(1));
  t.after(() => rmSync(path));
  const kinds: Audio[] = [
    path,
    new Blob([silence(2)]),
    new File([silence(3)], ''),
    Uint8Array.from(silence(4)).buffer,
    new DataView(Uint8Array.from(silence(5)).buffer),
    shared,
    new Int16Array(shared),
    pathToFileURL(path),
  ];
  const answers = await Promise.all(kinds.map((audio) => gateway.transcribe(audio, { model: MODEL })));
  assert.deepEqual(
    answers.map(({ usage }) => usage.seconds),
    [1, 2, 3, 4, 5, 6, 6, 1],
  );
});

test('a program in JavaScript hears at once which argument is none, and of nothing is the text sent', async () => {
  const file = await open(JFK);
  const unset = { SVC_DEVICE: undefined, SVC_THREADS: null } as unknown as Settings;
  await using gateway = await createGateway({ ...OFFLINE, ...unset, SVC_PORT: 0 });
  const settings = { SVC_PORT: 'refused, were a gateway started' };
  const refuses = async (audio: unknown, fields: unknown, message: RegExp) => {
    const expected = { name: 'TypeError', message };
    await assert.rejects(gateway.transcribe(audio as Audio, fields as Fields), expected);
    await assert.rejects(transcribe(audio as Audio, fields as Fields, { settings }), expected);
  };
  for (const audio of [undefined, null, 5, true, [1, 2], {}, Promise.resolve(JFK), file])
    await refuses(audio, {}, /^The audio cannot be .*: expected a path, a file: URL, a Blob or bytes$/);
  await file.close();
  await refuses(new URL('https://example.com/a.wav'), {}, /file/);
  await refuses(JFK, { stream: true }, /^stream cannot be on: /);
  await refuses(JFK, { keywords: ['a', undefined] }, /^keywords cannot be undefined: expected a text/);
  await refuses(JFK, { keywords: [null] }, /^keywords cannot be null: /);
  await refuses(JFK, { prompt: new Date(0) }, /^prompt cannot be /);
  for (const fields of ['srt', ['srt'], 5])
    await refuses(JFK, fields, /^The fields cannot be .*: expected an object/);
  for (const wrong of ['x', [1], 5] as unknown as Settings[])
    await assert.rejects(createGateway(wrong), { name: 'TypeError', message: /^The settings cannot be / });
  await assert.rejects(
    createGateway({ SVC_TMP_DIR: {} } as unknown as Settings),
    (error) => error instanceof ConfigError && /^SVC_TMP_DIR cannot be /.test(error.message),
  );
});

test('calls at once are all answered, however few connections and uploads the gateway takes', async (t) => {
  if (!needsWeights(t)) return;
  await using gateway = await createGateway({
    ...OFFLINE,
    ...{ SVC_PORT: 0, SVC_MAX_CONNECTIONS: 2, SVC_MAX_UPLOADS: 1, SVC_MODEL_PRELOAD: MODEL },
  });
  const ended: number[] = [];
  const calls = Array.from({ length: 40 }, async (_, i) => {
    const { usage } = await gateway.transcribe(wav(new Int16Array(16_000 * (i + 1))), { model: MODEL });
    ended.push(usage.seconds);
  });
  await Promise.all(calls);
  assert.deepEqual(
    ended,
    calls.map((_, i) => i + 1),
  );
});

test('after its end a gateway sends nothing to whoever has its port then', async (t) => {
  const gateway = await createGateway({ ...OFFLINE, SVC_PORT: 0, SVC_API_KEY: 'a-key' });
  const waiting = Promise.allSettled([gateway.transcribe(JFK), gateway.transcribe(JFK)]);
  await gateway.close();
  let requests = 0;
  const other = createServer((_req, res) => {
    requests += 1;
    res.end('{}');
  });
  await new Promise<void>((resolve) => other.listen(gateway.port, '127.0.0.1', resolve));
  t.after(() => other.close());
  const later = await Promise.allSettled([gateway.transcribe(JFK)]);
  for (const call of [...(await waiting), ...later]) {
    const { name, status, kind, message } = (call as PromiseRejectedResult).reason;
    assert.deepEqual(
      [name, status, kind, message],
      ['RequestError', 503, 'network', 'The gateway is shutting down'],
    );
  }
  assert.equal(requests, 0);
});
