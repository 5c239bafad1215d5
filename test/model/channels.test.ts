/** A call with a person on each channel, with real weights: what is left is not heard right. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { form, json } from '../http/harness.ts';
import { readSpeech } from '../native/fixtures.ts';
import { interleave, wav } from '../wav.ts';
import { MODEL, needsWeights, plain, startRealGateway } from './gateway.ts';

/** Where he pauses between the parts of his sentence, in seconds. */
const PAUSES = [2.7, 7.8];

test('each channel of a stereo recording is transcribed by itself, in the order of the call', async (t) => {
  if (!needsWeights(t)) return;
  const all = await readSpeech();
  const [from, to] = PAUSES.map((sec) => sec * 16_000) as [number, number];
  const [left, right] = [all.slice(), new Float32Array(all.length)];
  left.fill(0, from, to);
  right.set(all.subarray(from, to), from);
  await using gateway = await startRealGateway();
  const fields = { model: MODEL, language: 'en', speakers: 'channels', response_format: 'diarized_json' };
  const body = form(wav(interleave(left, right), 16_000, 2), fields);
  const answer = await json(await fetch(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', body }));
  const lines = answer.text.split('\n').map((line: string) => [line[0], plain(line.slice(3))]);
  assert.deepEqual(lines, [
    ['A', plain('And so my fellow Americans')],
    ['B', plain('ask not what your country can do for you')],
    ['A', plain('ask what you can do for your country')],
  ]);
  assert.equal(answer.duration, 11);
});
