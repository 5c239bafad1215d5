/**
 * Removes words that the decoder has only repeated. It writes a sentence twice, or a word many times, and the alignment
 * finds no time for the copies. People repeat themselves as well, but that takes as long as the first time. Pure.
 */
import type { Dropped } from '../recognizer.ts';
import { endsUnspaced, type Word } from '../segment.ts';
import { countSyllables } from '../speech/speech-rate.ts';

/**
 * Syllables a second above which words count as copies: five times as fast as anyone speaks, so that errors of tens of
 * milliseconds in the times of words make no copy of real speech.
 */
const UNSPOKEN_PACE = 60;
/** The alignment may leave a word or two without time that were said twice (`very very`). */
const LEAST_SYLLABLES = 4;
/** No sentence has more; it bounds the time that the search takes. */
const MOST_WORDS = 50;
/** It matches only where a run of marks begins, because trying it at each mark would take quadratic time. */
const MARKS = /(?<!\p{P})\p{P}+$/u;

/** The words without those copies, and where the copies were. */
export function withoutRepeats(words: Word[]): { words: Word[]; dropped: Dropped[] } {
  const kept: Word[] = [];
  const dropped: Dropped[] = [];
  const isUnspoken = (from: number, to: number, syllables: number) =>
    syllables > UNSPOKEN_PACE * ((words[to - 1]?.end ?? 0) - (words[from]?.start ?? 0));
  const endOfCopies = findCopies(
    words.map(({ text }) => text),
    isUnspoken,
  );
  for (let at = 0; at < words.length; ) {
    const to = endOfCopies(at);
    const [word, before, last] = [words[at], kept.at(-1), words[to - 1]];
    if (to > at && before && last) {
      // The sentence ends as its last copy does.
      const text = before.text.replace(MARKS, '') + (MARKS.exec(last.text)?.[0] ?? '');
      kept[kept.length - 1] = { ...before, text };
      dropped.push({ start: word?.start ?? last.end, end: last.end, reason: 'repetition' });
    } else if (word) kept.push(word);
    at = Math.max(to, at + 1);
  }
  return { words: kept, dropped };
}

/** True for a text that says something twice in a row, so that its times are needed to tell. */
export function mayRepeat(text: string): boolean {
  const words = text.split(/\s+/).flatMap((word) => (endsUnspaced(word) ? [...word] : [word]));
  const endOfCopies = findCopies(words, () => true);
  return words.some((_word, at) => endOfCopies(at) > at);
}

/**
 * Finds copies of what is said just before a place.
 * @param isCopy decides about each of them
 * @returns for an index the one where the copies end that begin there; the same one where none do
 */
function findCopies(texts: string[], isCopy: (from: number, to: number, syllables: number) => boolean) {
  const said = texts.map((text) => text.toLowerCase().replace(/[^\p{L}\p{M}\p{N}]/gu, ''));
  const syllablesUntil = [0];
  for (const text of texts) syllablesUntil.push((syllablesUntil.at(-1) ?? 0) + countSyllables(text));
  const syllablesIn = (from: number, to: number) => (syllablesUntil[to] ?? 0) - (syllablesUntil[from] ?? 0);
  const isSame = (from: number, length: number) =>
    said.slice(from, from + length).every((word, i) => word !== '' && word === said[from - length + i]);

  return (at: number): number => {
    let end = at;
    for (let length = 1; length <= Math.min(at, MOST_WORDS); length++) {
      let to = at;
      while (to + length <= texts.length && isSame(to, length)) {
        if (!isCopy(to, to + length, syllablesIn(to, to + length))) break;
        to += length;
      }
      if (syllablesIn(at, to) >= LEAST_SYLLABLES) end = Math.max(end, to);
    }
    return end;
  };
}
