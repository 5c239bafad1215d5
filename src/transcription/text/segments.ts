/** Turns groups of words into segments, with the figures that the API gives for each segment. Pure. */

import { compressionRatio } from '../decoding.ts';
import { spaceBetween, spelledIn, textOf, type UnnumberedSegment, type Word } from '../segment.ts';
import type { Chunk } from '../speech/chunks.ts';

/** The members that have the same value in every segment of a chunk. */
type Common = Pick<UnnumberedSegment, 'temperature' | 'noSpeechProb' | 'language' | 'emotion' | 'event'>;

/** @param groups one group of words for each segment; none may be empty */
export function toSegments(groups: Word[][], chunk: Chunk, common: Common): UnnumberedSegment[] {
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
