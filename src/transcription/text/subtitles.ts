/**
 * Cuts words into subtitles of at most 70 characters, as a reader counts them, and 1 to 7 s each; a sentence may be cut
 * (contract 4.3, segment rules). Pure; every word is kept once and in order.
 *
 * Two limits have exceptions. A single word of more than 70 characters or 7 s is a subtitle of its own. Where speech is
 * so dense that every way to cut leaves subtitles of less than 1 s, the way with the fewest of them is taken.
 */
import type { Word } from '../segment.ts';
import { endsClause, endsSentence, isLongPause } from './sentences.ts';

const MAX_CHARACTERS = 70;
const MIN_SEC = 1;
const MAX_SEC = 7;
const PAUSE_SEC = 0.3;
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
  /** Seconds. `end` includes the time that a short subtitle takes from the silence after it. */
  start: number;
  end: number;
  words: Word[];
}

/** @param untilSec the time in seconds until which the last subtitle may be shown */
export function toSubtitles(words: Word[], untilSec = Number.POSITIVE_INFINITY): Subtitle[] {
  const nextStart = (i: number) => words[i]?.start ?? untilSec;
  return cut(words, nextStart).map(([from, to]) => {
    const group = words.slice(from, to);
    const start = group[0]?.start ?? 0;
    const spoken = group.at(-1)?.end ?? start;
    const end = Math.max(start, Math.min(nextStart(to), Math.max(spoken, start + MIN_SEC)));
    return { start, end, words: group };
  });
}

interface Plan {
  short: number;
  cost: number;
  to: number;
}

/** The index ranges of the best plan. Plans are made from the last word to the first. */
function cut(words: Word[], nextStart: (i: number) => number): [from: number, to: number][] {
  const lengths = words.map((word) => countCharacters(word.text.trimStart()));
  const spaces = words.map((word) => countCharacters(word.text) - countCharacters(word.text.trimStart()));
  const breaks = words.map((word, i) => breakCost(word, words[i + 1]));
  const plans: Plan[] = new Array(words.length + 1);
  plans[words.length] = { short: 0, cost: 0, to: words.length };
  for (let from = words.length - 1; from >= 0; from--) {
    const start = nextStart(from);
    let characters = 0;
    let across = 0;
    for (let to = from + 1; to <= words.length; to++) {
      const last = words[to - 1] as Word;
      characters += (to - 1 > from ? (spaces[to - 1] ?? 0) : 0) + (lengths[to - 1] ?? 0);
      const fits = characters <= MAX_CHARACTERS && last.end - start <= MAX_SEC + EPSILON;
      if (!fits && to > from + 1) break;
      const rest = plans[to] as Plan;
      const plan: Plan = {
        short: rest.short + (nextStart(to) - start < MIN_SEC - EPSILON ? 1 : 0),
        cost: rest.cost + COST.subtitle + across + (breaks[to - 1] ?? 0),
        to,
      };
      const best = plans[from];
      // Of equal plans, the one that fills this subtitle more is taken.
      if (
        best === undefined ||
        plan.short - best.short < 0 ||
        (plan.short === best.short && plan.cost <= best.cost)
      )
        plans[from] = plan;
      if (breaks[to - 1] === 0) across += COST.acrossSentences;
    }
  }
  const ranges: [number, number][] = [];
  for (let from = 0; from < words.length; from = plans[from]?.to ?? words.length)
    ranges.push([from, plans[from]?.to ?? words.length]);
  return ranges;
}

function breakCost(word: Word, next: Word | undefined): number {
  if (next === undefined || endsSentence(word, next) || isLongPause(word, next)) return 0;
  if (endsClause(word)) return COST.clause;
  if (next.start - word.end >= PAUSE_SEC - EPSILON) return COST.pause;
  return CONJUNCTIONS.has(next.text.trim()) ? COST.conjunction : COST.anywhere;
}

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

function countCharacters(text: string): number {
  if (/^[ -~]*$/.test(text)) return text.length;
  return [...graphemes.segment(text)].length;
}
