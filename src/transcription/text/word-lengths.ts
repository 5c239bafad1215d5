/**
 * Gives each word a length. The alignment may leave a word no time at all, which players do not show, and by which
 * nothing can be found in the audio. Pure.
 */
import type { Word } from '../segment.ts';

/** As long as the shortest words that people say. */
const LEAST_SEC = 0.06;
/** A word that is shorter shares the time of the words beside it. */
const NO_LENGTH_SEC = 0.02;

/**
 * The words in order, none without a length and none that overlaps another.
 * @param untilSec the time in seconds until which the last word may go on
 */
export function withLengths(words: Word[], untilSec: number): Word[] {
  const timed = words.map((word) => ({ ...word }));
  timed.forEach((word, i) => {
    const limit = timed[i + 1]?.start ?? untilSec;
    if (lengthOf([word]) < NO_LENGTH_SEC)
      word.end = Math.max(word.end, Math.min(limit, word.start + LEAST_SEC));
  });
  timed.forEach((word, i) => {
    if (lengthOf([word]) < NO_LENGTH_SEC) share(groupAround(timed, i), untilSec);
  });
  return timed;
}

const lengthOf = (words: Word[]): number => (words.at(-1)?.end ?? 0) - (words[0]?.start ?? 0);

/** The fewest neighbors of a word that have time for all of them, the nearer ones first. */
function groupAround(words: Word[], at: number): Word[] {
  let [from, to] = [at, at + 1];
  while (lengthOf(words.slice(from, to)) < LEAST_SEC * (to - from) && to - from < words.length) {
    const before = from > 0 ? gapBetween(words[from - 1], words[from]) : Number.POSITIVE_INFINITY;
    const after = to < words.length ? gapBetween(words[to - 1], words[to]) : Number.POSITIVE_INFINITY;
    if (before <= after) from--;
    else to++;
  }
  return words.slice(from, to);
}

const gapBetween = (word: Word | undefined, next: Word | undefined): number =>
  (next?.start ?? 0) - (word?.end ?? 0);

/** Divides the time of the words among them by the lengths of their texts. All words of a chunk may go on to its end. */
function share(words: Word[], untilSec: number): void {
  const start = words[0]?.start ?? 0;
  const end = Math.max(words.at(-1)?.end ?? 0, Math.min(untilSec, start + LEAST_SEC * words.length));
  const sizes = words.map(({ text }) => Math.max(1, text.trim().length));
  const whole = sizes.reduce((sum, size) => sum + size, 0);
  let shared = 0;
  words.forEach((word, i) => {
    word.start = start + ((end - start) * shared) / whole;
    shared += sizes[i] ?? 0;
    word.end = shared === whole ? end : start + ((end - start) * shared) / whole;
  });
}
