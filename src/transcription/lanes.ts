/**
 * Chunks side by side: each goes to a free lane of the model, and what is heard in them is handed on in their order.
 * Meanwhile the next ones are decoded and searched for speech.
 */
import { pMapIterable } from 'p-map';
import type { Lane, TranscriptionModel } from '../engine/types.ts';
import type { Chunk } from './chunks.ts';
import type { Recognition } from './recognizers/recognizer.ts';

/** Chunks in hand for each lane: the one it works on, and one that waits for it or was done before its turn. */
const IN_HAND = 2;

/** What was heard in a chunk. */
export interface ChunkRecognition extends Recognition {
  chunk: Chunk;
}

export interface LaneWork {
  chunks: AsyncGenerator<Chunk>;
  model: TranscriptionModel;
  /** The first chunk gets every thread, so that its text comes as soon as it can. */
  firstAlone: boolean;
  /** Aborted when nobody wants more: the chunks and the work on them have to end then. */
  stop: AbortController;
  /** @param before what is heard in the chunk before; null for the first */
  recognize(lane: Lane, chunk: Chunk, before: Promise<ChunkRecognition> | null): Promise<Recognition>;
}

/** When the iteration is over, however it ended, no lane works any more. */
export async function* onLanes(work: LaneWork): AsyncGenerator<ChunkRecognition> {
  const { chunks, model, firstAlone, stop } = work;
  const lanes = model.info.lanes;
  const free = Array.from({ length: lanes }, (_, i) => i);
  const running = new Set<Promise<ChunkRecognition>>();
  let before: Promise<ChunkRecognition> | null = null;
  let first: Promise<ChunkRecognition> | null = null;

  async function start(chunk: Chunk, previous: Promise<ChunkRecognition> | null): Promise<ChunkRecognition> {
    if (firstAlone) await first;
    const index = free.shift() ?? 0;
    try {
      return { chunk, ...(await work.recognize(await model.lane(index), chunk, previous)) };
    } finally {
      free.unshift(index); // the lane used last has its memory in the caches
    }
  }

  async function hear(chunk: Chunk): Promise<ChunkRecognition> {
    const heard = start(chunk, before);
    before = heard;
    first ??= heard;
    running.add(heard);
    try {
      return await heard;
    } finally {
      running.delete(heard);
    }
  }

  try {
    yield* pMapIterable(chunks, hear, { concurrency: lanes, backpressure: IN_HAND * lanes });
  } finally {
    stop.abort();
    await Promise.allSettled(running);
    await chunks.return(undefined);
  }
}
