/**
 * Local agreement: decides which words of an utterance are sent while it still goes on. A sent word is never taken
 * back, so it has to be found twice in a row at its place (LocalAgreement-2, Liu et al. 2020, arXiv 2005.11185;
 * Macháček et al. 2023, arXiv 2307.14743), and by all but the fastest rule with some probability. The slower rules
 * want the last word of a text three times, because it may be the beginning of a longer one: "to 4" of "to forward".
 * Pure.
 */
import { meanLogprob, textOf, type Word } from '../segment.ts';

/** How long a client lets the text wait in order to have fewer wrong words in it, from the soonest to the surest. */
export const DELAYS = ['minimal', 'low', 'medium', 'high', 'xhigh'] as const;
export type Delay = (typeof DELAYS)[number];

interface Rule {
  /** The least probability of the first word. Whisper is less sure of it, because a text may begin in several ways. */
  first: number;
  /** The least probability of every other word. */
  others: number;
  /** The least probability of every other word that was found `LASTING` times in a row. */
  lasting: number;
  /** How often in a row the last word of a text must be found. */
  lastFound: number;
}

const LASTING = 5;
const NEVER = Number.POSITIVE_INFINITY;

/** `xhigh` sends no word before the end. bench/results/live.md says how the others were chosen. */
const RULES: Readonly<Record<Delay, Rule>> = {
  minimal: { first: 0.35, others: 0, lasting: 0, lastFound: 2 },
  low: { first: 0.4, others: 0.6, lasting: 0.6, lastFound: 2 },
  medium: { first: 0.5, others: 0.95, lasting: 0.8, lastFound: 3 },
  high: { first: 0.6, others: 0.95, lasting: 0.85, lastFound: 3 },
  xhigh: { first: NEVER, others: NEVER, lasting: NEVER, lastFound: 3 },
};

export function createStableText(delay: Delay) {
  const rule = RULES[delay];
  let sent = '';
  let sentWords: string[] = [];
  let before: string[] = [];
  /** How often in a row each word of `before` was found. */
  let found: number[] = [];

  /** Adds the words up to `count`, without the marks after the last one, which change most with what follows. */
  function send(words: readonly Word[], count: number, withMarks: boolean): string {
    if (count <= sentWords.length) return '';
    const text = (from: number) => {
      const joined = textOf(words.slice(from, count));
      return withMarks ? joined.trimEnd() : withoutMarks(joined);
    };
    const whole = text(0).trimStart();
    const delta = whole.startsWith(sent) ? whole.slice(sent.length) : text(sentWords.length);
    sent += delta;
    sentWords = words.slice(0, count).map(plainWord);
    return delta;
  }

  const continues = (now: string[]) => sameLength(sentWords, now) === sentWords.length;

  return {
    /** Takes the words so far, and returns the text to send now; '' for none. */
    update(words: readonly Word[]): string {
      const now = words.map(plainWord);
      const agreed = sameLength(before, now);
      found = now.map((_, i) => (i < agreed ? (found[i] ?? 0) + 1 : 1));
      before = now;
      if (!continues(now)) return ''; // what follows a word that was wrong is sent at the end
      const isDoubtful = (word: Word, i: number) => {
        const times = found[i] ?? 0;
        const least = i === 0 ? rule.first : times < LASTING ? rule.others : rule.lasting;
        return (
          i >= sentWords.length &&
          (times < (i === words.length - 1 ? rule.lastFound : 2) || probabilityOf(word) < least)
        );
      };
      const doubtful = words.findIndex(isDoubtful);
      return send(words, doubtful < 0 ? words.length : doubtful, false);
    },
    /** Takes the final words, and returns the rest of them; '' where they contradict what was sent. */
    end(words: readonly Word[]): string {
      const whole = textOf(words).trim();
      if (whole.startsWith(sent)) return whole.slice(sent.length);
      return continues(words.map(plainWord)) ? send(words, words.length, true) : '';
    },
  };
}

function withoutMarks(text: string): string {
  const characters = [...text];
  const last = characters.findLastIndex((character) => !/[\s\p{P}]/u.test(character));
  return characters.slice(0, last + 1).join('');
}

/** Words are the same when they differ in case and marks only. */
const plainWord = ({ text }: Word): string => text.toLowerCase().replace(/[\s\p{P}]/gu, '');

/** The number of words at the beginning that are the same in both. */
function sameLength(a: readonly string[], b: readonly string[]): number {
  const different = a.findIndex((word, i) => word !== b[i]);
  return different < 0 ? a.length : different;
}

/** The mean probability of the tokens that spell the word. */
const probabilityOf = (word: Word): number => Math.exp(meanLogprob([word]));
