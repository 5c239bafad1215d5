/**
 * Groups words into sentences, because a segment of the API is a whole sentence, up to a maximum length (contract 4.3,
 * segment rules). Pure; every word is kept once and in order.
 */
import { textOf, type Word } from '../segment.ts';

/** The longest sentence; a longer one is cut. */
export const MAX_SENTENCE_SEC = 30;
/** A longer pause ends a sentence where the text is written without marks. */
export const LONG_PAUSE_SEC = 1.5;
/** When a sentence is too long, a comma counts like a pause that is this much longer. */
const COMMA_SEC = 0.2;

/** A mark that may end a sentence, in any script. */
export const SENTENCE_MARK = /[\p{STerm}…]/u;
/**
 * Marks, then closing quotes and brackets; German closes with the quote that opens in English. The pattern matches only
 * where a run of marks begins, because trying it at each mark would take quadratic time. French has spaces in `! »`.
 */
const ENDS_SENTENCE = /(?<![\p{STerm}…])([\p{STerm}…]+)((?:\s*[\p{Pe}\p{Pf}\p{Pi}"'])*)$/u;
/** The comma of Burmese, which Unicode counts among the marks that end sentences. */
const BURMESE_COMMA = '၊';
const CLAUSE_MARK = /(?:(?!\p{STerm})\p{Term}|၊)$/u;
/** Quotes and brackets that close. A quote of ASCII with a space before it opens. */
const ONLY_CLOSING = /^(?:["']|\s*[\p{Pe}\p{Pf}])["'\p{Pe}\p{Pf}]*$/u;
const LOWER_CASE = /^[\p{P}\s]*\p{Ll}/u;
const UPPER_CASE = /^\P{L}*\p{Lu}/u;
const ELLIPSIS = /^(…|\.{2,})$/;
/** Initials, and abbreviations of the same form. A letter of a script without capitals is a word (`네.`). */
const INITIALS = /^[\p{Lu}\p{Ll}]$|\.\p{L}$/u;
const SMALL_LETTER = /^\p{Ll}$/u;
const INITIAL = /^\s*\p{Lu}\./u;
const NUMBER = /^\d+$/;
const set = (words: string) => new Set(words.split(/\s+/));
/** Abbreviations that never end a sentence, because a name, a number or an example follows them. */
const LEADING = set(
  `mr mrs ms dr prof st mt rev gen sen rep gov sr sra dra hr fr mme mlle sig dott ing mgr inż dhr mevr drs sv św ul
   e.g i.e cf vs ca nr z.b d.h bzw vgl evtl ggf inkl p.ex bijv t.ex f.eks np tj tzn např napr т.е`,
);
/** Abbreviations that end a sentence when a capital letter follows. */
const ABBREVIATIONS = set(
  `etc approx dept est fig vol inc ltd co jr u.s u.k a.m p.m usw u.a enz osv itd itp atd apod т.д т.п`,
);
/** The months in German dates: a number with a full stop before them is an ordinal. */
const MONTHS = set('januar februar märz april mai juni juli august september oktober november dezember');

/**
 * The words of each sentence of a chunk. A sentence of more than `MAX_SENTENCE_SEC` is cut, and so is one with a long
 * pause: whether it goes on behind the pause follows from the words of the next chunks, too, so `joinSentences` decides.
 */
export function toSentences(words: Word[]): Word[][] {
  const sentences: Word[][] = [];
  let open: Word[] = [];
  let last: Word | undefined;
  words.forEach((word, i) => {
    const next = words[i + 1];
    // A mark by itself ends what the word before it would have ended.
    last =
      last !== undefined && ONLY_CLOSING.test(word.text) ? { ...word, text: last.text + word.text } : word;
    open.push(word);
    if (next === undefined || endsSentence(last, next) || isLongPause(last, next)) {
      sentences.push(...capped(open));
      open = [];
    }
  });
  return sentences;
}

/** The words of each segment of a chunk: its sentences where times are wanted, else all of them together. */
export function groupsOf(words: Word[], { timed }: { timed: boolean }): Word[][] {
  if (timed) return toSentences(words);
  return words.length > 0 ? [words] : [];
}

/** The last word with the closing quotes and brackets behind it, which some engines write as words of their own. */
export function lastWord(words: readonly Word[]): Word | undefined {
  const at = words.findLastIndex((word) => !ONLY_CLOSING.test(word.text));
  const word = words[Math.max(0, at)];
  if (word === undefined || at === words.length - 1) return word;
  return { ...word, end: words.at(-1)?.end ?? word.end, text: textOf(words.slice(Math.max(0, at))) };
}

type TimedText = Pick<Word, 'text' | 'start' | 'end'>;

/** True for a pause that ends a sentence where the text is written without marks. */
export function isLongPause(word: TimedText, next: TimedText): boolean {
  return next.start - word.end > LONG_PAUSE_SEC && !ONLY_CLOSING.test(next.text);
}

/**
 * True when the writing shows that a sentence goes on behind a pause: a comma, or a small letter in a sentence that
 * began with a capital one.
 * @param next undefined while it is not known; then the answer is whether it may go on
 */
export function goesOnBehindPause(first: Word, last: Word, next?: Word): boolean {
  if (endsClause(last)) return true;
  return UPPER_CASE.test(first.text) && (next === undefined || LOWER_CASE.test(next.text));
}

/** True when `word` ends its sentence, given the word after it. Pauses only count where a mark may be either. */
export function endsSentence(word: TimedText, next: TimedText): boolean {
  if (ONLY_CLOSING.test(next.text)) return false;
  const text = word.text.trim();
  const end = endOf(text);
  if (end === null) return false;
  const { marks, closing } = end;
  // "Stop!" he said. Well… perhaps.
  if ((closing !== '' || ELLIPSIS.test(marks)) && LOWER_CASE.test(next.text)) return false;
  if (marks !== '.' || closing !== '') return true;
  return !isAbbreviation(bareWord(text), next.text, isLongPause(word, next));
}

/** True when the word has a mark with which sentences end, even if it does not end one here (`Dr.`). */
export const hasEndMark = (word: Word): boolean => endOf(word.text.trim()) !== null;

/**
 * True when `word` ends its sentence with any next word; a closing quote or bracket by itself is none. That is not
 * known of an abbreviation, a closing quote or an ellipsis.
 */
export function isFinished(word: Word): boolean {
  const text = word.text.trim();
  const end = endOf(text);
  if (end === null || end.closing !== '' || ELLIPSIS.test(end.marks)) return false;
  return end.marks !== '.' || !mayBeAbbreviation(bareWord(text));
}

function endOf(text: string): { marks: string; closing: string } | null {
  const [found, marks = '', closing = ''] = ENDS_SENTENCE.exec(text) ?? [];
  return found === undefined || marks === BURMESE_COMMA ? null : { marks, closing };
}

/** The word without its full stop and without the marks before its first letter. */
function bareWord(text: string): string {
  return text.slice(0, -1).replace(/^\P{L}+(?=\p{L})/u, '');
}

function mayBeAbbreviation(bare: string): boolean {
  const small = bare.toLowerCase();
  const isInitial = INITIALS.test(bare) && small !== 'i'; // "It was I."
  return LEADING.has(small) || ABBREVIATIONS.has(small) || isInitial || NUMBER.test(bare);
}

/** @param paused true where people pause between the two, which they do behind "plan B." but not behind "J. Smith" */
function isAbbreviation(bare: string, next: string, paused: boolean): boolean {
  if (!mayBeAbbreviation(bare)) return false;
  // "z. B.", "a. m.", but "Это я. Потом".
  if (SMALL_LETTER.test(bare)) return !UPPER_CASE.test(next) || INITIAL.test(next);
  if (ABBREVIATIONS.has(bare.toLowerCase())) return !UPPER_CASE.test(next);
  if (!NUMBER.test(bare)) return LEADING.has(bare.toLowerCase()) || !paused;
  const [follows = ''] = /^.*\p{L}/su.exec(next.trim().toLowerCase()) ?? [];
  return (
    (/^\d/.test(next) && !paused) || (bare.length <= 2 && (LOWER_CASE.test(next) || MONTHS.has(follows)))
  );
}

/** True when a comma or a similar mark follows the word. */
export const endsClause = (word: Pick<Word, 'text'>): boolean => CLAUSE_MARK.test(word.text.trim());

/** Cuts a sentence that is too long. */
function capped(words: Word[]): Word[][] {
  const first = words[0];
  const last = words.at(-1);
  if (first === undefined || last === undefined || last.end - first.start <= MAX_SENTENCE_SEC) return [words];
  if (words.length === 1) return [words];
  const place = placeToCut(words);
  return [words.slice(0, place), ...capped(words.slice(place))];
}

/**
 * Where a sentence that is too long is cut: at its longest pause within the maximum, of equal pauses at the last one.
 * @param parts the words of the sentence or longer parts of it, two at least
 * @returns the index of the first part behind the cut
 */
export function placeToCut(parts: readonly Pick<Word, 'start' | 'end' | 'text'>[]): number {
  const start = parts[0]?.start ?? 0;
  let best = 1;
  let bestScore = Number.NEGATIVE_INFINITY;
  parts.forEach((part, i) => {
    const before = parts[i - 1];
    if (before === undefined || before.end - start > MAX_SENTENCE_SEC) return;
    // Pauses are compared in hundredths, because noise in the last digits must not choose among equal pauses.
    const score = Math.round(100 * (part.start - before.end + (endsClause(before) ? COMMA_SEC : 0)));
    if (score >= bestScore) {
      best = i;
      bestScore = score;
    }
  });
  return best;
}
