/** A call with a person on each channel, with real weights: what is left is not heard right. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seededRandom } from '../../bench/common/random.ts';
import { form, json } from '../http/harness.ts';
import { readSpeech } from '../native/fixtures.ts';
import { interleave, wav } from '../wav.ts';
import { JFK_TEXT, MODEL, needsWeights, plain, type RealGateway, startRealGateway } from './gateway.ts';

/** Where he pauses between the parts of his sentence, in seconds. */
const PAUSES = [2.7, 7.8];

/** He on the left channel and, for his second part, on the right one. */
async function call() {
  const all = await readSpeech();
  const [from, to] = PAUSES.map((sec) => sec * 16_000) as [number, number];
  const [left, right] = [all.slice(), new Float32Array(all.length)];
  left.fill(0, from, to);
  right.set(all.subarray(from, to), from);
  return { left, right };
}

async function linesOf(gateway: RealGateway, left: Float32Array, right: Float32Array) {
  const fields = { model: MODEL, language: 'en', speakers: 'channels', response_format: 'diarized_json' };
  const body = form(wav(interleave(left, right), 16_000, 2), fields);
  const answer = await json(await fetch(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', body }));
  assert.equal(answer.duration, 11);
  return answer.text.split('\n').map((line: string) => [line[0], plain(line.slice(3))]);
}

const LINES = [
  ['A', plain('And so my fellow Americans')],
  ['B', plain('ask not what your country can do for you')],
  ['A', plain('ask what you can do for your country')],
];

test('each channel of a stereo recording is transcribed by itself, in the order of the call', async (t) => {
  if (!needsWeights(t)) return;
  const { left, right } = await call();
  await using gateway = await startRealGateway();
  assert.deepEqual(await linesOf(gateway, left, right), LINES);
});

/** A square wave that changes its phase with each bit, 80 bits in each of 25 frames a second, as linear timecode does. */
function timecode(length: number, level: number): Float32Array {
  const half = 16_000 / (2 * 80 * 25);
  let phase = 1;
  return new Float32Array(length).map((_, i) => {
    const at = Math.floor(i / half);
    const isOne = (at >> 1) % 3 === 0;
    if (i % half === 0 && (at % 2 === 0 || isOne)) phase = -phase;
    return phase * level;
  });
}

test('speech beside a timecode, noise or a hum on the other channel is heard as if it were alone', async (t) => {
  if (!needsWeights(t)) return;
  const speech = await readSpeech();
  const random = seededRandom(14);
  const beside = {
    timecode: timecode(speech.length, 0.5),
    noise: speech.map(() => 0.3 * (random() - 0.5)),
    hum: speech.map((_, i) => 0.3 * Math.sin((i * 2 * Math.PI * 50) / 16_000)),
  };
  await using gateway = await startRealGateway();
  for (const [name, other] of Object.entries(beside)) {
    for (const channels of [interleave(speech, other), interleave(other, speech)]) {
      const body = form(wav(channels, 16_000, 2), { model: MODEL });
      const answer = await json(
        await fetch(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', body }),
      );
      assert.equal(plain(answer.text), plain(JFK_TEXT), name);
    }
  }
});

test('nothing is said twice where each channel also carries the other one, softer and later', async (t) => {
  if (!needsWeights(t)) return;
  const { left, right } = await call();
  await using gateway = await startRealGateway();
  for (const [decibels, lagSec] of [
    [-15, 0.06],
    [-25, 0.25],
    [-35, 0],
  ] as const) {
    // biome-ignore format: a row of cases
    const [gain, lag] = [10 ** (decibels / 20), lagSec * 16_000];
    const withBleed = (own: Float32Array, other: Float32Array) => own.map((sample, i) => sample + gain * (other[i - lag] ?? 0)); // biome-ignore format: one line
    assert.deepEqual(
      await linesOf(gateway, withBleed(left, right), withBleed(right, left)),
      LINES,
      `${decibels} dB`,
    );
  }
});
