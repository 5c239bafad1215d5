/** Plans who speaks when in a conversation, the same at every call. */
import { type Random, shuffled } from '../../common/random.ts';
import { merged, type Span } from './speech-spans.ts';

/** What one person says in one go. Times are seconds from its start, where speech begins; `seconds` is where it ends. */
export interface Said {
  seconds: number;
  /** Where there is sound, in order. */
  spans: Span[];
}

export interface Turn<T extends Said> {
  speaker: number;
  /** Seconds from the start of the conversation. */
  start: number;
  said: T;
}

export interface Talk {
  speakers: number;
  seconds: number;
  /** Wanted share of the time with speech in which two or more speak, 0..1. */
  overlap: number;
  /** Bounds of a turn, in seconds. */
  turnSec: readonly [least: number, most: number];
  /** The mean of the pauses between turns, in seconds. */
  pauseSec?: number;
}

const SILENT_START_SEC = 0.5;
const MEAN_PAUSE_SEC = 0.6;
const LONGEST_PAUSE_SEC = 3;
const LEAST_OVERLAP_SEC = 0.2;
/** The later speaker begins within the last part of the turn before, or says something short in the middle of it. */
const LONGEST_OVERLAP_SEC = 3;
const BREATH_SEC = 0.15;

/**
 * @param speak gives something of about that length that this speaker has not said yet
 * @param random uniform values from 0 to 1, seeded
 */
export function planned<T extends Said>(
  { speakers, seconds, overlap, turnSec, pauseSec = MEAN_PAUSE_SEC }: Talk,
  speak: (speaker: number, seconds: number) => T,
  random: Random,
): Turn<T>[] {
  const talkative = Array.from({ length: speakers }, () => 0.4 + random());
  const waiting = shuffled([...talkative.keys()], random);
  const turns: Turn<T>[] = [];
  const ends = new Array<number>(speakers).fill(0);
  let [speaker, shared, spoken] = [-1, 0, 0];
  for (let end = SILENT_START_SEC; ; end = Math.max(...ends)) {
    // All are heard once before chance decides.
    speaker = waiting.pop() ?? another(speaker, talkative, random);
    const [least, most] = turnSec;
    const longest = Math.min(most, (0.8 * seconds) / speakers);
    const said = speak(speaker, least * (longest / least) ** random());
    const interrupts = turns.length > 0 && shared < overlap * spoken;
    const start = interrupts
      ? Math.max(
          (ends[speaker] ?? 0) + BREATH_SEC,
          end - overlapSec(turns.at(-1)?.said.seconds ?? 0, said.seconds, random),
        )
      : end +
        (turns.length === 0
          ? 0
          : Math.min(LONGEST_PAUSE_SEC * Math.max(1, pauseSec), -pauseSec * Math.log(1 - random())));
    if (start + said.seconds > seconds) break;
    shared += Math.max(0, Math.min(end, start + said.seconds) - start);
    spoken += Math.max(0, start + said.seconds - Math.max(end, start));
    turns.push({ speaker, start, said });
    ends[speaker] = start + said.seconds;
  }
  return turns;
}

/** The stretches of speech of each speaker; a short pause between two turns of one speaker is part of them. */
export function spansOf<T extends Said>(turns: readonly Turn<T>[], speaker: number): Span[] {
  const spans = turns
    .filter((turn) => turn.speaker === speaker)
    .flatMap(({ start, said }) =>
      said.spans.map((span) => ({ start: start + span.start, end: start + span.end })),
    );
  return merged(spans.toSorted((a, b) => a.start - b.start));
}

function overlapSec(before: number, own: number, random: Random): number {
  const most = Math.min(LONGEST_OVERLAP_SEC + own, 0.9 * before, random() < 0.5 ? 0.6 * own : own + 2);
  return LEAST_OVERLAP_SEC + random() * Math.max(0, most - LEAST_OVERLAP_SEC);
}

function another(last: number, talkative: readonly number[], random: Random): number {
  const weights = talkative.map((weight, speaker) => (speaker === last && talkative.length > 1 ? 0 : weight));
  let left = random() * weights.reduce((sum, weight) => sum + weight, 0);
  return Math.max(
    0,
    weights.findIndex((weight) => {
      left -= weight;
      return left < 0;
    }),
  );
}
