/**
 * Words to sentences: a segment of the API is a whole sentence, within a safety cap (contract 4.3, segment
 * rules). Pure; every word is kept, in order, once.
 */
import type { Word } from './segment.ts';

export const MAX_SENTENCE_SEC = 30;
/** A longer silence ends a sentence even without a mark. */
export const MAX_PAUSE_SEC = 1.5;
/** What a comma is worth against a pause where a run-on sentence is cut. */
const COMMA_SEC = 0.2;

/**
 * A mark, then quotes and brackets that close; German closes with the quote that opens in English. Sought where a run
 * of marks begins, not at each of them, which would take quadratic time.
 */
const ENDS_SENTENCE = /(?<![.!?…。！？])([.!?…。！？]+)([\p{Pe}\p{Pf}\p{Pi}"'」』]*)$/u;
const CLAUSE_MARK = /[,;:，、；：]$/;
const LOWER_CASE = /^[\p{P}\s]*\p{Ll}/u;
const UPPER_CASE = /^\P{L}*\p{Lu}/u;
const ELLIPSIS = /^(…|\.{2,})$/;
/** Initials, and what is abbreviated like them. */
const INITIALS = /^\p{L}(\.\p{L})*$/u;
const NUMBER = /^\d+$/;
const set = (words: string) => new Set(words.split(/\s+/));
/** Something always follows these: a name, a number, an example. */
const LEADING = set(
  `mr mrs ms dr prof st mt rev gen sen rep gov sr sra dra hr fr mme mlle sig dott ing mgr inż dhr mevr drs sv św ul
   e.g i.e cf vs ca nr z.b d.h bzw vgl evtl ggf inkl p.ex bijv t.ex f.eks np tj tzn např napr т.е`,
);
/** These may end a sentence; a capital after them says that they do. */
const ABBREVIATIONS = set(
  `etc approx dept est fig vol inc ltd co jr u.s u.k a.m p.m usw u.a enz osv itd itp atd apod т.д т.п`,
);
/** German dates: the number before these is an ordinal. */
const MONTHS = set('januar februar märz april mai juni juli august september oktober november dezember');

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

export function endsSentence(word: Word, next: Word): boolean {
  if (next.start - word.end > MAX_PAUSE_SEC) return true;
  const text = word.text.trim();
  const [found, marks = '', closing = ''] = ENDS_SENTENCE.exec(text) ?? [];
  if (found === undefined) return false;
  // "Stop!" he said. Well… perhaps.
  if ((closing !== '' || ELLIPSIS.test(marks)) && LOWER_CASE.test(next.text)) return false;
  if (marks !== '.' || closing !== '') return true;
  return !isAbbreviation(bareWord(text), next.text);
}

/** Whether a sentence is over with this word, whatever is said next: no abbreviation, quote or ellipsis ends it. */
export function isFinished(word: Word): boolean {
  const text = word.text.trim();
  const [found, marks = '', closing = ''] = ENDS_SENTENCE.exec(text) ?? [];
  if (found === undefined || closing !== '' || ELLIPSIS.test(marks)) return false;
  return marks !== '.' || !mayBeAbbreviation(bareWord(text));
}

/** Without its full stop and what stands before it, in lower case. */
function bareWord(text: string): string {
  return text
    .slice(0, -1)
    .toLowerCase()
    .replace(/^\P{L}+(?=\p{L})/u, '');
}

function mayBeAbbreviation(bare: string): boolean {
  const isInitial = INITIALS.test(bare) && bare !== 'i'; // "It was I."
  return LEADING.has(bare) || ABBREVIATIONS.has(bare) || isInitial || NUMBER.test(bare);
}

function isAbbreviation(bare: string, next: string): boolean {
  if (!mayBeAbbreviation(bare)) return false;
  if (ABBREVIATIONS.has(bare)) return !UPPER_CASE.test(next);
  if (!NUMBER.test(bare)) return true;
  const [follows = ''] = /^.*\p{L}/su.exec(next.trim().toLowerCase()) ?? [];
  return /^\d/.test(next) || (bare.length <= 2 && (LOWER_CASE.test(next) || MONTHS.has(follows)));
}

export const endsClause = (word: Word): boolean => CLAUSE_MARK.test(word.text.trim());

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
    // In hundredths: times carry noise in their last digits, which must not choose among equal pauses.
    const score = Math.round(100 * (word.start - before.end + (endsClause(before) ? COMMA_SEC : 0)));
    if (score >= bestScore) {
      best = i;
      bestScore = score;
    }
  });
  return [words.slice(0, best), ...capped(words.slice(best))];
}
