/** Speech becomes chunks that hold every sample of it once, in order, within the limits of the model. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type Chunk,
  createPacker,
  DEFAULT_LIMITS,
  secondsInChunk,
  speechChunks,
  withSilences,
} from '../../src/transcription/speech/chunks.ts';
import { WINDOW_SAMPLES, WINDOW_SEC } from '../../src/transcription/speech/voice-activity.ts';
import { steady } from '../wav.ts';

/** This detector takes a sample's own value as its probability, so the audio spells out the speech. */
const echoVad = {
  resets: 0,
  async probabilities(samples: Float32Array, { reset }: { reset: boolean }) {
    if (reset) this.resets += 1;
    const windows = Math.ceil(samples.length / WINDOW_SAMPLES);
    return Float32Array.from({ length: windows }, (_, i) => samples[i * WINDOW_SAMPLES] ?? 0);
  },
  close: async () => undefined,
};

async function* inBlocks(audio: Float32Array, windows: number) {
  const size = windows * WINDOW_SAMPLES;
  for (let i = 0; i < audio.length; i += size) yield audio.slice(i, i + size);
}

function audioOf(...runs: [windows: number, value: number][]): Float32Array {
  const total = runs.reduce((sum, [n]) => sum + n, 0);
  const audio = new Float32Array(total * WINDOW_SAMPLES);
  let at = 0;
  for (const [n, value] of runs) {
    for (const end = at + n * WINDOW_SAMPLES; at < end; at += 1) audio[at] = steady(value, at);
  }
  return audio;
}

async function chunksOf(
  audio: Float32Array,
  blockWindows: number,
  limits = DEFAULT_LIMITS,
): Promise<{ chunks: Chunk[]; heard: number }> {
  const chunks: Chunk[] = [];
  let heard = 0;
  const options = {
    limits,
    signal: new AbortController().signal,
    onBlock: ({ length: n }: Float32Array) => {
      heard += n;
    },
  };
  for await (const chunk of speechChunks(inBlocks(audio, blockWindows), echoVad, options)) chunks.push(chunk);
  return { chunks, heard };
}

test('silence gives no chunk, but its duration is known', async () => {
  const { chunks, heard } = await chunksOf(audioOf([500, 0]), 100);
  assert.deepEqual(chunks, []);
  assert.equal(heard, 500 * WINDOW_SAMPLES);
});

test('two sentences with a short pause are one chunk, and with a long pause two', async () => {
  const near = await chunksOf(audioOf([60, 0.9], [30, 0], [60, 0.9], [60, 0]), 50);
  assert.equal(near.chunks.length, 1);
  assert.equal(near.chunks[0]?.speech.length, 2);
  const far = await chunksOf(audioOf([60, 0.9], [90, 0], [60, 0.9], [60, 0]), 50);
  assert.equal(far.chunks.length, 2);
});

test('a chunk holds exactly the audio at its place, and a little of the silence around its speech', async () => {
  const audio = audioOf([100, 0], [60, 0.8], [90, 0], [40, 0.7], [60, 0]);
  const { chunks } = await chunksOf(audio, 7);
  assert.equal(chunks.length, 2);
  for (const { startSec, endSec, samples, speech } of chunks) {
    const at = Math.round(startSec * 16_000);
    assert.deepEqual(samples, audio.slice(at, at + samples.length));
    const [span] = speech;
    assert(span);
    const heardAround = 6 * WINDOW_SEC;
    assert.equal(Math.round((span.startSec - heardAround) * 16_000), at);
    assert.equal(endSec, span.endSec);
    assert.equal(Math.round((endSec + heardAround - startSec) * 16_000), samples.length);
  }
});

test('speech ends with the audio, also within a window', async () => {
  const audio = audioOf([20, 0], [81, 0.9]).subarray(0, 100 * WINDOW_SAMPLES + 100);
  const [chunk] = (await chunksOf(audio, 7)).chunks;
  const end = audio.length / 16_000;
  assert.deepEqual([chunk?.endSec, chunk?.speech.at(-1)?.endSec], [end, end]);
});

test('chunks do not depend on the blocks, stay within the limit and follow one another', async () => {
  const runs = fc.array(fc.tuple(fc.integer({ min: 1, max: 400 }), fc.constantFrom(0, 0.9)), {
    maxLength: 12,
  });
  await fc.assert(
    fc.asyncProperty(runs, fc.integer({ min: 1, max: 120 }), async (shape, blockWindows) => {
      const audio = audioOf(...shape);
      const { chunks } = await chunksOf(audio, blockWindows);
      const whole = await chunksOf(audio, Math.max(1, audio.length / WINDOW_SAMPLES));
      assert.deepEqual(
        chunks.map((c) => [c.startSec, c.samples.length, c.silentUntilSec]),
        whole.chunks.map((c) => [c.startSec, c.samples.length, c.silentUntilSec]),
      );
      let before = { silentUntilSec: 0, heardTo: 0 };
      for (const { startSec, samples, speech, endSec, silentUntilSec } of chunks) {
        assert(samples.length > 0 && samples.length / 16_000 <= 30);
        assert(Math.round(startSec * 16_000) >= before.heardTo, 'no sample is heard twice');
        assert((speech[0]?.startSec ?? 0) >= before.silentUntilSec);
        assert(silentUntilSec >= endSec && silentUntilSec <= audio.length / 16_000);
        before = { silentUntilSec, heardTo: Math.round(startSec * 16_000) + samples.length };
      }
    }),
    { numRuns: 40 },
  );
});

test('of a long pause in a chunk a part is heard, and times are those of the audio', async () => {
  const limits = { maxSec: 6, maxGapSec: 4, keptPauseSec: 1 };
  const runs: [number, number][] = [
    [60, 0.9],
    [100, 0],
    [60, 0.8],
    [90, 0],
    [40, 0.7],
    [200, 0],
    [40, 0.6],
  ];
  const { chunks } = await chunksOf(audioOf(...runs), 7, limits);
  assert.deepEqual(
    chunks.map(({ speech, cuts = [] }) => [speech.length, cuts.length]),
    [
      [2, 1], // a third span would make it longer than 6 s
      [1, 0],
      [1, 0], // the pause before it is too long
    ],
  );
  const [chunk] = chunks;
  const [cut] = chunk?.cuts ?? [];
  const [, later] = chunk?.speech ?? [];
  assert(chunk && cut && later);
  const { startSec, samples } = chunk;
  const lengthSec = samples.length / 16_000;
  assert(lengthSec < 6 && Math.abs(lengthSec + cut.sec - (220 + 2 * 6) * WINDOW_SEC) < 0.001);
  // The second tone begins behind its padding, wherever the cut is.
  const second = Math.round((secondsInChunk(chunk, later.startSec) + 6 * WINDOW_SEC) * 16_000);
  assert.deepEqual(
    Array.from(samples.slice(second - 1, second + 1)).map((v) => v.toFixed(1)),
    ['0.0', '0.8'],
  );
  const places = [0, 0.3, cut.atSec, cut.atSec + 0.3].map((sec) => 1000 * sec);
  const token = (startMs: number, endMs: number) => ({
    id: 1,
    bytes: Buffer.from('a'),
    logprob: 0,
    startMs,
    endMs,
  });
  const tokens = places.slice(1).map((endMs, i) => token(places[i] ?? 0, endMs));
  const [segment] = withSilences([{ startMs: 0, endMs: places[3] ?? 0, tokens, noSpeechProb: 0 }], chunk);
  assert(segment);
  const [first, beforeCut, behindCut] = segment.tokens;
  assert(first && beforeCut && behindCut);
  assert.deepEqual([first.startMs, first.endMs, beforeCut.endMs], places.slice(0, 3));
  assert.equal(behindCut.startMs, (places[2] ?? 0) + 1000 * cut.sec);
  assert.equal(segment.endMs, behindCut.endMs);
  for (const { startMs, endMs } of segment.tokens)
    for (const ms of [startMs + 1, endMs - 1]) {
      const heard = secondsInChunk(chunk, startSec + ms / 1000);
      const [back] = withSilences(
        [{ startMs: heard * 1000, endMs: heard * 1000, tokens: [], noSpeechProb: 0 }],
        chunk,
      );
      assert(Math.abs((back?.startMs ?? 0) - ms) < 1e-6, `${ms}`);
    }
});

test('the first chunk may end at a shorter silence than the others', async () => {
  const limits = { maxSec: 20, maxGapSec: 4, firstGapSec: 1, keptPauseSec: 1 };
  const tone: [number, number][] = [
    [40, 0.9],
    [80, 0],
  ];
  const { chunks } = await chunksOf(audioOf(...tone, ...tone, ...tone, ...tone), 7, limits);
  assert.deepEqual(
    chunks.map(({ speech }) => speech.length),
    [1, 3],
  );
});

test('the first chunk may be shorter than the others', async () => {
  const limits = { ...DEFAULT_LIMITS, maxSec: 8, firstSec: 3 };
  const tone: [number, number][] = [
    [60, 0.9],
    [20, 0],
  ];
  const { chunks } = await chunksOf(audioOf(...tone, ...tone, ...tone, ...tone), 7, limits);
  assert.deepEqual(
    chunks.map(({ speech }) => speech.length),
    [1, 3],
  );
});

test('a group that can no longer grow is given out without waiting for the next span', () => {
  const packer = createPacker(DEFAULT_LIMITS);
  assert.deepEqual(packer.push({ start: 0, end: 50, certainty: 0.9 }), []);
  assert.deepEqual(packer.settle(60), []);
  assert.deepEqual(packer.settle(120), [{ spans: [{ start: 0, end: 50, certainty: 0.9 }], silentUntil: 97 }]);
  assert.deepEqual(packer.finish(140), []);
});

test('a chunk knows the silence behind it: to the next chunk, to the end, or longer than two chunks join across', async () => {
  const silences = async (...runs: [windows: number, value: number][]) =>
    (await chunksOf(audioOf(...runs), 50)).chunks.map(({ endSec, silentUntilSec }) =>
      Math.round((silentUntilSec - endSec) / 0.032),
    );
  const padding = 6;
  const [near, far] = [30, 90];
  assert.deepEqual(
    await silences([60, 0.9], [far, 0], [60, 0.9], [10, 0]),
    [47, 10 - padding],
    'the end of the audio',
  );
  assert.deepEqual(await silences([60, 0.9], [200, 0]), [47]);
  // Two spans of 20 s are too long for one chunk, however near they are.
  assert.deepEqual(await silences([625, 0.9], [near, 0], [625, 0.9]), [near - 2 * padding, 0]);
  assert.deepEqual(await silences([1000, 0.9]), [0, 0], 'a cut in the middle of speech');
});

test('a short pause within a chunk is heard as a whole', async () => {
  const { chunks } = await chunksOf(audioOf([60, 0.9], [46, 0], [60, 0.9], [60, 0]), 50);
  assert.deepEqual(
    chunks.map(({ samples, cuts }) => [samples.length / WINDOW_SAMPLES, cuts]),
    [[60 + 46 + 60 + 2 * 6, undefined]],
  );
});
