/**
 * Two channels of opposite phase cancel each other in their average. Where the average is far weaker than half their
 * difference, the channels are nearly equal but for the sign, so that difference is what each of them holds. The addon
 * does the same for what it decodes (`native/audio/audio_file.cpp`). Pure.
 */
import { SAMPLE_RATE } from './decoder.ts';

/** Samples that are judged together: 64 ms. */
const SPAN = 1024;
/** The energy of the average over that of half the difference, as it gets too weak to hear, and as it is heard again. */
const CANCELLED = 1 / 64;
const HEARD_AGAIN = 1 / 4;
/** The share of the difference changes by this from sample to sample, in 10 ms from none to all: without a click. */
const FADE = 1 / (0.01 * SAMPLE_RATE);

/**
 * Takes pairs of the average of the channels and half their difference, block by block, and gives what is heard of them,
 * with half their difference beside it.
 */
export function createMidSide(): (pairs: Float32Array) => { mono: Float32Array; sides: Float32Array } {
  let cancels = false;
  /** Of the difference in what is heard, 0..1; null before the first block. */
  let share: number | null = null;

  function fade(mono: Float32Array, pairs: Float32Array): void {
    for (let i = 0; i < mono.length; i += 1) {
      const [mid = 0, side = 0] = [pairs[2 * i], pairs[2 * i + 1]];
      share = Math.min(1, Math.max(0, (share ?? 0) + (cancels ? FADE : -FADE)));
      mono[i] = mid + share * (side - mid);
    }
  }

  return (pairs) => {
    const all = new Float32Array(pairs.length / 2);
    const sides = new Float32Array(all.length);
    for (let i = 0; i < all.length; i += 1) {
      all[i] = pairs[2 * i] as number;
      sides[i] = pairs[2 * i + 1] as number;
    }
    for (let at = 0; at < all.length; at += SPAN) {
      const mono = all.subarray(at, at + SPAN);
      const span = pairs.subarray(2 * at, 2 * (at + SPAN));
      cancels = energy(span, 0) < energy(span, 1) * (cancels ? HEARD_AGAIN : CANCELLED);
      share ??= cancels ? 1 : 0;
      if (cancels || share > 0) fade(mono, span);
    }
    return { mono: all, sides };
  };
}

function energy(pairs: Float32Array, first: 0 | 1): number {
  let sum = 0;
  for (let i = first; i < pairs.length; i += 2) sum += (pairs[i] as number) ** 2;
  return sum;
}
