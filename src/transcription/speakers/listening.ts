/** Asks the two networks about the audio: who of a window's own speakers speaks when, and what each sounds like. */
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import type { SpeakerModel } from '../../engine/types.ts';
import type { WindowSpeakers } from './assignment.ts';
import { FRAME_SAMPLES, WINDOW_FRAMES, WINDOW_SAMPLES } from './frames.ts';
import { CLASSES, decodePowerset, LOCAL_SPEAKERS } from './powerset.ts';
import { fillSolo, soloSeconds } from './solo.ts';
import { unit } from './voice.ts';
import { createStretches, type Stretch } from './windows.ts';

/** The most audio and the most masks of one call of the embedding. */
const MAX_STRETCH_SEC = 30;
const MAX_MASKS = 64;

export interface ListeningOptions {
  signal: AbortSignal;
  /** From the start of a window to the start of the next one, in seconds. */
  stepSec: number;
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
  { signal, stepSec, atOnce }: ListeningOptions,
  onWindow: (window: WindowSpeakers) => void,
): Listening {
  const stepFrames = Math.max(6, Math.round((stepSec * SAMPLE_RATE) / FRAME_SAMPLES));
  const room = MAX_STRETCH_SEC * SAMPLE_RATE - WINDOW_SAMPLES;
  const windows = atOnce ? 1 : 1 + Math.floor(room / (stepFrames * FRAME_SAMPLES));
  const stretches = createStretches({ stepFrames, windows });
  let last: Promise<void> = Promise.resolve();

  /** The samples are views of one buffer, so no block may come while they are computed. */
  function inTurn(work: () => Promise<void>): Promise<void> {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  }
  async function listen(stretch: Stretch | null): Promise<void> {
    if (stretch === null) return;
    for (const window of await speakersIn(stretch, stepFrames, model, signal)) onWindow(window);
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

async function speakersIn(
  stretch: Stretch,
  stepFrames: number,
  model: SpeakerModel,
  signal: AbortSignal,
): Promise<WindowSpeakers[]> {
  const { samples, firstFrame, windows, frames } = stretch;
  signal.throwIfAborted();
  const logProbs = await model.segmentation(samples, { step: stepFrames * FRAME_SAMPLES }, { signal });
  const heard: WindowSpeakers[] = [];
  const solos: { window: number; local: number; seconds: number }[] = [];
  for (let window = 0; window < windows; window += 1) {
    const first = window * stepFrames;
    const scores = logProbs.subarray(window * WINDOW_FRAMES * CLASSES);
    const active = decodePowerset(scores, Math.max(0, Math.min(WINDOW_FRAMES, frames - first)));
    heard.push({
      firstFrame: firstFrame + first,
      active,
      voices: new Array(LOCAL_SPEAKERS).fill(null),
    });
    for (let local = 0; local < LOCAL_SPEAKERS; local += 1) {
      const seconds = soloSeconds(active, local);
      if (seconds > 0) solos.push({ window, local, seconds });
    }
  }
  if (solos.length === 0) return heard;
  if (solos.length > MAX_MASKS) throw new Error(`${solos.length} masks are too many`);
  // The values of a mask are equal parts of the samples. The first frame begins a little more than one part later.
  const length = Math.max(1, Math.round(samples.length / FRAME_SAMPLES));
  const values = new Float32Array(solos.length * length);
  for (const [i, { window, local }] of solos.entries())
    fillSolo(
      values.subarray(i * length, (i + 1) * length),
      window * stepFrames + 1,
      heard[window]?.active ?? new Uint8Array(),
      local,
    );
  signal.throwIfAborted();
  const embeddings = await model.embeddings(samples, { masks: solos.length, values }, { signal });
  const size = embeddings.length / solos.length;
  for (const [i, { window, local, seconds }] of solos.entries()) {
    const voices = heard[window]?.voices ?? [];
    voices[local] = { direction: unit(embeddings.slice(i * size, (i + 1) * size)), weight: seconds };
  }
  return heard;
}
