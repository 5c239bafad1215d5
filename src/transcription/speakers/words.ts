/** Gives words to speakers by their times, and cuts segments where the speaker changes. Pure. */
import type { UnnumberedSegment, Word } from '../segment.ts';
import { withWords } from '../segments.ts';
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
  const groups: { speaker: string; words: Word[] }[] = [];
  let speaker = before;
  for (const word of segment.words) {
    speaker = speakerOf(word, turns, speaker);
    const open = groups.at(-1);
    if (open?.speaker === speaker) open.words.push({ ...word, speaker });
    else groups.push({ speaker, words: [{ ...word, speaker }] });
  }
  const [only, ...others] = groups;
  if (only === undefined) return [{ ...segment, speaker: speakerOf(segment, turns, before) }];
  if (others.length === 0) return [{ ...segment, words: only.words, speaker: only.speaker }];
  return groups.map((group) => ({ ...withWords(segment, group.words), speaker: group.speaker }));
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
