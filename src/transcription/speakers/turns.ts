/**
 * Makes speaker turns of labeled windows: who speaks from when to when, where two may speak at once. Windows overlap,
 * so they vote on each frame: the mean of what they expect says how many speak, and those with the most votes do.
 * Pure.
 */
import { type LabeledWindow, UNKNOWN } from './assignment.ts';
import { durationOf, secondsAt } from './frames.ts';

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

/**
 * The turns in the frames from `range.from` up to `range.to`, by start. Turns of different speakers may overlap.
 * @param windows in the order of their first frames
 */
export function turnsOf(
  windows: readonly LabeledWindow[],
  range: { from: number; to: number } = { from: 0, to: Number.POSITIVE_INFINITY },
): NumberedTurn[] {
  const pause = Math.round(PAUSE_SEC / durationOf(1));
  const least = LEAST_TURN_SEC / durationOf(1);
  const open = new Map<number, { from: number; to: number }>();
  const turns: NumberedTurn[] = [];
  const close = (speaker: number, { from, to }: { from: number; to: number }) => {
    open.delete(speaker);
    if (to - from >= least) turns.push({ speaker, start: secondsAt(from), end: secondsAt(to) });
  };
  for (const { frame, speakers } of speakersByFrame(windows, range)) {
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

function* speakersByFrame(
  windows: readonly LabeledWindow[],
  { from, to }: { from: number; to: number },
): Generator<{ frame: number; speakers: number[] }> {
  const endOf = ({ firstFrame, active }: LabeledWindow) => firstFrame + active.length;
  const first = windows.findIndex((window) => endOf(window) > from);
  if (first < 0) return;
  let next = first;
  let covering: LabeledWindow[] = [];
  let before: number[] = [];
  for (let frame = Math.max(from, windows[first]?.firstFrame ?? 0); frame < to; frame += 1) {
    covering = covering.filter((window) => endOf(window) > frame);
    for (; next < windows.length && (windows[next]?.firstFrame ?? 0) <= frame; next += 1) {
      const window = windows[next];
      if (window !== undefined && endOf(window) > frame) covering.push(window);
    }
    if (covering.length === 0 && next >= windows.length) return;
    before = speakersAt(frame, covering, before);
    yield { frame, speakers: before };
  }
}

/** @param before who spoke in the frame before, and goes on where the votes are equal */
function speakersAt(frame: number, covering: readonly LabeledWindow[], before: number[]): number[] {
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
  if (mean < LEAST_EXPECTED) return [];
  const count = Math.max(1, Math.round(mean));
  const rank = (label: number) => (votes.get(label) ?? 0) + (before.includes(label) ? 0.5 : 0);
  return [...votes.keys()].sort((a, b) => rank(b) - rank(a) || a - b).slice(0, count);
}
