/**
 * Cuts a text into units, which are aligned as a whole: words between spaces, and single characters of scripts that are
 * written without spaces. Pure; the units joined are the text, with one space in place of each run of them.
 */
import { continues, isUnspaced } from '../segment.ts';

export interface Unit {
  /** With its punctuation, and with a leading space where the text has one before it. */
  text: string;
  /** What two spellings of the same word have in common: letters and digits, in lower case. Never empty. */
  key: string;
}

/** Punctuation between spaces belongs to the word before it, or at the start of the text to the first word. */
export function unitsOf(text: string): Unit[] {
  const units: Unit[] = [];
  let opening = '';
  for (const piece of pieces(text)) {
    const key = keyOf(piece);
    const last = units.at(-1);
    if (key !== '') {
      const whole = opening + piece;
      units.push({ text: units.length === 0 ? whole.trimStart() : whole, key });
      opening = '';
    } else if (last !== undefined) last.text += piece;
    else opening += piece;
  }
  return units;
}

function* pieces(text: string): Generator<string> {
  for (const [word] of text.matchAll(/\S+/gu)) {
    let run = ' ';
    let isAlone = false;
    for (const character of word) {
      const isMore = continues(character); // a vowel sign or an accent stays with its letter
      if (!isMore && (isAlone || isUnspaced(character)) && run.trim() !== '') {
        yield run;
        run = '';
      }
      if (!isMore) isAlone = isUnspaced(character);
      run += character;
    }
    if (run.trim() !== '') yield run;
  }
}

const keyOf = (piece: string) =>
  piece
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}]/gu, '');
