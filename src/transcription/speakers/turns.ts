/**
 * Makes speaker turns of labeled windows: who speaks from when to when, where two may speak at once. Windows overlap,
 * so they vote on each frame: the mean of what they expect says how many speak, and those with the most votes do.
 * Pure.
 */
import { endOf, type LabeledWindow, UNKNOWN } from './assignment.ts';
import { durationOf, secondsAt } from './segmentation.ts';

/** One speaker speaks. Times are seconds from the start of the audio. */
export interface NumberedTurn {
  /** An index of the speakers of the audio. */
  speaker: number;
  start: number;
  end: number;
}

/** A shorter pause does not end a turn. */
export const PAUSE_SEC = 0.1;
/** A shorter turn is a click, or the end of another speaker's. */
const LEAST_TURN_SEC = 0.1;
/** A frame is a pause where the windows expect fewer speakers. A limit of 0.5 makes speech of more pauses between words. */
const LEAST_EXPECTED = 0.6;
/** Where two speak at once the windows expect more. */
const TWO_EXPECTED = 1.4;
/** Windows are in doubt about soft and far voices, so where such frames are many the limit falls, down to this one. */
const FAR_LEAST_EXPECTED = 0.4;
/** A frame is doubtful where the windows expect at least so many speakers, and fewer than `LEAST_EXPECTED`. */
const LEAST_DOUBTFUL = 0.2;
/** The doubtful frames for each frame of speech, where the limit begins to fall and where it is lowest. */
const DOUBTFUL_NEAR = 0.12;
const DOUBTFUL_FAR = 0.25;

/**
 * The turns in the frames from `from` up to `to`, by start. Turns of different speakers may overlap.
 * @param windows in the order of their first frames
 * @param options frames, `to` exclusive; `least` as `leastExpected` gives it
 */
export function turnsOf(
  windows: readonly LabeledWindow[],
  { from = 0, to = Number.POSITIVE_INFINITY, least: limit = LEAST_EXPECTED } = {},
): NumberedTurn[] {
  const pause = Math.round(PAUSE_SEC / durationOf(1));
  const least = LEAST_TURN_SEC / durationOf(1);
  const open = new Map<number, { from: number; to: number }>();
  const turns: NumberedTurn[] = [];
  const close = (speaker: number, { from, to }: { from: number; to: number }) => {
    open.delete(speaker);
    if (to - from >= least) turns.push({ speaker, start: secondsAt(from), end: secondsAt(to) });
  };
  let speakers: number[] = [];
  for (const { frame, covering } of coveringByFrame(windows, { from, to })) {
    speakers = speakersAt(frame, covering, { before: speakers, least: limit });
    for (const [speaker, turn] of open) if (frame - turn.to > pause) close(speaker, turn);
    for (const speaker of speakers) {
      const turn = open.get(speaker);
      if (turn === undefined) open.set(speaker, { from: frame, to: frame + 1 });
      else turn.to = frame + 1;
    }
  }
  for (const [speaker, turn] of open) close(speaker, turn);
  return turns.sort((a, b) => a.start - b.start || a.end - b.end);
}

/** How many speakers the windows have to expect in a frame of speech, by how much of this audio they are in doubt of. */
export function leastExpected(windows: readonly LabeledWindow[]): number {
  let [speech, doubtful] = [0, 0];
  for (const { frame, covering } of coveringByFrame(windows, { from: 0, to: Number.POSITIVE_INFINITY })) {
    const sum = covering.reduce((all, one) => all + (one.expected[frame - one.firstFrame] ?? 0), 0);
    const mean = sum / Math.max(1, covering.length);
    if (mean >= LEAST_EXPECTED) speech += 1;
    else if (mean >= LEAST_DOUBTFUL) doubtful += 1;
  }
  const share = (doubtful / Math.max(1, speech) - DOUBTFUL_NEAR) / (DOUBTFUL_FAR - DOUBTFUL_NEAR);
  return LEAST_EXPECTED - (LEAST_EXPECTED - FAR_LEAST_EXPECTED) * Math.min(1, Math.max(0, share));
}

function* coveringByFrame(
  windows: readonly LabeledWindow[],
  { from, to }: { from: number; to: number },
): Generator<{ frame: number; covering: readonly LabeledWindow[] }> {
  const first = windows.findIndex((window) => endOf(window) > from);
  if (first < 0) return;
  let next = first;
  let covering: LabeledWindow[] = [];
  for (let frame = Math.max(from, windows[first]?.firstFrame ?? 0); frame < to; frame += 1) {
    covering = covering.filter((window) => endOf(window) > frame);
    for (; next < windows.length && (windows[next]?.firstFrame ?? 0) <= frame; next += 1) {
      const window = windows[next];
      if (window !== undefined && endOf(window) > frame) covering.push(window);
    }
    if (covering.length === 0 && next >= windows.length) return;
    yield { frame, covering };
  }
}

/** @param before who spoke in the frame before, and goes on where the votes are equal */
function speakersAt(
  frame: number,
  covering: readonly LabeledWindow[],
  { before, least }: { before: readonly number[]; least: number },
): number[] {
  const votes = new Map<number, number>();
  let sum = 0;
  for (const { firstFrame, active, expected, labels } of covering) {
    const bits = active[frame - firstFrame] ?? 0;
    const local = labels.filter((_, i) => (bits & (1 << i)) !== 0);
    const known = local.filter((label) => label !== UNKNOWN);
    for (const label of new Set(known)) votes.set(label, (votes.get(label) ?? 0) + 1);
    sum += (expected[frame - firstFrame] ?? 0) * (local.length > 0 ? known.length / local.length : 1);
  }
  const mean = sum / Math.max(1, covering.length);
  if (mean < least) return [];
  const count = mean >= TWO_EXPECTED ? 2 : 1;
  const rank = (label: number) => (votes.get(label) ?? 0) + (before.includes(label) ? 0.5 : 0);
  return [...votes.keys()].sort((a, b) => rank(b) - rank(a) || a - b).slice(0, count);
}
