/** Compares the networks for speakers with what torch computed of the same windows (generate-speakers.py). */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { SpeakerModel } from '../../src/engine/types.ts';
import { frozenFrames, MASKED, readVoice, speakerWindow, WINDOWS } from './speaker-windows.ts';

export const FRAMES = 589;
export const CLASSES = 7;
const SIZE = 192;

const frozen = (name: string, rows: number) => {
  const raw = readFileSync(new URL(`data/speakers/${name}.f32`, import.meta.url));
  const floats = new Float32Array(raw.buffer.slice(raw.byteOffset, raw.byteOffset + raw.length));
  return (row: number) => floats.subarray((row * floats.length) / rows, ((row + 1) * floats.length) / rows);
};

export interface Distances {
  /** The largest difference of a logarithm, and of the mean of a class over a window. */
  logarithm: number;
  mean: number;
  /** The least cosine of an embedding, of all samples or of a mask. */
  cosine: number;
}

/** Computes every `stride`th window. */
export async function distancesFromTorch(model: SpeakerModel, stride: number): Promise<Distances> {
  const logarithms = frozen('segmentation', WINDOWS);
  const embeddings = frozen('embeddings', WINDOWS);
  const masked = frozen('masked-embeddings', MASKED);
  const voice = await readVoice();
  const result: Distances = { logarithm: 0, mean: 0, cosine: 1 };
  for (let index = 0; index < WINDOWS; index += stride) {
    const { samples, voiceSamples, mask } = speakerWindow(voice, index);
    // Digital silence has no logarithms to compare with. Torch's own single precision is 0.11 away from its double
    // precision there, because the normalization of a constant multiplies what the rounding of its mean leaves.
    if (samples.every((sample) => sample === 0)) continue;
    const computed = await model.segmentation(samples, { step: 160_000 });
    assert.equal(computed.length, FRAMES * CLASSES);
    const expected = logarithms(index);
    for (const [i, frame] of frozenFrames(index).entries())
      for (let k = 0; k < CLASSES; k++)
        result.logarithm = largest(
          result.logarithm,
          computed[frame * CLASSES + k],
          expected[i * CLASSES + k],
        );
    for (let k = 0; k < CLASSES; k++) {
      const sum = computed.reduce((total, value, i) => (i % CLASSES === k ? total + value : total), 0);
      const wanted = expected[expected.length - CLASSES + k] ?? Number.NaN;
      result.mean = largest(result.mean, sum / FRAMES, wanted / FRAMES);
    }
    const part = samples.subarray(0, voiceSamples);
    result.cosine = Math.min(result.cosine, cosine(await model.embeddings(part), embeddings(index)));
    if (index >= MASKED) continue;
    const both = Float32Array.of(...mask, ...mask.map(() => 1));
    const two = await model.embeddings(part, { masks: 2, values: both });
    result.cosine = Math.min(result.cosine, cosine(two.subarray(0, SIZE), masked(index)));
    result.cosine = Math.min(result.cosine, cosine(two.subarray(SIZE), embeddings(index)));
  }
  return result;
}

/** NaN stays NaN, so that it is never below a limit. */
function largest(before: number, some = Number.NaN, other = Number.NaN): number {
  return Math.max(before, Math.abs(some - other));
}

export function cosine(some: Float32Array, others: Float32Array): number {
  assert.equal(some.length, others.length);
  const product = (a: Float32Array, b: Float32Array) =>
    a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0);
  return product(some, others) / Math.sqrt(product(some, some) * product(others, others));
}
