/**
 * Knows where sentences and clauses end: the rules of the gateway (src/transcription/text/sentences.ts), in a page. A
 * test compares the two.
 */

const LONG_PAUSE_SEC = 1.5;

const ENDS_SENTENCE = /(?<![\p{STerm}…])([\p{STerm}…]+)((?:\s*[\p{Pe}\p{Pf}\p{Pi}"'])*)$/u;
const BURMESE_COMMA = '၊';
const CLAUSE_MARK = /(?:(?!\p{STerm})\p{Term}|၊)$/u;
const ONLY_CLOSING = /^(?:["']|\s*[\p{Pe}\p{Pf}])["'\p{Pe}\p{Pf}]*$/u;
const LOWER_CASE = /^[\p{P}\s]*\p{Ll}/u;
const UPPER_CASE = /^\P{L}*\p{Lu}/u;
const ELLIPSIS = /^(…|\.{2,})$/;
const INITIALS = /^[\p{Lu}\p{Ll}]$|\.\p{L}$/u;
const SMALL_LETTER = /^\p{Ll}$/u;
const INITIAL = /^\s*\p{Lu}\./u;
const NUMBER = /^\d+$/;
const set = (words) => new Set(words.split(/\s+/));
/** A name, a number or an example follows these, so they never end a sentence. */
const LEADING = set(
  `mr mrs ms dr prof st mt rev gen sen rep gov sr sra dra hr fr mme mlle sig dott ing mgr inż dhr mevr drs sv św ul
   e.g i.e cf vs ca nr z.b d.h bzw vgl evtl ggf inkl p.ex bijv t.ex f.eks np tj tzn např napr т.е`,
);
/** These end a sentence when a capital letter follows. */
const ABBREVIATIONS = set(
  `etc approx dept est fig vol inc ltd co jr u.s u.k a.m p.m usw u.a enz osv itd itp atd apod т.д т.п`,
);
/** A number with a full stop before a month is an ordinal. */
const MONTHS = set('januar februar märz april mai juni juli august september oktober november dezember');

/** True for a pause that ends a sentence where the text is written without marks. */
export function isLongPause(word, next) {
  return next.start - word.end > LONG_PAUSE_SEC && !ONLY_CLOSING.test(next.text);
}

/** True when `word` ends its sentence, given the word after it. */
export function endsSentence(word, next) {
  if (ONLY_CLOSING.test(next.text)) return false;
  const text = word.text.trim();
  const [found, marks = '', closing = ''] = ENDS_SENTENCE.exec(text) ?? [];
  if (found === undefined || marks === BURMESE_COMMA) return false;
  if ((closing !== '' || ELLIPSIS.test(marks)) && LOWER_CASE.test(next.text)) return false;
  if (marks !== '.' || closing !== '') return true;
  const bare = text.slice(0, -1).replace(/^\P{L}+(?=\p{L})/u, '');
  return !isAbbreviation(bare, next.text, isLongPause(word, next));
}

function isAbbreviation(bare, next, paused) {
  const small = bare.toLowerCase();
  const isInitial = INITIALS.test(bare) && small !== 'i'; // "It was I."
  if (!LEADING.has(small) && !ABBREVIATIONS.has(small) && !isInitial && !NUMBER.test(bare)) return false;
  if (SMALL_LETTER.test(bare)) return !UPPER_CASE.test(next) || INITIAL.test(next);
  if (ABBREVIATIONS.has(small)) return !UPPER_CASE.test(next);
  if (!NUMBER.test(bare)) return LEADING.has(small) || !paused;
  const [follows = ''] = /^.*\p{L}/su.exec(next.trim().toLowerCase()) ?? [];
  return (
    (/^\d/.test(next) && !paused) || (bare.length <= 2 && (LOWER_CASE.test(next) || MONTHS.has(follows)))
  );
}

/** True when a comma or a similar mark follows the word. */
export const endsClause = (word) => CLAUSE_MARK.test(word.text.trim());
