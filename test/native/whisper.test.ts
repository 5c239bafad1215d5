/**
 * Whisper runs with real weights: these tests say what it recognizes, in which language, when, and with how many
 * threads.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { loadNative } from '../../src/engine/addon.ts';
import type { Lane, TranscriptionModel } from '../../src/engine/types.ts';
import { leastOf } from '../cost.ts';
import { chunkOptions, readSpeech, textOf, weights } from './fixtures.ts';

const { path, skip } = weights('VOXGATE_TEST_MODEL');

let model: TranscriptionModel;
let speech: Float32Array;
before(async () => {
  if (skip) return;
  speech = await readSpeech();
  model = await loadNative().loadModel({
    family: 'whisper',
    path: path,
    device: 'cpu',
    threads: 2,
  });
});
after(() => model?.close());

const options = { ...chunkOptions, audioContext: 600 };

test('whisper recognizes the words that were spoken', { skip }, async () => {
  const segments = await model.transcribe(speech, options);
  assert.match(textOf(segments), /fellow Americans.*what your country can do for you.*for your country\.$/);
  assert.ok(segments.every((s) => s.noSpeechProb < 0.3 && s.startMs < s.endMs && s.endMs <= 11_000));
});

test('whisper places every word when it is asked to', { skip }, async () => {
  const segments = await model.transcribe(speech, { ...options, words: true });
  const country = segments
    .flatMap((s) => s.tokens)
    .find((t) => Buffer.from(t.bytes).toString() === ' country');
  assert.ok(country && Math.abs(country.endMs - 6300) < 250, JSON.stringify(country));
});

test('whisper gives the same again after calls that were longer, sampled or aborted', { skip }, async () => {
  const first = await model.transcribe(speech, options);
  await model.transcribe(speech.subarray(0, 16_000), {
    ...options,
    temperature: 1,
    audioContext: 0,
    maxTokens: 20,
  });
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 100);
  await assert.rejects(
    model.transcribe(speech, { ...options, audioContext: 0 }, { signal: controller.signal }),
    controller.signal.reason,
  );
  assert.deepEqual(await model.transcribe(speech, options), first);
});

test('whisper has lanes that give side by side what one gives alone', { skip }, async () => {
  const segmentsOn = (lane: Lane, signal?: AbortSignal) => lane.transcribe(speech, options, { signal });
  const alone = await segmentsOn(model);
  assert.equal(model.info.lanes, 2);
  const second = await model.lane(1);
  assert.equal(await model.lane(1), second, 'made once');
  const leaving = new AbortController();
  const [first, other] = await Promise.all([segmentsOn(model), segmentsOn(second)]);
  assert.deepEqual([first, other], [alone, alone]);
  const left = segmentsOn(second, leaving.signal);
  const staying = segmentsOn(await model.lane(0));
  setTimeout(() => leaving.abort(), 20);
  await assert.rejects(left, { name: 'AbortError' });
  assert.deepEqual(await staying, alone);
});

test('whisper closes its lanes with itself while they work', { skip }, async () => {
  const short = await loadNative().loadModel({
    family: 'whisper',
    path: path,
    device: 'cpu',
    threads: 2,
  });
  const lane = await short.lane(1);
  const running = assert.rejects(lane.transcribe(speech, options), { code: 'closed' });
  await short.close();
  await running;
  await assert.rejects(short.lane(2), { code: 'closed' });
});

test('whisper stops within a moment in the middle of the encoder', { skip }, async () => {
  const latencyMs = await leastOf(400, async () => {
    const controller = new AbortController();
    let abortedAt = 0;
    setTimeout(() => {
      abortedAt = performance.now();
      controller.abort();
    }, 80);
    const call = model.transcribe(speech, { ...options, audioContext: 0 }, { signal: controller.signal });
    await assert.rejects(call, { name: 'AbortError' });
    return performance.now() - abortedAt;
  });
  assert.ok(latencyMs < 400, `${latencyMs} ms`);
});

test('whisper guesses the language', { skip }, async () => {
  const guess = await model.detectLanguage(speech, { audioContext: 600 });
  assert.equal(guess.language, 'en');
  assert.ok(guess.probability > 0.8);
  assert.equal(Object.keys(guess.probabilities).length, model.info.languages.length);
});

test('whisper gives a text its times instead of hearing one', { skip }, async () => {
  const heard = await model.transcribe(speech, { ...options, times: false, words: true });
  const text = textOf(heard);
  const aligned = await model.transcribe(speech, { ...options, times: false, words: true, text });
  assert.equal(textOf(aligned), text);
  const ends = (segments: typeof heard) => segments.flatMap((s) => s.tokens.map(({ endMs }) => endMs));
  assert.deepEqual(ends(aligned), ends(heard));
  const sure = aligned.flatMap((s) => s.tokens).filter(({ logprob }) => logprob > Math.log(0.5));
  assert.ok(sure.length > 15, 'the words are probable');
  const other = ' The weather in Norway was bad, and the fish was expensive.';
  const doubtful = await model.transcribe(speech, { ...options, times: false, words: true, text: other });
  assert.equal(textOf(doubtful), other);
  const mean = (segments: typeof heard) =>
    segments.flatMap((s) => s.tokens).reduce((sum, { logprob }, _, all) => sum + logprob / all.length, 0);
  assert.ok(mean(doubtful) < mean(aligned) - 2, `${mean(doubtful)}, ${mean(aligned)}`);
});

test('whisper refuses a text with more tokens than the decoder holds', { skip }, async () => {
  const asked = { ...options, times: false, words: true };
  const most = 448 - 5; // the prompt has four, and the end of the text is one
  const text = (tokens: number) => ' the'.repeat(tokens);
  const [segment] = await model.transcribe(speech, { ...asked, text: text(most) });
  assert.equal(segment?.tokens.length, most);
  await assert.rejects(model.transcribe(speech, { ...asked, text: text(most + 1) }), {
    code: 'text_too_long',
  });
});
