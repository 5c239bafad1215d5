/**
 * Compares the length of a text with the time that someone spoke for it, in syllables a second. People speak 5 to 8
 * syllables a second in all languages (Pellegrino et al. 2011, Language 87:3), and 3 to 6 in recorded prompts. Tokens
 * and words differ far more between languages. Pure.
 */

/** A run of vowels, as they are without their marks. */
const VOWELS = /[aeiouyæœøıαεηιουωаеиоуыэюяєі]+/g;
/** A character that is a syllable by itself: of Chinese, Japanese and Korean. */
const SYLLABLE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;
const WITH_VOWELS = /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}]/u;
/** What other scripts have, which write no vowels or write them as marks. */
const SYLLABLES_A_LETTER = 0.5;
const SYLLABLES_A_DIGIT = 1.5;

/** Slower speech than this is rare: text of fewer syllables is not all that was said. */
const SLOW = 3.3;
/** One speaker keeps a pace as closely as this. */
const SAME_PACE = 0.9;
/** Slower than anyone speaks for seconds on end. */
const SLOWEST = 1.8;

/** About how many syllables the text has. */
export function countSyllables(text: string): number {
  let count = 0;
  for (const [run] of text.normalize('NFC').matchAll(/\p{N}|[\p{L}\p{M}]+/gu)) {
    if (/\p{N}/u.test(run)) count += SYLLABLES_A_DIGIT;
    else count += syllablesIn(run.toLowerCase());
  }
  return count;
}

/** At least half a syllable, also for marks without a letter, so that no text of any length counts as nothing. */
function syllablesIn(word: string): number {
  const characters = [...word].filter((character) => SYLLABLE.test(character)).length;
  if (characters > 0) return characters;
  const letters = word.normalize('NFD').replace(/\p{M}/gu, '');
  if (!WITH_VOWELS.test(letters)) return Math.max(1, letters.length) * SYLLABLES_A_LETTER;
  return Math.max(1, letters.match(VOWELS)?.length ?? 0);
}

/** The pace at which the text was spoken, in syllables a second, if it is all that was said. */
export const paceOf = (text: string, speechSec: number): number => countSyllables(text) / speechSec;

/**
 * True when some of the speech may have no text: few people speak as slowly as the text would mean.
 * @param slowestPace the slowest pace at which the speech before had all its text
 */
export const isShort = (text: string, speechSec: number, slowestPace = Number.POSITIVE_INFINITY): boolean =>
  paceOf(text, speechSec) < Math.min(SLOW, SAME_PACE * slowestPace);

/** True when most of the speech has no text. */
export const isFarTooShort = (text: string, speechSec: number): boolean => paceOf(text, speechSec) < SLOWEST;
