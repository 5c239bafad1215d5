/** Embeddings that are computed in parts, because what a voice says reaches over the end of a call. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SpeakerModel } from '../../src/engine/types.ts';
import {
  addPart,
  directionOf,
  type PartialEmbedding,
  partialOf,
} from '../../src/transcription/speakers/partial-embeddings.ts';
import { cosine } from '../../src/transcription/speakers/voice.ts';

const audio = Float32Array.from({ length: 400 * 270 }, (_, i) => Math.floor(i / 270));
const { signal } = new AbortController();

/** A model whose embedding of a frame depends on the number of the frame. It notes how many frames each call has. */
function voiceOfFrames(heard: number[]): SpeakerModel {
  return {
    segmentation: () => Promise.reject(new Error('nobody asks')),
    async embeddings(samples, options) {
      const { masks, values = new Float32Array() } = options ?? { masks: 0 };
      const length = values.length / masks;
      heard.push(samples.length / 270);
      return Float32Array.from({ length: masks * 3 }, (_, i) => {
        const mask = values.subarray(Math.floor(i / 3) * length, (Math.floor(i / 3) + 1) * length);
        const parts = [...mask.keys()].filter((part) => mask[part] === 1);
        // Each sample is the number of its part, and a frame begins a little more than one part late.
        const frames = parts.map((part) => (samples[part * 270] ?? 0) - 1);
        const part = (frame: number) => [Math.cos(frame / 50), Math.sin(frame / 50), 1][i % 3] ?? 0;
        return frames.reduce((sum, frame) => sum + part(frame), 0) / frames.length;
      });
    },
    close: async () => undefined,
  };
}

test('a part of less than half a second counts only where no part is longer', async () => {
  const calls: number[] = [];
  const model = voiceOfFrames(calls);
  const frames = (from: number, to: number) => [...Array(to - from).keys()].map((i) => from + i);
  const cases = [
    { all: frames(90, 140), counting: frames(100, 140) }, // 10 frames and 40
    { all: frames(60, 110), counting: frames(60, 100) }, // 40 and 10
    { all: frames(95, 110), counting: frames(100, 110) }, // 5 and 10
    { all: frames(85, 105), counting: frames(85, 100) }, // 15 and 5
  ];
  for (const { all, counting } of cases) {
    const [some, whole] = [partialOf(all), partialOf(counting)];
    // The first call has one frame more, because a frame begins a little more than one part late.
    const [first, second] = [audio.subarray(0, 101 * 270), audio.subarray(100 * 270)];
    await addPart([some], { samples: first, firstFrame: 0, endFrame: 100 }, model, signal);
    await addPart([some], { samples: second, firstFrame: 100, endFrame: 400 }, model, signal);
    await addPart([whole], { samples: audio, firstFrame: 0, endFrame: 400 }, model, signal);
    assert.equal(some.left.length, 0);
    assert(cosine(directionOf(some), directionOf(whole)) > 0.999_999, `${all.at(0)} to ${all.at(-1)}`);
  }
});

test('a voice on both sides of the end of a call is that of all its frames', async () => {
  const frames = [...Array(120).keys()].map((i) => 30 + 2 * i); // 35 of them before frame 100
  const heard: number[] = [];
  const model = voiceOfFrames(heard);
  const parts = [partialOf(frames), partialOf([10, 11])];
  const [first, second] = [audio.subarray(0, 100 * 270), audio.subarray(100 * 270)];
  await addPart(parts, { samples: first, firstFrame: 0, endFrame: 100 }, model, signal);
  assert.deepEqual(
    parts.map(({ left }) => left.length),
    [85, 0],
  );
  await addPart(parts, { samples: second, firstFrame: 100, endFrame: 400 }, model, signal);
  const whole = partialOf(frames);
  await addPart([whole], { samples: audio, firstFrame: 0, endFrame: 400 }, model, signal);
  assert.deepEqual(heard, [100, 300, 400]);
  const [some, all] = [directionOf(parts[0] as PartialEmbedding), directionOf(whole)];
  assert(cosine(some, all) > 0.999_999, `${some} ${all}`);
  // No frames are left, so the model is not called again.
  await addPart(parts, { samples: second, firstFrame: 100, endFrame: 400 }, model, signal);
  assert.equal(heard.length, 3);
});
