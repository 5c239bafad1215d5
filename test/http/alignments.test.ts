/** POST /v1/audio/alignments with a scripted engine. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NativeError } from '../../src/engine/types.ts';
import { alignmentSchema } from '../../src/http/openapi/openapi.ts';
import { BUDGETS } from '../../src/limits/budgets.ts';
import { wav } from '../wav.ts';
import {
  form,
  type Gateway,
  heard,
  json,
  type Script,
  startGateway,
  toneWav,
  until,
  untilAborted,
} from './harness.ts';

const align = (gateway: Gateway, file: Uint8Array, fields: Record<string, string>, init: RequestInit = {}) =>
  fetch(`${gateway.base}/v1/audio/alignments`, { method: 'POST', body: form(file, fields), ...init });

/** Hears `texts`, one for each chunk, and gives a text that is given its times. */
function scripted(texts: string[]): Script & { aligned: string[] } {
  const aligned: string[] = [];
  let next = 0;
  return {
    aligned,
    async transcribe(_samples, { text }) {
      if (text === undefined) return heard(` ${texts[next++]}`);
      aligned.push(text);
      return heard(text, 200);
    },
  };
}

/** Two stretches of 1.2 s of sound with 6 s of silence between them. */
function twoChunks(): Buffer {
  const samples = new Float32Array(8.4 * 16_000);
  for (let i = 0; i < samples.length; i++) {
    const sounds = i < 1.2 * 16_000 || i >= 7.2 * 16_000;
    if (sounds) samples[i] = 0.5 * Math.sin((2 * Math.PI * 440 * i) / 16_000);
  }
  return wav(samples);
}

test('the name of the model that tells speakers apart asks an alignment for nothing', async () => {
  await using gateway = await startGateway(scripted(['the first sentence', 'and the second']));
  const text = 'The first sentence. And the second.';
  const answer = await json(await align(gateway, twoChunks(), { text, model: 'gpt-4o-transcribe-diarize' }));
  assert(answer.words.every((word: object) => !('speaker' in word)));
  assert(!gateway.loads.includes('diarization'), `${gateway.loads}`);
});

test('an alignment has the words of the text, with the times at which they are said', async () => {
  const script = scripted(['the first sentence is hear', 'and the second one.']);
  await using gateway = await startGateway(script);
  const text = 'The 1st sentence is here.\n\nAnd the second one!';
  const response = await align(gateway, twoChunks(), { text, language: 'en' });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get('x-voxgate-model'), 'multilingual-base');
  const answer = await json(response);
  alignmentSchema.parse(answer);
  assert.deepEqual(script.aligned, [' The 1st sentence is here.', ' And the second one!']);
  assert.equal(answer.text, 'The 1st sentence is here. And the second one!');
  assert.deepEqual(
    answer.words.map(({ word }: { word: string }) => word),
    text.split(/\s+/),
  );
  const second = answer.words.find(({ word }: { word: string }) => word === 'And');
  assert(second.start > 6.8 && second.start < 7.3, JSON.stringify(second));
  assert.equal(second.probability, 0.9048);
  assert.deepEqual(
    answer.segments.map((segment: { text: string }) => segment.text.trim()),
    ['The 1st sentence is here.', 'And the second one!'],
  );
  assert.equal(answer.language, 'english');
  assert.equal(answer.duration, 8.4);
  assert.equal(gateway.exchanges.at(-1)?.category, 'asr');
  assert.equal(gateway.app.slot.status().holder, null);
});

test('an alignment goes to a model that aligns, also where the language is that of another', async () => {
  await using gateway = await startGateway({
    ...scripted(['hello there']),
    installed: ['multilingual-base', 'european', 'cjk', 'voice-activity'],
  });
  const response = await align(gateway, toneWav(2), { text: 'Hallo da', language: 'de', model: 'auto' });
  assert.equal(response.status, 200);
  assert.equal((await json(response)).route, 'auto:align-fallback');
});

test('what an alignment cannot use is a 400 that says why, and holds nothing', async () => {
  await using gateway = await startGateway({
    ...scripted(Array.from({ length: 9 }, () => 'hello there')),
    installed: ['multilingual-base', 'european', 'voice-activity'],
  });
  const long = 'a'.repeat(BUDGETS.alignment.textBytes + 1);
  const refusals: [fields: Record<string, string>, code: string, message: RegExp, file?: Buffer][] = [
    [{}, 'invalid_value', /"text" cannot be absent/],
    [{ text: '' }, 'invalid_value', /Expected the words/],
    [{ text: ' …\n— ' }, 'invalid_value', /Expected the words/],
    [{ text: long }, 'invalid_value', /at most 524288 bytes/],
    [{ text: 'hi', language: 'klingon' }, 'invalid_value', /ISO 639/],
    [{ text: 'hi', model: 'european' }, 'unsupported_alignment', /european does not.*multilingual-base/],
    [
      { text: 'hi', model: 'multilingual-distil-large-v3', language: 'de' },
      'unsupported_language',
      /German/i,
    ],
    [{ text: 'banana '.repeat(500) }, 'text_too_long', /1500 syllables for 2\.\d s/],
    [{ text: `and so ${'\u0301 '.repeat(160_000)}` }, 'text_too_long', /80002 syllables for 2\.\d s/],
    [{ text: 'hi' }, 'no_speech', /no speech/, toneWav(2, 0)],
  ];
  for (const [fields, code, message, file = toneWav(2)] of refusals) {
    const response = await align(gateway, file, fields);
    const { error } = await json(response);
    assert.deepEqual([response.status, error.code], [400, code], JSON.stringify(error).slice(0, 300));
    assert.match(error.message, message);
    assert.equal(gateway.app.slot.status().holder, null, code);
    assert.deepEqual(gateway.uploads(), [], code);
  }
});

test('a text of as many bytes as allowed is read', async () => {
  await using gateway = await startGateway(scripted(['hello']));
  const text = 'hello '.repeat(BUDGETS.alignment.textBytes / 6).padEnd(BUDGETS.alignment.textBytes, ' ');
  const { error } = await json(await align(gateway, toneWav(2), { text }));
  assert.equal(error.code, 'text_too_long');
});

test('a text with more tokens than the model takes is a 400, and a failure of the model is not', async () => {
  for (const [code, expected] of [
    ['text_too_long', 'text_too_long'],
    ['inference_failed', 'internal_error'],
  ] as const) {
    await using gateway = await startGateway({
      async transcribe(_samples, { text }) {
        if (text === undefined) return heard(' hello');
        throw new NativeError(code, 'failed');
      },
    });
    const { error } = await json(await align(gateway, toneWav(2), { text: 'hello' }));
    assert.equal(error.code, expected);
    assert.equal(gateway.app.slot.status().holder, null);
  }
});

test('a client that leaves an alignment frees the slot, whether it is heard or aligned', async () => {
  for (const stage of ['heard', 'aligned']) {
    let resolve: () => void = () => undefined;
    const busy = new Promise<void>((done) => {
      resolve = done;
    });
    await using gateway = await startGateway({
      async transcribe(samples, options, hooks) {
        if ((options.text === undefined) !== (stage === 'heard')) return heard(' hello');
        resolve();
        return await untilAborted(samples, options, hooks);
      },
    });
    const client = new AbortController();
    const asked = align(gateway, toneWav(2), { text: 'hello' }, { signal: client.signal });
    await Promise.race([busy, asked]);
    client.abort();
    await assert.rejects(asked, { name: 'AbortError' });
    await until(
      'the slot is free',
      () => gateway.app.slot.status().holder === null && gateway.running() === 0,
      10_000,
    );
  }
});
