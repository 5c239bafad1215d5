/**
 * A sentence that goes on in the next chunk is one segment all the same (contract 4.3, segment rules): speech is cut
 * into chunks where it pauses, and people pause in the middle of sentences too. Pure; every word is kept, in order,
 * once.
 */
import type { ChunkRecognition } from './lanes.ts';
import type { UnnumberedSegment } from './segment.ts';
import { joinParts } from './segments.ts';
import { endsSentence, isFinished, MAX_PAUSE_SEC, MAX_SENTENCE_SEC } from './sentences.ts';

/**
 * The sentences of all chunks. One leaves as soon as it is known that nothing more belongs to it: when it is
 * finished, when the silence behind it is too long, when there is no time left within the cap, or when what was heard
 * next begins a sentence of its own. So at most one is held, and none where the source fails or ends.
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

/** @param silentUntilSec nothing is said from its end until then */
function mayGoOn({ words, start, end }: UnnumberedSegment, silentUntilSec: number): boolean {
  const last = words.at(-1);
  if (last === undefined || isFinished(last)) return false;
  return silentUntilSec - end <= MAX_PAUSE_SEC && silentUntilSec - start < MAX_SENTENCE_SEC;
}
