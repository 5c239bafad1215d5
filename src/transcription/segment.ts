/**
 * A transcript: words with times, and segments of words with the figures that the API gives for each. All times are
 * seconds from the start of the audio. Pure.
 */
import { compressionRatio } from './decoding.ts';
import type { Chunk } from './speech/chunks.ts';

export interface TimedToken {
  id: number;
  /** UTF-8 bytes; empty for timestamp and control tokens. */
  bytes: Uint8Array;
  /** Natural logarithm of the token's probability. */
  logprob: number;
}

/** The tokens that spell something, which leaves out those for times and control. */
export const spelledIn = <T extends { bytes: Uint8Array }>(tokens: readonly T[]): T[] =>
  tokens.filter(({ bytes }) => bytes.length > 0);

export interface Word {
  /** The word with its punctuation, and with a leading space where the language has one. */
  text: string;
  start: number;
  end: number;
  tokens: TimedToken[];
  /** Who says it; absent where speakers are not told apart. */
  speaker?: string;
}

/** What the words say together. */
export const textOf = (words: readonly { text: string }[]): string => words.map(({ text }) => text).join('');

export interface Segment {
  id: number;
  /** The start of the decoded window in the audio, in frames of 10 ms, as OpenAI's `seek`. */
  seek: number;
  start: number;
  end: number;
  text: string;
  words: Word[];
  temperature: number;
  /** The mean of the natural log probabilities of the tokens. */
  avgLogprob: number;
  /** UTF-8 bytes of the text over its zlib-compressed size; above 2.4 means repetition (Radford et al. 2022). */
  compressionRatio: number;
  noSpeechProb: number;
  language: string;
  /** Who says it: a known name or A, B, C ...; absent where speakers are not told apart. */
  speaker?: string;
  /** The emotion in lower case, such as `neutral`; only models that detect it give one. */
  emotion?: string;
  /** The sound event in lower case, such as `speech` or `bgm`; only models that detect it give one. */
  event?: string;
}

/** A segment that has no number yet. */
export type UnnumberedSegment = Omit<Segment, 'id'>;

const UNSPACED_CHARACTER =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Myanmar}\u3000-\u303f\u3099-\u309c\u30fc\uff00-\uff65]/u;

/** Numbers the segments from 0, and adds a space where two chunks of a spaced script would run together. */
export function createSegmentNumbering(): (segment: UnnumberedSegment) => Segment {
  let id = 0;
  let before = '';
  return (segment) => {
    const space = spaceBetween(before, segment.text);
    before = segment.text;
    const [first, ...others] = segment.words;
    const words = first === undefined ? [] : [{ ...first, text: space + first.text }, ...others];
    return { ...segment, id: id++, text: space + segment.text, words };
  };
}

/** A space if the two texts of a spaced script would run together, else the empty string. */
function spaceBetween(before: string, after: string): '' | ' ' {
  const runsTogether = /[\p{L}\p{N}\p{P}]$/u.test(before) && /^[\p{L}\p{N}]/u.test(after);
  return runsTogether && !endsUnspaced(before) && !beginsUnspaced(after) ? ' ' : '';
}

/** True for text that begins inside a character as a reader sees it: with a mark, a vowel sign or a joiner. */
export const continues = (text: string): boolean => /^[\p{M}\u0e33\u0eb3\u200d]/u.test(text);

/** True for a character of a script that is written without spaces. */
export function isUnspaced(character: string | undefined): boolean {
  return character !== undefined && UNSPACED_CHARACTER.test(character);
}

export const beginsUnspaced = (text: string): boolean => isUnspaced([...text.slice(0, 2)][0]);
export const endsUnspaced = (text: string): boolean => isUnspaced([...text.slice(-2)].at(-1));

/** What of a segment shows who says it. */
export type SpokenSegment = Pick<Segment, 'id' | 'start' | 'end' | 'text' | 'speaker'>;

/**
 * Turns groups of words into segments.
 * @param groups one group of words for each segment; none may be empty
 * @param common the members that have the same value in every segment of a chunk
 */
export function toSegments(
  groups: Word[][],
  chunk: Pick<Chunk, 'startSec'>,
  common: Pick<UnnumberedSegment, 'temperature' | 'noSpeechProb' | 'language' | 'emotion' | 'event'>,
): UnnumberedSegment[] {
  const seek = Math.round(chunk.startSec * 100);
  return groups.map((words) => ({ seek, ...common, ...figuresOf(words) }));
}

/** Joins the parts of a sentence. Members that the words do not determine (`seek`, `language`) are the first part's. */
export function joinParts(first: UnnumberedSegment, ...others: UnnumberedSegment[]): UnnumberedSegment {
  if (others.length === 0) return first;
  const words = [...first.words];
  let before = first.text;
  for (const { text, words: more } of others) {
    const space = spaceBetween(before, text);
    words.push(...more.map((word, i) => (i === 0 ? { ...word, text: space + word.text } : word)));
    before = text;
  }
  return withWords(first, words);
}

/** A segment with other words, such as a part of its own, and with the figures that follow from them. */
export function withWords(segment: UnnumberedSegment, words: Word[]): UnnumberedSegment {
  return { ...segment, ...figuresOf(words) };
}

function figuresOf(words: Word[]) {
  const text = textOf(words);
  return {
    start: words[0]?.start ?? 0,
    end: words.at(-1)?.end ?? 0,
    text,
    words,
    avgLogprob: meanLogprob(words),
    compressionRatio: compressionRatio(text),
  };
}

export function meanLogprob(words: Word[]): number {
  const tokens = spelledIn(words.flatMap((word) => word.tokens));
  return tokens.reduce((sum, { logprob }) => sum + logprob, 0) / Math.max(1, tokens.length);
}
