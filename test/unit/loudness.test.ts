/** A loud sound of which voice activity is in doubt is no speech; a soft one may be. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { speechChunks } from '../../src/transcription/speech/chunks.ts';
import { cuttingFor } from '../../src/transcription/speech/cutting.ts';
import { isNoise } from '../../src/transcription/speech/level.ts';
import { isInvented } from '../../src/transcription/whisper/hallucination.ts';

const WINDOW = 512;
const WINDOWS = 40;
/** A second of a tone of this root mean square. */
const tone = (level: number) =>
  Float32Array.from({ length: WINDOWS * WINDOW }, (_, i) => Math.SQRT2 * level * Math.sin(i / 7));

test('only what is both loud and of little certainty is noise', () => {
  assert(isNoise(0.59, 0.5, () => tone(0.035)));
  assert(!isNoise(0.61, 0.5, () => tone(0.035)));
  assert(!isNoise(0.59, 0.5, () => tone(0.025)));
  assert(isNoise(0.59, 0.5, () => tone(0.025), 2));
});

test('a client that lowers the threshold hears less certain speech', () => {
  assert(!isNoise(0.45, 0.3, () => tone(0.1)));
  assert(isNoise(0.35, 0.3, () => tone(0.1)));
  assert(!isNoise(0, 0, () => tone(0.1)));
});

/** Spans of audio whose voice activity is known, so that its level matters. */
async function chunksOf(level: number, probability: number, threshold?: number): Promise<number> {
  const vad = {
    probabilities: async (samples: Float32Array) =>
      new Float32Array(samples.length / WINDOW).fill(probability),
    close: async () => undefined,
  };
  async function* blocks() {
    yield tone(level);
    yield tone(level);
  }
  const voiceActivity = { threshold, prefixPaddingMs: undefined, silenceDurationMs: undefined };
  const request = { voiceActivity };
  const options = {
    signal: new AbortController().signal,
    onBlock: () => undefined,
    leveled: false,
    ...cuttingFor(request, { maxSec: 12 }, true),
  };
  let count = 0;
  for await (const { speech } of speechChunks(blocks(), vad, options)) count += speech.length;
  return count;
}

test('a loud and doubtful span never reaches a model; a soft or certain one does', async () => {
  assert.equal(await chunksOf(0.1, 0.55), 0);
  assert.equal(await chunksOf(0.01, 0.55), 1);
  assert.equal(await chunksOf(0.1, 0.7), 1);
  assert.equal(await chunksOf(0.1, 0.55, 0.3), 1);
  assert.equal(await chunksOf(0.1, 0, 0), 1);
});

const SURE = { noSpeechProb: 0.1, avgLogprob: -0.3 };
const ONE_SIGN = [
  { noSpeechProb: 0.4, avgLogprob: -0.3 },
  { noSpeechProb: 0.1, avgLogprob: -0.7 },
];
const BOTH_SIGNS = { noSpeechProb: 0.4, avgLogprob: -0.7 };

const heard = (certainty: number, level = 0.1) => ({
  speech: [
    { startSec: 0, endSec: 0.5, certainty: 0.5 },
    { startSec: 1, endSec: 2, certainty },
  ],
  samples: tone(level),
});

test('the less certain the speech, the fewer signs of doubt in its text make it an invention', () => {
  for (const outcome of ONE_SIGN) {
    assert(isInvented(outcome, heard(0.79)));
    assert(!isInvented(outcome, heard(0.81)));
  }
  assert(isInvented(BOTH_SIGNS, heard(0.94)));
  assert(!isInvented(BOTH_SIGNS, heard(0.96)));
  assert(!isInvented(SURE, heard(0.61)));
});

test('the text of soft speech is kept, however doubtful it is', () => {
  assert(!isInvented(BOTH_SIGNS, heard(0.55, 0.025)));
});
