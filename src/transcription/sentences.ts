/**
 * Words to sentences: a segment of the API is a whole sentence, within a safety cap (contract 4.3, segment
 * rules). Pure; every word is kept, in order, once.
 */
import type { Word } from './segment.ts';

const MAX_SENTENCE_SEC = 30;
/** A longer silence ends a sentence even without a mark. */
const MAX_PAUSE_SEC = 1.5;

const ENDS_SENTENCE = /[.!?…。！？][\p{Pe}\p{Pf}"'”’」』]*$/u;
const set = (words: string) => new Set(words.split(' '));
/** A name follows these: never the end of a sentence. */
const TITLES = set('mr mrs ms dr prof st mt rev gen sen rep gov hr fr mme mlle sra dra');
/** These may end a sentence; a capital after them says that they do. */
const ABBREVIATIONS = set(
  'vs etc e.g i.e approx dept est fig vol inc ltd co jr sr u.s u.k a.m p.m z.b d.h bzw ca usw nr',
);

export function toSentences(words: Word[]): Word[][] {
  const sentences: Word[][] = [];
  let open: Word[] = [];
  words.forEach((word, i) => {
    const next = words[i + 1];
    open.push(word);
    if (next === undefined || endsSentence(word, next)) {
      sentences.push(...capped(open));
      open = [];
    }
  });
  return sentences;
}

function endsSentence(word: Word, next: Word): boolean {
  if (next.start - word.end > MAX_PAUSE_SEC) return true;
  const text = word.text.trim();
  if (!ENDS_SENTENCE.test(text)) return false;
  if (!text.endsWith('.')) return true;
  const bare = text.slice(0, -1).toLowerCase();
  if (TITLES.has(bare) || (/^\p{L}$/u.test(bare) && bare !== 'i')) return false;
  return !ABBREVIATIONS.has(bare) || /^\P{L}*\p{Lu}/u.test(next.text);
}

/** Cuts a run-on sentence at its widest pause, the last comma before the cap winning a tie. */
function capped(words: Word[]): Word[][] {
  const first = words[0];
  const last = words.at(-1);
  if (first === undefined || last === undefined || last.end - first.start <= MAX_SENTENCE_SEC) return [words];
  if (words.length === 1) return [words];
  let best = 1;
  let bestScore = Number.NEGATIVE_INFINITY;
  words.forEach((word, i) => {
    const before = words[i - 1];
    if (before === undefined || before.end - first.start > MAX_SENTENCE_SEC) return;
    const score = word.start - before.end + (/[,;:，、]$/.test(before.text.trim()) ? 0.2 : 0);
    if (score >= bestScore) {
      best = i;
      bestScore = score;
    }
  });
  return [words.slice(0, best), ...capped(words.slice(best))];
}
