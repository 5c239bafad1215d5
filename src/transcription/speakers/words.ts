/** Gives words to speakers by their times, and cuts segments where the speaker changes. Pure. */
import { type UnnumberedSegment, withWords } from '../segment.ts';
import type { Turn } from './diarization.ts';

/**
 * Where two speak at once, a word goes on with the speaker before it unless it lies that much longer (in seconds) in
 * the turn of another.
 */
const GOES_ON_SEC = 0.1;

/**
 * The parts of a segment, each of one speaker, in order; every word is kept once.
 * @param turns the turns around the segment, by start
 * @param before the speaker of the words before, for words outside of all turns
 */
export function bySpeaker(
  segment: UnnumberedSegment,
  turns: readonly Turn[],
  before: string,
): UnnumberedSegment[] {
  let speaker = before;
  const words = segment.words.map((word) => {
    speaker = speakerOf(word, turns, speaker);
    return { ...word, speaker };
  });
  const [only, ...others] = runsBySpeaker(words);
  if (only === undefined) return [{ ...segment, speaker: speakerOf(segment, turns, before) }];
  if (others.length === 0) return [{ ...segment, words: only, speaker: only[0].speaker }];
  return [only, ...others].map((run) => ({ ...withWords(segment, run), speaker: run[0].speaker }));
}

/** The speaker in whose turns most of a span lies; outside of all turns, the nearest. */
function speakerOf(span: { start: number; end: number }, turns: readonly Turn[], before: string): string {
  const shares = new Map<string, number>();
  let nearest = { speaker: before, away: Number.POSITIVE_INFINITY };
  for (const { speaker, start, end } of turns) {
    const common = Math.min(span.end, end) - Math.max(span.start, start);
    if (common > 0) shares.set(speaker, (shares.get(speaker) ?? 0) + common);
    const away = Math.max(0, -common);
    if (away < nearest.away || (away === nearest.away && speaker === before)) nearest = { speaker, away };
  }
  if (shares.size === 0) return nearest.speaker;
  const share = (speaker: string) => (shares.get(speaker) ?? 0) + (speaker === before ? GOES_ON_SEC : 0);
  return [...shares.keys()].reduce((best, speaker) => (share(speaker) > share(best) ? speaker : best));
}

/** What one speaker says without anybody else between. */
type Run<T> = [first: T, ...others: T[]];

/** The runs in order; everything without a speaker counts as one speaker's. */
export function runsBySpeaker<T extends { speaker?: string }>(all: Iterable<T>): Run<T>[] {
  const runs: Run<T>[] = [];
  for (const item of all) {
    const last = runs.at(-1);
    if (last !== undefined && last[0].speaker === item.speaker) last.push(item);
    else runs.push([item]);
  }
  return runs;
}
