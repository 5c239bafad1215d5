/**
 * Recognizes chunks side by side. Each chunk goes to a free lane of the model, and the results come out in the order of
 * the chunks. Meanwhile the next audio is decoded and searched for speech.
 */
import { pMapIterable } from 'p-map';
import type { Lane, TranscriptionModel } from '../engine/types.ts';
import type { LanguageTally } from './language/tally.ts';
import { type EarlierChunks, NO_EARLIER_CHUNKS, type Recognition } from './recognizer.ts';
import type { Chunk } from './speech/chunks.ts';

/**
 * The chunks in hand for each lane. One has its audio and is worked on, the others wait as text for a chunk before
 * them, which may take several times as long as they did.
 */
const IN_HAND = 8;

/** A chunk and what was recognized in it. Its audio is given back. */
export type ChunkRecognition<R extends Recognition = Recognition> = R & { chunk: Omit<Chunk, 'samples'> };

/** Adds the language of a chunk to those of the chunks before. */
export function addLanguage(
  tally: LanguageTally,
  { chunk, sentences, detected, spoken }: ChunkRecognition,
): LanguageTally {
  const seconds = sentences.length > 0 ? chunk.endSec - chunk.startSec : 0;
  return (spoken ?? [{ detected, seconds }]).reduce(
    (sum, piece) => sum.with(piece.detected, piece.seconds),
    tally,
  );
}

function withChunk(before: EarlierChunks, recognition: ChunkRecognition): EarlierChunks {
  const { completePace = Number.POSITIVE_INFINITY } = recognition;
  return {
    languages: addLanguage(before.languages, recognition),
    slowestPace: Math.min(before.slowestPace, completePace),
  };
}

/** Work on chunks of the type `C`, which may hold more than sound, with results of the type `R`. */
export interface LaneWork<C extends Chunk = Chunk, R extends Recognition = Recognition> {
  chunks: AsyncGenerator<C>;
  model: TranscriptionModel;
  /** True to give the first chunk all threads, so that its text comes as soon as possible. */
  firstAlone: boolean;
  /** Aborted when the consumer ends the iteration; `chunks` and `recognize` must end then. */
  stop: AbortController;
  /** @param before the results of earlier chunks, some of which may still be running */
  recognize(lane: Lane, chunk: C, before: Promise<EarlierChunks>): Promise<R>;
}

/** Yields the recognitions in the order of the chunks. When the iteration ends, for any reason, all lanes are idle. */
export async function* onLanes<C extends Chunk, R extends Recognition>(
  work: LaneWork<C, R>,
): AsyncGenerator<ChunkRecognition<R>> {
  const { chunks, model, firstAlone, stop } = work;
  const lanes = model.info.lanes;
  const free = Array.from({ length: lanes }, (_, i) => i);
  const running = new Set<Promise<ChunkRecognition<R>>>();
  let before = Promise.resolve(NO_EARLIER_CHUNKS);
  let first: Promise<unknown> | null = null;

  async function start(chunk: C, earlier: Promise<EarlierChunks>): Promise<ChunkRecognition<R>> {
    if (firstAlone) await first;
    const index = free.shift() ?? 0;
    try {
      const { samples: _samples, ...place } = chunk;
      return { chunk: place, ...(await work.recognize(await model.lane(index), chunk, earlier)) };
    } finally {
      free.unshift(index); // the lane used last still has its memory in the processor's caches
    }
  }

  async function recognize(chunk: C): Promise<ChunkRecognition<R>> {
    const recognition = start(chunk, before);
    before = Promise.all([before, recognition]).then(([earlier, next]) => withChunk(earlier, next));
    before.catch(() => undefined); // a failed chunk rejects where it is yielded, not here
    first ??= recognition;
    running.add(recognition);
    try {
      return await recognition;
    } finally {
      running.delete(recognition);
    }
  }

  try {
    yield* pMapIterable(chunks, recognize, { concurrency: lanes, backpressure: IN_HAND * lanes });
  } finally {
    stop.abort();
    await Promise.allSettled(running);
    await chunks.return(undefined);
  }
}
