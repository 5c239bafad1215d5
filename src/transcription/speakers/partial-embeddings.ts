/**
 * Computes embeddings in parts. Windows reach over the ends of what CAM++ hears in one call, so that what a voice says in
 * one of them may lie on both sides, and no second of the audio is computed twice for it. The last layer of CAM++ is
 * linear in the means and deviations of what it pools, so that the mean of the embeddings of the parts, by their frames,
 * is nearly the embedding of the whole. Pure but for the calls of the model.
 */
import type { SpeakerModel } from '../../engine/types.ts';
import { FRAME_SAMPLES } from './segmentation.ts';
import { unit } from './voice.ts';

/** A part of fewer frames (0.5 s) says little of the voice, and does not count beside a longer one. */
const LEAST_FRAMES = 30;

/** The embedding of some frames; more of them may still come. */
export interface PartialEmbedding {
  /** The frames of the audio that are not computed yet, in order. */
  left: readonly number[];
  /** The sum of the embeddings of the parts so far, each as often as it has frames. */
  sum: Float32Array;
}

export const partialOf = (frames: readonly number[]): PartialEmbedding => ({
  left: frames,
  sum: new Float32Array(),
});

/** The embedding of the parts so far, of unit length. */
export const directionOf = ({ sum }: PartialEmbedding): Float32Array => unit(sum);

export interface AudioPart {
  /** From the first sample of frame `firstFrame` of the audio on, at most 30 s. */
  samples: Float32Array;
  firstFrame: number;
  /** The first frame of the audio that is left to the next part. */
  endFrame: number;
}

/** Adds what a part of the audio says to each of them. */
export async function addPart(
  embeddings: readonly PartialEmbedding[],
  { samples, firstFrame, endFrame }: AudioPart,
  model: SpeakerModel,
  signal: AbortSignal,
): Promise<void> {
  // The values of a mask are equal parts of the samples. The first frame begins a little more than one part later.
  const length = Math.max(1, Math.round(samples.length / FRAME_SAMPLES));
  const found = embeddings.flatMap((embedding) => {
    const here = embedding.left.filter((frame) => frame < endFrame);
    embedding.left = embedding.left.slice(here.length);
    const isOnly = embedding.sum.length === 0 && embedding.left.length <= here.length;
    return here.length >= LEAST_FRAMES || (here.length > 0 && isOnly) ? [{ embedding, here }] : [];
  });
  if (found.length === 0) return;
  const values = new Float32Array(found.length * length);
  for (const [i, { here }] of found.entries())
    for (const frame of here) values[i * length + Math.min(length - 1, 1 + frame - firstFrame)] = 1;
  const computed = await model.embeddings(samples, { masks: found.length, values }, { signal });
  const size = computed.length / found.length;
  for (const [i, { embedding, here }] of found.entries())
    embedding.sum = Float32Array.from(
      computed.subarray(i * size, (i + 1) * size),
      (value, at) => (embedding.sum[at] ?? 0) + value * here.length,
    );
}
