/**
 * Joins the parts of sentences that continue in the next chunk, because a sentence is one segment (contract 4.3,
 * segment rules). Chunks end at pauses, and people also pause in the middle of a sentence. Pure; every word is kept
 * once and in order.
 */
import type { ChunkRecognition } from './lanes.ts';
import type { UnnumberedSegment } from './segment.ts';
import { joinParts } from './segments.ts';
import { endsSentence, isFinished, MAX_PAUSE_SEC, MAX_SENTENCE_SEC } from './sentences.ts';

/**
 * Yields the sentences of all chunks. A sentence is yielded as soon as nothing more can belong to it: when it is
 * finished, when the silence after it is too long, when it has reached the cap, or when the next words begin another
 * sentence. At most one sentence is held, and it is also yielded when the source fails or ends.
 */
export async function* joinSentences(
  heard: AsyncIterable<Pick<ChunkRecognition, 'chunk' | 'sentences'>>,
): AsyncGenerator<UnnumberedSegment, void, undefined> {
  let held: UnnumberedSegment | null = null;
  try {
    for await (const { chunk, sentences } of heard) {
      for (const sentence of sentences) {
        const goesOn: boolean = held !== null && isOneSentence(held, sentence);
        if (held !== null && !goesOn) yield held;
        held = held !== null && goesOn ? joinParts(held, sentence) : sentence;
      }
      if (held === null || mayGoOn(held, chunk.silentUntilSec)) continue;
      yield held;
      held = null;
    }
  } catch (error) {
    if (held !== null) yield held;
    throw error;
  }
  if (held !== null) yield held;
}

function isOneSentence(first: UnnumberedSegment, second: UnnumberedSegment): boolean {
  const last = first.words.at(-1);
  const next = second.words[0];
  if (last === undefined || next === undefined || endsSentence(last, next)) return false;
  return second.end - first.start <= MAX_SENTENCE_SEC;
}

/** @param silentUntilSec the end of the silence after the sentence, in seconds */
function mayGoOn({ words, start, end }: UnnumberedSegment, silentUntilSec: number): boolean {
  const last = words.at(-1);
  if (last === undefined || isFinished(last)) return false;
  return silentUntilSec - end <= MAX_PAUSE_SEC && silentUntilSec - start < MAX_SENTENCE_SEC;
}
