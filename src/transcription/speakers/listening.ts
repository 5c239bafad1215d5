/** Asks the two networks about the audio: who of a window's own speakers speaks when, and what each sounds like. */
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import type { SpeakerModel } from '../../engine/types.ts';
import type { WindowSpeakers } from './assignment.ts';
import { durationOf, FRAME_SAMPLES, secondsAt, WINDOW_FRAMES, WINDOW_SAMPLES } from './frames.ts';
import { piecesOf, separated } from './pieces.ts';
import { CLASSES, decodePowerset, expectedSpeakers, LOCAL_SPEAKERS } from './powerset.ts';
import { type Heard, heardOf } from './solo.ts';
import { type LocalVoice, unit } from './voice.ts';
import { createStretches, type Stretch, type StretchSize } from './windows.ts';

/** The most audio of one call of the embedding. */
const STRETCH_SEC = 30;
/**
 * From the start of a window to the start of the next one. Twice as many windows cost twice the segmentation and cut
 * the error of short audio, where each voice has few windows. Long audio gains little, so only its beginning has them.
 */
const STEP_SEC = 2.5;
const FIRST_STEP_SEC = 1.25;
const FIRST_SEC = 60;

export interface ListeningOptions {
  signal: AbortSignal;
  /** True to ask about each window as soon as it is full; else about many at a time, which costs much less. */
  atOnce: boolean;
}

export interface Listening {
  push(block: Float32Array): Promise<void>;
  /** Resolves when windows reach this frame, or all of the audio that has come. */
  reach(frame: number): Promise<void>;
  finish(): Promise<void>;
}

/** Computes the windows of the audio in order and hands each to `onWindow`. */
export function createListening(
  model: SpeakerModel,
  { signal, atOnce }: ListeningOptions,
  onWindow: (window: WindowSpeakers) => void,
): Listening {
  const stretches = createStretches(atOnce ? () => ({ stepFrames: framesOf(STEP_SEC), windows: 1 }) : sizeAt);
  let last: Promise<void> = Promise.resolve();

  /** Windows are handed out in their order, so the work of one call ends before that of the next begins. */
  function inTurn(work: () => Promise<void>): Promise<void> {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  }
  async function listen(stretch: Stretch | null): Promise<void> {
    if (stretch === null) return;
    for (const window of await speakersIn(stretch, model, signal)) onWindow(window);
  }

  return {
    push: (block) =>
      inTurn(async () => {
        signal.throwIfAborted();
        stretches.push(block);
        for (let next = stretches.next(); next !== null; next = stretches.next()) await listen(next);
      }),
    reach: (frame) => inTurn(async () => (stretches.covered > frame ? undefined : listen(stretches.tail()))),
    finish: () => inTurn(() => listen(stretches.tail())),
  };
}

const framesOf = (seconds: number) => Math.round((seconds * SAMPLE_RATE) / FRAME_SAMPLES);

function sizeAt(firstFrame: number): StretchSize {
  const stepFrames = framesOf(secondsAt(firstFrame) < FIRST_SEC ? FIRST_STEP_SEC : STEP_SEC);
  const room = STRETCH_SEC * SAMPLE_RATE - WINDOW_SAMPLES;
  return { stepFrames, windows: 1 + Math.floor(room / (stepFrames * FRAME_SAMPLES)) };
}

async function speakersIn(
  stretch: Stretch,
  model: SpeakerModel,
  signal: AbortSignal,
): Promise<WindowSpeakers[]> {
  const { samples, firstFrame, windows, stepFrames, frames } = stretch;
  signal.throwIfAborted();
  const logProbs = await model.segmentation(samples, { step: stepFrames * FRAME_SAMPLES }, { signal });
  const found: WindowSpeakers[] = [];
  const heard: (Heard & { voices: (LocalVoice | null)[]; local: number; pieces: number[][] })[] = [];
  const masks: number[][] = []; // frames of the stretch, of each voice and then of its pieces
  for (let window = 0; window < windows; window += 1) {
    const first = window * stepFrames;
    const scores = logProbs.subarray(window * WINDOW_FRAMES * CLASSES);
    const count = Math.max(0, Math.min(WINDOW_FRAMES, frames - first));
    const active = decodePowerset(scores, count);
    const voices: (LocalVoice | null)[] = new Array(LOCAL_SPEAKERS).fill(null);
    found.push({ firstFrame: firstFrame + first, active, expected: expectedSpeakers(scores, count), voices });
    for (let local = 0; local < LOCAL_SPEAKERS; local += 1) {
      const own = heardOf(active, local);
      if (own === null) continue;
      const pieces = own.aloneSec > 0 ? piecesOf(own.frames) : [];
      heard.push({ ...own, voices, local, pieces });
      for (const mask of [own.frames, ...pieces]) masks.push(mask.map((frame) => first + frame));
    }
  }
  if (masks.length === 0) return found;
  signal.throwIfAborted();
  const directions = await directionsOf(masks, samples, model, signal);
  let next = 0;
  for (const { voices, local, aloneSec, pieces } of heard) {
    voices[local] = {
      direction: directions[next++] ?? new Float32Array(),
      aloneSec,
      weight: (aloneSec * stepFrames * FRAME_SAMPLES) / WINDOW_SAMPLES,
      pieces: pieces.map((frames) => ({
        direction: directions[next++] ?? new Float32Array(),
        weight: durationOf(frames.length),
        from: frames[0] ?? 0,
        to: (frames.at(-1) ?? 0) + 1,
      })),
    };
  }
  return found.map(separated);
}

/** The voices in some frames of a stretch, each of unit length. */
async function directionsOf(
  masks: readonly number[][],
  samples: Float32Array,
  model: SpeakerModel,
  signal: AbortSignal,
): Promise<Float32Array[]> {
  // The values of a mask are equal parts of the samples. The first frame begins a little more than one part later.
  const length = Math.max(1, Math.round(samples.length / FRAME_SAMPLES));
  const values = new Float32Array(masks.length * length);
  for (const [i, frames] of masks.entries())
    for (const frame of frames) values[i * length + Math.min(length - 1, 1 + frame)] = 1;
  const embeddings = await model.embeddings(samples, { masks: masks.length, values }, { signal });
  const size = embeddings.length / masks.length;
  return masks.map((_, i) => unit(embeddings.slice(i * size, (i + 1) * size)));
}
