/**
 * Cuts words into subtitles that are easy to read, of 1 to 7 s each; a sentence may be cut (contract 4.3, segment
 * rules). They have two lines of 42 characters, as the guides of broadcasters ask for (Netflix' Timed Text Style Guide,
 * the BBC's Subtitle Guidelines). Pure; every word is kept once and in order.
 *
 * The limits have exceptions. A word that is longer than a line is a line of its own, and one of more than 70 characters
 * or 7 s a subtitle of its own. Where speech is so dense that every way to cut leaves subtitles of less than 1 s, the
 * way with the fewest of them is taken.
 */
import { textOf, type Word } from '../segment.ts';
import { endsClause, endsSentence, isLongPause } from './sentences.ts';

/** How much a subtitle holds. A character of a script of squares, such as Han, is as wide as two. */
export interface SubtitleSize {
  lineWidth: number;
  lines: number;
  /** The most characters, as a reader counts them. */
  characters: number;
}

export const USUAL_SIZE: SubtitleSize = { lineWidth: 42, lines: 2, characters: 70 };

const MIN_SEC = 1;
const MAX_SEC = 7;
const PAUSE_SEC = 0.3;
/** As fast as people read with ease, in characters (Netflix: at most 20, BBC: 15 to 17). */
const READING_PER_SEC = 17;
/** Times are sums of floating-point numbers, so comparisons need a tolerance. */
const EPSILON = 1e-9;

/** The costs of the places to cut. As in line breaking, the cuts with the lowest sum over all words win. */
const COST = { subtitle: 10, clause: 2, pause: 4, conjunction: 6, anywhere: 9, acrossSentences: 40 };

/**
 * Conjunctions of the European languages, in lower case, so that the English "I" is not one. All languages share one
 * set, because cutting before the "a" or "in" of another language does no harm.
 */
const CONJUNCTIONS = new Set(
  `and but or because that which who while when if than und oder aber dass weil wenn et mais ou que qui parce car y o
   pero porque e ma che perché oppure mas en maar of omdat dat och men eller som og at fordi ja mutta tai että koska
   i a ale lub że bo ani nebo protože alebo pretože ili ali jer in toda ker és de vagy hogy și dar sau că и но а или
   что та але або що και αλλά ή ότι`.split(/\s+/),
);

export interface Subtitle {
  /** Seconds. `end` includes the time that a reader needs from the silence after it. */
  start: number;
  end: number;
  words: Word[];
}

/**
 * @param untilSec the time in seconds until which the last subtitle may be shown
 * @param prefix what stands before the text of each subtitle
 */
export function toSubtitles(
  words: Word[],
  untilSec = Number.POSITIVE_INFINITY,
  size = USUAL_SIZE,
  prefix = '',
): Subtitle[] {
  const nextStart = (i: number) => words[i]?.start ?? untilSec;
  const measured = words.map(({ text }) => measure(text));
  return cut(words, measured, nextStart, { ...size, prefixWidth: widthOfPrefix(prefix, size) }).map(
    ([from, to]) => {
      const group = words.slice(from, to);
      const start = group[0]?.start ?? 0;
      const spoken = group.at(-1)?.end ?? start;
      const width = widthOf(textOf(group).trim());
      const readable = Math.min(MAX_SEC, Math.max(MIN_SEC, width / READING_PER_SEC));
      const end = Math.max(start, Math.min(nextStart(to), Math.max(spoken, start + readable)));
      return { start, end, words: group };
    },
  );
}

/** The lines of one subtitle: as few as its width allows, and of these the most even ones. */
export function toLines(words: Word[], size = USUAL_SIZE, prefix = ''): string[] {
  const measured = words.map(({ text }) => measure(text));
  const prefixWidth = widthOfPrefix(prefix, size);
  const firstsWith = (lineWidth: number) => {
    let filled = { lines: 0, used: prefixWidth };
    return measured.flatMap((word, i) => {
      const before = filled.lines;
      filled = fill(filled, word, lineWidth);
      return filled.lines > before ? [i] : [];
    });
  };
  const fewest = firstsWith(size.lineWidth).length;
  let [least, width] = [1, size.lineWidth];
  while (least < width) {
    const middle = Math.floor((least + width) / 2);
    if (firstsWith(middle).length <= fewest) width = middle;
    else least = middle + 1;
  }
  const firsts = firstsWith(width);
  return firsts.map((from, i) => textOf(words.slice(from, firsts[i + 1])).trim());
}

interface Filled {
  lines: number;
  /** The width of the last line so far. */
  used: number;
}

/** Adds a word to the last line, or begins another one. The first word follows the prefix. */
function fill({ lines, used }: Filled, word: Measured, lineWidth: number): Filled {
  if (lines === 0) return { lines: 1, used: used + word.width };
  const wider = used + word.space + word.width;
  return wider <= lineWidth ? { lines, used: wider } : { lines: lines + 1, used: word.width };
}

/** A long name takes no more than half of a line, or there would be a subtitle for each word. */
const widthOfPrefix = (prefix: string, { lineWidth }: SubtitleSize) =>
  Math.min(widthOf(prefix), Math.floor(lineWidth / 2));

interface Plan {
  short: number;
  cost: number;
  to: number;
}

/** The index ranges of the best plan. Plans are made from the last word to the first. */
function cut(
  words: Word[],
  measured: Measured[],
  nextStart: (i: number) => number,
  size: SubtitleSize & { prefixWidth: number },
): [from: number, to: number][] {
  const breaks = words.map((word, i) => breakCost(word, words[i + 1]));
  const plans: Plan[] = new Array(words.length + 1);
  plans[words.length] = { short: 0, cost: 0, to: words.length };
  for (let from = words.length - 1; from >= 0; from--) {
    const start = nextStart(from);
    let filled = { lines: 0, used: size.prefixWidth };
    let characters = 0;
    let across = 0;
    for (let to = from + 1; to <= words.length; to++) {
      const last = words[to - 1] as Word;
      const word = measured[to - 1] as Measured;
      characters += (to - 1 > from ? word.space : 0) + word.characters;
      filled = fill(filled, word, size.lineWidth);
      const fits =
        filled.lines <= size.lines && characters <= size.characters && last.end - start <= MAX_SEC + EPSILON;
      if (!fits && to > from + 1) break;
      const rest = plans[to] as Plan;
      const plan: Plan = {
        short: rest.short + (nextStart(to) - start < MIN_SEC - EPSILON ? 1 : 0),
        cost: rest.cost + COST.subtitle + across + (breaks[to - 1] ?? 0),
        to,
      };
      const best = plans[from];
      // Of equal plans, the one that fills this subtitle more is taken.
      const isBetter =
        best === undefined ||
        plan.short < best.short ||
        (plan.short === best.short && plan.cost <= best.cost);
      if (isBetter) plans[from] = plan;
      if (breaks[to - 1] === 0) across += COST.acrossSentences;
    }
  }
  const ranges: [number, number][] = [];
  for (let from = 0, to = 0; from < words.length; from = to) {
    to = (plans[from] as Plan).to;
    ranges.push([from, to]);
  }
  return ranges;
}

function breakCost(word: Word, next: Word | undefined): number {
  if (next === undefined || endsSentence(word, next) || isLongPause(word, next)) return 0;
  if (endsClause(word)) return COST.clause;
  if (next.start - word.end >= PAUSE_SEC - EPSILON) return COST.pause;
  return CONJUNCTIONS.has(next.text.trim()) ? COST.conjunction : COST.anywhere;
}

interface Measured {
  /** The characters of white space before the word. */
  space: number;
  characters: number;
  width: number;
}

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });
const ASCII = /^[ -~]*$/;
/** What is drawn in a square: Han, Kana, Hangul, their marks, full-width letters and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;

function measure(text: string): Measured {
  const bare = text.trimStart();
  return { space: text.length - bare.length, characters: charactersOf(bare).length, width: widthOf(bare) };
}

const charactersOf = (text: string) =>
  ASCII.test(text) ? [...text] : [...graphemes.segment(text)].map(({ segment }) => segment);

const widthOf = (text: string) =>
  charactersOf(text).reduce((sum, character) => sum + (WIDE.test(character) ? 2 : 1), 0);
