/** Asks the two networks about the audio: who of a window's own speakers speaks when, and what each sounds like. */
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import type { SpeakerModel } from '../../engine/types.ts';
import type { WindowSpeakers } from './assignment.ts';
import { addPart, directionOf, type PartialEmbedding, partialOf } from './partial-embeddings.ts';
import { piecesOf, separated } from './pieces.ts';
import {
  CLASSES,
  decodePowerset,
  durationOf,
  expectedSpeakers,
  FRAME_SAMPLES,
  LOCAL_SPEAKERS,
  secondsAt,
  WINDOW_FRAMES,
  WINDOW_SAMPLES,
} from './segmentation.ts';
import type { LocalVoice } from './voice.ts';
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
/** Somebody speaks where that is so likely. Whether it counts is decided over all windows; soft speech needs the low one. */
const LEAST_SPEECH = 0.4;

/**
 * Computes the windows of the audio in order and hands each to `onWindow`.
 * @param options `atOnce` to ask about each window as soon as it is full; else about many at a time, which costs much
 *   less
 */
export function createWindowAnalysis(
  model: SpeakerModel,
  { signal, atOnce }: { signal: AbortSignal; atOnce: boolean },
  onWindow: (window: WindowSpeakers) => void,
) {
  const stretches = createStretches(atOnce ? () => ({ stepFrames: framesOf(STEP_SEC), windows: 1 }) : sizeAt);
  const open: OpenWindow[] = [];
  let last: Promise<void> = Promise.resolve();

  /** Windows are handed out in their order, so the work of one call ends before that of the next begins. */
  function inTurn(work: () => Promise<void>): Promise<void> {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  }
  /** @param whole false to leave to the next stretch what that begins with */
  async function listen(stretch: Stretch | null, whole: boolean): Promise<void> {
    if (stretch === null) return;
    signal.throwIfAborted();
    open.push(...(await windowsIn(stretch, model, signal)));
    signal.throwIfAborted();
    const { firstFrame, windows, stepFrames } = stretch;
    const frames = whole ? Number.POSITIVE_INFINITY : windows * stepFrames;
    const samples = stretch.samples.subarray(0, frames * FRAME_SAMPLES);
    const part = { samples, firstFrame, endFrame: firstFrame + frames };
    await addPart(open.flatMap(embeddingsOf), part, model, signal);
    // No window ends before one that begins earlier.
    const waiting = open.findIndex((window) => !isHeard(window));
    for (const window of open.splice(0, waiting < 0 ? open.length : waiting))
      onWindow(finishedWindow(window));
  }

  return {
    push: (block: Float32Array) =>
      inTurn(async () => {
        signal.throwIfAborted();
        stretches.push(block);
        for (let next = stretches.next(); next !== null; next = stretches.next()) await listen(next, atOnce);
      }),
    /** Resolves when windows reach this frame, or all of the audio that has come. */
    reach: (frame: number) =>
      inTurn(async () => (stretches.covered > frame ? undefined : listen(stretches.tail(), true))),
    finish: () => inTurn(() => listen(stretches.tail(), true)),
  };
}

const framesOf = (seconds: number) => Math.round((seconds * SAMPLE_RATE) / FRAME_SAMPLES);

function sizeAt(firstFrame: number): StretchSize {
  const stepFrames = framesOf(secondsAt(firstFrame) < FIRST_SEC ? FIRST_STEP_SEC : STEP_SEC);
  const room = STRETCH_SEC * SAMPLE_RATE - WINDOW_SAMPLES;
  return { stepFrames, windows: 1 + Math.floor(room / (stepFrames * FRAME_SAMPLES)) };
}

/** A window whose voices are not all heard yet. */
interface OpenWindow {
  window: WindowSpeakers;
  voices: OpenVoice[];
}

interface OpenVoice {
  local: number;
  aloneSec: number;
  weight: number;
  whole: PartialEmbedding;
  pieces: { frames: readonly number[]; embedding: PartialEmbedding }[];
}

const embeddingsOf = ({ voices }: OpenWindow): PartialEmbedding[] =>
  voices.flatMap(({ whole, pieces }) => [whole, ...pieces.map(({ embedding }) => embedding)]);

const isHeard = (open: OpenWindow) => embeddingsOf(open).every(({ left }) => left.length === 0);

/** The windows of a stretch, without the voices. */
async function windowsIn(stretch: Stretch, model: SpeakerModel, signal: AbortSignal): Promise<OpenWindow[]> {
  const { samples, windows, stepFrames, frames } = stretch;
  const logProbs = await model.segmentation(samples, { step: stepFrames * FRAME_SAMPLES }, { signal });
  return Array.from({ length: windows }, (_, i) => {
    const firstFrame = stretch.firstFrame + i * stepFrames;
    const scores = logProbs.subarray(i * WINDOW_FRAMES * CLASSES);
    const count = Math.max(0, Math.min(WINDOW_FRAMES, frames - i * stepFrames));
    const window = {
      firstFrame,
      active: decodePowerset(scores, count, LEAST_SPEECH),
      expected: expectedSpeakers(scores, count),
      voices: new Array<LocalVoice | null>(LOCAL_SPEAKERS).fill(null),
    };
    return { window, voices: voicesIn(window, decodePowerset(scores, count), stepFrames) };
  });
}

/** @param clear who speaks where that is the most likely; voices are better without the doubtful frames */
function voicesIn(
  { firstFrame, active }: WindowSpeakers,
  clear: Uint8Array,
  stepFrames: number,
): OpenVoice[] {
  const embedding = (frames: readonly number[]) => partialOf(frames.map((frame) => firstFrame + frame));
  return Array.from({ length: LOCAL_SPEAKERS }, (_, local) => local).flatMap((local) => {
    const chosen = framesToEmbed(clear, local) ?? framesToEmbed(active, local);
    if (chosen === null) return [];
    const { frames, aloneSec } = chosen;
    const pieces = aloneSec > 0 ? piecesOf(frames) : [];
    return {
      local,
      aloneSec,
      weight: (durationOf(frames.length) * stepFrames * FRAME_SAMPLES) / WINDOW_SAMPLES,
      whole: embedding(frames),
      pieces: pieces.map((piece) => ({ frames: piece, embedding: embedding(piece) })),
    };
  });
}

/** The window with the voices of those who speak in it. */
function finishedWindow({ window, voices }: OpenWindow): WindowSpeakers {
  for (const { local, aloneSec, weight, whole, pieces } of voices)
    window.voices[local] = {
      direction: directionOf(whole),
      aloneSec,
      weight,
      pieces: pieces.map(({ frames, embedding }) => ({
        direction: directionOf(embedding),
        weight: durationOf(frames.length),
        from: frames[0] ?? 0,
        to: (frames.at(-1) ?? 0) + 1,
      })),
    };
  return separated(window);
}

/** Below this an embedding says little of the voice. */
const LEAST_SEC = 0.2;

/**
 * What an embedding is computed of: the time in which one speaker speaks and no other. What two say at once would give
 * a voice between theirs, so it counts only where there is nothing else.
 * @returns the frames of local speaker `speaker`, and the seconds in which it speaks alone, which are 0 where the frames
 *   are those with others; null where they are too few to know a voice by
 */
export function framesToEmbed(
  active: Uint8Array,
  speaker: number,
): { frames: number[]; aloneSec: number } | null {
  const bit = 1 << speaker;
  const of = (isMine: (set: number) => boolean) => [...active.keys()].filter((i) => isMine(active[i] ?? 0));
  const alone = of((set) => set === bit);
  if (durationOf(alone.length) >= LEAST_SEC) return { frames: alone, aloneSec: durationOf(alone.length) };
  const all = of((set) => (set & bit) !== 0);
  return durationOf(all.length) >= LEAST_SEC ? { frames: all, aloneSec: 0 } : null;
}
