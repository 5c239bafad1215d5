/**
 * Where the frames of the segmentation lie (pyannote segmentation-3.0). Windows begin on one grid of frames for the
 * whole audio, so that frame `i` of a window is frame `firstFrame + i` of the audio. Pure.
 */
import { SAMPLE_RATE } from '../../audio/decoder.ts';

/** A window is 10 s. */
export const WINDOW_SAMPLES = 160_000;
export const WINDOW_FRAMES = 589;
/** From one frame to the next. */
export const FRAME_SAMPLES = 270;
/** The start of the first frame in a window: half of the receptive field (991 samples) less half of a frame. */
const OFFSET_SAMPLES = 360;

/** The frames that begin before the end of so many samples. */
export const framesIn = (samples: number) =>
  Math.max(1, Math.ceil((samples - OFFSET_SAMPLES) / FRAME_SAMPLES));

/** The sample at which a frame begins. */
const sampleAt = (frame: number) => OFFSET_SAMPLES + frame * FRAME_SAMPLES;

/** The frame that a time falls in. */
export function frameAt(seconds: number): number {
  return Math.max(0, Math.floor((seconds * SAMPLE_RATE - OFFSET_SAMPLES) / FRAME_SAMPLES));
}

/** The time at which a frame begins. What precedes the first frame counts as a part of it. */
export const secondsAt = (frame: number) => (frame === 0 ? 0 : sampleAt(frame) / SAMPLE_RATE);

/** How long so many frames last, in seconds. */
export const durationOf = (frames: number) => (frames * FRAME_SAMPLES) / SAMPLE_RATE;
