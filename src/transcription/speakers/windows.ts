/**
 * Cuts a stream of blocks into stretches of windows. The windows of the segmentation overlap, and the network of the
 * voices is the costly one, so that a stretch holds several windows and each of its seconds is computed once for all.
 * Only the audio of the newest stretch and what came after it is held.
 */
import { FRAME_SAMPLES, framesIn, WINDOW_FRAMES, WINDOW_SAMPLES } from './frames.ts';

/** The samples are a view that is valid until the next call. */
export interface Stretch {
  /** The first frame of its first window. */
  firstFrame: number;
  /** How many windows begin in it, one step after the other. Samples after the end are silence. */
  windows: number;
  /** The frames of the stretch that begin before the end of the audio. */
  frames: number;
  samples: Float32Array;
}

export interface Stretches {
  /** Takes the next samples. */
  push(block: Float32Array): void;
  /** The next stretch whose windows are full; null when more audio is needed first. */
  next(): Stretch | null;
  /** What is left of the audio so far, with a last window that ends with it; null when nothing is left. */
  tail(): Stretch | null;
  /** The frame before which every frame was in a window that was handed out. */
  readonly covered: number;
  /** The number of samples held now. */
  readonly held: number;
}

export interface StretchSize {
  /** From the start of a window to the start of the next one. */
  stepFrames: number;
  /** The windows of a stretch. */
  windows: number;
}

export function createStretches({ stepFrames, windows }: StretchSize): Stretches {
  const stepSamples = stepFrames * FRAME_SAMPLES;
  const stretchSamples = (windows - 1) * stepSamples + WINDOW_SAMPLES;
  let held = new Float32Array(0);
  let heldFrom = 0; // in samples from the start of the audio
  let nextFrame = 0;
  let covered = 0;

  const length = () => heldFrom + held.length;

  function stretchAt(firstFrame: number, count: number): Stretch {
    const from = firstFrame * FRAME_SAMPLES - heldFrom;
    const samples = held.subarray(from, from + (count - 1) * stepSamples + WINDOW_SAMPLES);
    const frames = Math.min((count - 1) * stepFrames + WINDOW_FRAMES, framesIn(samples.length));
    covered = Math.max(covered, firstFrame + frames);
    return { firstFrame, windows: count, frames, samples };
  }

  return {
    push(block) {
      // A tail may need the audio of a whole window before the newest sample.
      const keepFrom = Math.min(nextFrame * FRAME_SAMPLES, Math.max(0, length() - WINDOW_SAMPLES));
      const rest = held.subarray(Math.max(0, keepFrom - heldFrom));
      heldFrom = Math.max(heldFrom, keepFrom);
      held = new Float32Array(rest.length + block.length);
      held.set(rest);
      held.set(block, rest.length);
    },
    next() {
      if (nextFrame * FRAME_SAMPLES + stretchSamples > length()) return null;
      const stretch = stretchAt(nextFrame, windows);
      nextFrame += windows * stepFrames;
      return stretch;
    },
    tail() {
      const end = length();
      const lastFirst = Math.max(0, Math.ceil((end - WINDOW_SAMPLES) / FRAME_SAMPLES));
      if (end === 0 || covered >= Math.min(framesIn(end), lastFirst + WINDOW_FRAMES)) return null;
      const left = end - nextFrame * FRAME_SAMPLES;
      if (left > WINDOW_SAMPLES)
        return stretchAt(nextFrame, 1 + Math.ceil((left - WINDOW_SAMPLES) / stepSamples));
      return stretchAt(lastFirst, 1);
    },
    get covered() {
      return covered;
    },
    get held() {
      return held.length;
    },
  };
}
