/**
 * Descriptions of sounds in what Whisper writes: it learned from subtitles, so it says `(crickets chirping)` of a
 * chord and `*sighs*` of a breath. They are no speech. The reference code forbids the decoder all such marks; it then
 * writes words in their place that nobody said, so here they are written and taken out. Pure.
 */
import type { Word } from './segment.ts';

/** Takes the place of what is cut, so that the text keeps its length. */
const CUT = '\0';

/** How annotations are marked, and what a prompt has that asks for them. */
const KINDS = [
  // Notes stand around what is sung, and what is sung is kept.
  { asked: /[♩♪♫♬🎵🎶]/u, pattern: /[♩♪♫♬🎵🎶]/gu, isCertain: true },
  // Nobody speaks brackets: sounds and names of speakers. Open to the end where the decoder was cut off.
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

/** What is in parentheses within a sentence may be said, unless it tells of one of these. */
const SOUND =
  /(?<!\p{L})(?:laugh|chuckl|giggl|sigh|gasp|sob|cough|sneez|sniff|groan|scream|cheer|applau|clapping|music|singing|humming|whistl|chirp|barking|beep|buzz|inaudible|indistinct|crosstalk|silence|musi[kq]|lach|gelächter|seufz|rires?(?!\p{L})|soupir|risas?(?!\p{L})|suspir|música|aplaus|risat|applaus|sospir|muzyk|śmiech|смех|музык|аплод|笑|音楽|拍手|掌声|音乐|웃음|음악|박수)/iu;
const SENTENCE_MARK = /[.!?…。！？]/;
/** What may stand before and behind something that is no part of a sentence. */
const ENDS = /[.!?…。！？)）\]】"'”’-]/;
const BEGINS = /^[\p{Lu}\p{Lo}\p{Ps}\p{Pi}.!?…。！？*"'-]/u;

/**
 * The words that are speech, with their own times and tokens; none where the text has no letter and no digit.
 * @param prompt a kind of annotation that it has itself is asked for, and left as it is
 */
export function withoutAnnotations(words: Word[], prompt: string): Word[] {
  const text = words.map((word) => word.text).join('');
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
      const goes = isCertain || SOUND.test(found) || isAlone(found, at, whole);
      return goes ? CUT.repeat(found.length) : found;
    });
  }
  return cut;
}

/** Whether it stands between sentences, and is none itself. */
function isAlone(found: string, at: number, whole: string): boolean {
  if (!/\p{L}/u.test(found) || SENTENCE_MARK.test(found)) return false;
  const last = whole.slice(0, at).replaceAll(CUT, ' ').trimEnd().at(-1);
  const rest = whole
    .slice(at + found.length)
    .replaceAll(CUT, ' ')
    .trimStart();
  return (last === undefined || ENDS.test(last)) && (rest === '' || BEGINS.test(rest));
}

/** A mark behind what was cut ends the word before it, which may have one already. */
function endWith(mark: string, words: Word[]): void {
  const last = words.at(-1);
  if (last !== undefined && SENTENCE_MARK.test(mark) && /[\p{L}\p{N}]$/u.test(last.text))
    words[words.length - 1] = { ...last, text: last.text + mark };
}

const isSpelled = (text: string): boolean => /[\p{L}\p{N}]/u.test(text);
