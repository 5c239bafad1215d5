/**
 * Cuts a stream of blocks into stretches of windows. The windows of the segmentation overlap, and the network of the
 * voices is the costly one, so that a stretch holds several windows and each of its seconds is computed once for all.
 * Only the audio of the newest stretch and what came after it is held.
 */
import { createAudioWindow } from '../speech/audio-window.ts';
import { FRAME_SAMPLES, framesIn, WINDOW_FRAMES, WINDOW_SAMPLES } from './segmentation.ts';

export interface Stretch {
  /** The first frame of its first window. */
  firstFrame: number;
  /** How many windows begin in it, one step after the other. Samples after the end are silence. */
  windows: number;
  stepFrames: number;
  /** The frames of the stretch that begin before the end of the audio. */
  frames: number;
  samples: Float32Array;
}

export interface StretchSize {
  /** From the start of a window to the start of the next one. */
  stepFrames: number;
  /** The windows of a stretch. */
  windows: number;
}

/** @param sizeAt the size of the stretch that begins at a frame */
export function createStretches(sizeAt: (firstFrame: number) => StretchSize) {
  const audio = createAudioWindow();
  let nextFrame = 0;
  let covered = 0;

  function stretchAt(firstFrame: number, { stepFrames, windows }: StretchSize): Stretch {
    const from = firstFrame * FRAME_SAMPLES;
    const samples = audio.copy(from, from + lengthOf({ stepFrames, windows }));
    const frames = Math.min((windows - 1) * stepFrames + WINDOW_FRAMES, framesIn(samples.length));
    covered = Math.max(covered, firstFrame + frames);
    return { firstFrame, windows, stepFrames, frames, samples };
  }

  return {
    /** Takes the next samples. */
    push(block: Float32Array): void {
      // A tail may need the audio of a whole window before the newest sample.
      audio.forget(Math.min(nextFrame * FRAME_SAMPLES, Math.max(0, audio.length - WINDOW_SAMPLES)));
      audio.append(block);
    },
    /** The next stretch whose windows are full; null when more audio is needed first. */
    next(): Stretch | null {
      const size = sizeAt(nextFrame);
      if (nextFrame * FRAME_SAMPLES + lengthOf(size) > audio.length) return null;
      const stretch = stretchAt(nextFrame, size);
      nextFrame += size.windows * size.stepFrames;
      return stretch;
    },
    /** What is left of the audio so far, with a last window that ends with it; null when nothing is left. */
    tail(): Stretch | null {
      const end = audio.length;
      const lastFirst = Math.max(0, Math.ceil((end - WINDOW_SAMPLES) / FRAME_SAMPLES));
      if (end === 0 || covered >= Math.min(framesIn(end), lastFirst + WINDOW_FRAMES)) return null;
      const left = end - nextFrame * FRAME_SAMPLES;
      const { stepFrames } = sizeAt(nextFrame);
      if (left <= WINDOW_SAMPLES) return stretchAt(lastFirst, { stepFrames, windows: 1 });
      const windows = 1 + Math.ceil((left - WINDOW_SAMPLES) / (stepFrames * FRAME_SAMPLES));
      return stretchAt(nextFrame, { stepFrames, windows });
    },
    /** The frame before which every frame was in a window that was handed out. */
    get covered() {
      return covered;
    },
    /** The number of samples held now. */
    get held() {
      return audio.held;
    },
  };
}

const lengthOf = ({ stepFrames, windows }: StretchSize) =>
  (windows - 1) * stepFrames * FRAME_SAMPLES + WINDOW_SAMPLES;
