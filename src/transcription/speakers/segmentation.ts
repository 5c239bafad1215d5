/**
 * What the segmentation says (pyannote segmentation-3.0): where its frames lie, and who of a window's own speakers speaks
 * in each. Windows begin on one grid of frames for the whole audio, so that frame `i` of a window is frame
 * `firstFrame + i` of the audio. A frame has powerset classes (Plaquet and Bredin, "Powerset multi-class cross entropy
 * loss for neural speaker diarization", 2023): each stands for a set of at most two of three speakers. Pure.
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

/** The speakers that a window tells apart. */
export const LOCAL_SPEAKERS = 3;

/** The classes of a frame. */
export const CLASSES = 7;

/** The set of speakers of each class, as bits: none, 1, 2, 3, 1+2, 1+3, 2+3. */
const SETS = [0b000, 0b001, 0b010, 0b100, 0b011, 0b101, 0b110];
/** How many speak in each class. */
const SIZES = SETS.map((set) => (set & 1) + ((set >> 1) & 1) + (set >> 2));

/**
 * The set of speakers in each frame, as bits: bit `s` is set when local speaker `s` speaks.
 * @param logProbs log probabilities, 7 for each frame
 * @param frames the frames to decode; later ones are padding
 * @param least the probability of speech from which on somebody speaks; else the most likely class says whether
 */
export function decodePowerset(logProbs: Float32Array, frames: number, least?: number): Uint8Array {
  checkLength(logProbs, frames);
  const active = new Uint8Array(frames);
  for (let frame = 0; frame < frames; frame += 1) {
    const at = (c: number) => logProbs[frame * CLASSES + c] ?? 0;
    let best = 1;
    for (let c = 2; c < CLASSES; c += 1) if (at(c) > at(best)) best = c;
    const isSpeech = least === undefined ? at(best) > at(0) : 1 - Math.exp(at(0)) >= least;
    active[frame] = isSpeech ? (SETS[best] ?? 0) : 0;
  }
  return active;
}

/** How many speak in each frame, 0 to 2: the mean over the classes by their probability. Parameters are as above. */
export function expectedSpeakers(logProbs: Float32Array, frames: number): Float32Array {
  checkLength(logProbs, frames);
  return Float32Array.from({ length: frames }, (_, frame) =>
    SIZES.reduce((sum, size, c) => sum + size * Math.exp(logProbs[frame * CLASSES + c] ?? 0), 0),
  );
}

function checkLength(logProbs: Float32Array, frames: number): void {
  if (logProbs.length < frames * CLASSES)
    throw new Error(`The segmentation gave ${logProbs.length} values for ${frames} frames of ${CLASSES}`);
}
