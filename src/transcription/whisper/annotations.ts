/**
 * Removes descriptions of sounds from Whisper's text. Whisper learned from subtitles, so it writes `(crickets
 * chirping)` for a chord and `*sighs*` for a breath, which are not speech. The reference code forbids such marks while
 * decoding, but the decoder then writes invented words in their place. So they are decoded and removed here. Pure.
 */
import { textOf, type Word } from '../segment.ts';
import { SENTENCE_MARK } from '../text/sentences.ts';

/** Replaces each removed character, so that the text keeps its length. */
const CUT = '\0';

/** The marks of annotations. A prompt with a match of `asked` asks for annotations of that kind, which then stay. */
const KINDS = [
  // Notes surround sung words, and the sung words are kept.
  { asked: /[♩♪♫♬🎵🎶]/u, pattern: /[♩♪♫♬🎵🎶]/gu, isCertain: true },
  // Brackets hold sounds and names of speakers, never speech. The closing one is missing where the decoder stopped.
  {
    asked: /[[［【]/,
    pattern: /(?<![\p{L}\p{N}])[[［【][^[\]［］【】]{1,80}(?:[\]］】]|$)/gu,
    isCertain: true,
  },
  {
    asked: /\*/,
    pattern: /(?<![\p{L}\p{N}*])\*\p{L}[^*]{0,80}(?<!\s)\*(?![\p{L}\p{N}])/gu,
    isCertain: true,
  },
  { asked: /\*/, pattern: /(?<![\p{L}\p{N}*])\*\s[^*]{1,80}\*/gu, isCertain: false },
  { asked: /[(（]/, pattern: /[(（][^()（）]{1,80}(?:[)）]|$)/gu, isCertain: false },
] as const;

/** What stands for a note, an item of a list or an index: `[1]`, `(A)`. */
const NUMBERED = /^[[［【(（]\s*(?:\d[\d\s,;–-]*|[\p{Lu}\p{Ll}]\s*)[)）\]］】]$/u;

/**
 * Words for sounds. Text in parentheses within a sentence may be speech, unless it contains one of these. Where longer
 * words begin like one, it is known to its end (`sobre`, `sight`, `Musikschule`).
 */
const SOUND =
  /(?<!\p{L})(?:(?:laugh|chuckle?|giggle?|sigh|gasp|sobb?|cough|sneeze?|sniff|sniffle?|groan|scream|cheer|applaud?|whistle?|chirp|beep|buzz)(?:s|es|ed|ing|ter|se)?(?!\p{L})|clapping|music(?!\p{L})|singing|humming|barking|inaudible|indistinct|crosstalk|silence(?!\p{L})|musik(?:k|en)?(?!\p{L})|musique(?!\p{L})|lach(?:t|te|en|end)?(?!\p{L})|gelächter|seufz(?:t|te|en|end|er)?(?!\p{L})|rires?(?!\p{L})|soupir|risas?(?!\p{L})|suspir|música|aplaus|risat|applaus|sospir|muzyk|śmiech|смех|музык|аплод|笑|音楽|拍手|掌声|音乐|웃음|음악|박수)/iu;
/** The last character before an annotation that is outside a sentence, and the first one after it, besides marks. */
const ENDS = /[)）\]】"'”’-]/;
const BEGINS = /^[\p{Lu}\p{Lo}\p{Ps}\p{Pi}*"'-]/u;

/**
 * The words that are speech, with their own times and tokens; none if no letter and no digit is left.
 * @param prompt the client's prompt. Kinds of annotations that it contains itself are kept.
 */
export function withoutAnnotations(words: Word[], prompt: string): Word[] {
  const text = textOf(words);
  const cut = cutOut(text, prompt);
  if (!isSpelled(cut)) return [];
  const kept: Word[] = [];
  let at = 0;
  for (const word of words) {
    const rest = cut.slice(at, at + word.text.length).replaceAll(CUT, '');
    at += word.text.length;
    if (rest === word.text) kept.push(word);
    else if (isSpelled(rest)) kept.push({ ...word, text: rest });
    else endWith(rest.trim(), kept);
  }
  return kept;
}

function cutOut(text: string, prompt: string): string {
  let cut = text;
  for (const { asked, pattern, isCertain } of KINDS) {
    if (asked.test(prompt)) continue;
    cut = cut.replace(pattern, (found: string, at: number, whole: string) => {
      if (NUMBERED.test(found)) return found;
      const goes = isCertain || SOUND.test(found) || isAlone(found, at, whole);
      return goes ? CUT.repeat(found.length) : found;
    });
  }
  return cut;
}

/** True when the text found is between two sentences and is not a sentence itself. */
function isAlone(found: string, at: number, whole: string): boolean {
  if (!/\p{L}/u.test(found) || SENTENCE_MARK.test(found)) return false;
  const last = whole.slice(0, at).replaceAll(CUT, ' ').trimEnd().at(-1);
  const rest = whole
    .slice(at + found.length)
    .replaceAll(CUT, ' ')
    .trimStart();
  const ends = last === undefined || SENTENCE_MARK.test(last) || ENDS.test(last);
  return ends && (rest === '' || SENTENCE_MARK.test(rest[0] ?? '') || BEGINS.test(rest));
}

/** Appends a sentence mark that followed an annotation to the word before, unless that word ends in a mark. */
function endWith(mark: string, words: Word[]): void {
  const last = words.at(-1);
  if (last !== undefined && SENTENCE_MARK.test(mark) && /[\p{L}\p{N}]$/u.test(last.text))
    words[words.length - 1] = { ...last, text: last.text + mark };
}

const isSpelled = (text: string): boolean => /[\p{L}\p{N}]/u.test(text);
