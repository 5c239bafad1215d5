/**
 * The jobs and the chunks of bodies that wait in memory for the disk. One job runs at a time. Chunks and open captures
 * share one budget, so that a disk that is slow or hangs costs a bounded amount of memory.
 */
import type { ByteBudget } from '../limits/budgets.ts';

/** Bookkeeping bytes per chunk. */
const CHUNK_OVERHEAD = 256;
const BATCH_BYTES = 1024 * 1024;

export type Job = () => Promise<void>;

export type JobQueue = ReturnType<typeof createJobQueue>;

/** A queue that runs jobs one after the other, in the order in which they were added. Jobs must not reject. */
export function createJobQueue() {
  const jobs = new Set<Job>();
  let running: Promise<void> | null = null;

  async function run(): Promise<void> {
    // The loop also reaches jobs that are added while it runs.
    for (const job of jobs) {
      jobs.delete(job);
      await job();
    }
    running = null; // no await may come between the end of the loop and this line, or a job could be missed
  }

  return {
    /** Adds a job, unless it is already waiting. A job that is added while it runs will run again. */
    add(job: Job): void {
      jobs.add(job);
      running ??= run();
    },
    /** Resolves when no job is left, including the jobs added meanwhile. */
    async idle(): Promise<void> {
      while (running !== null) await running;
    },
  };
}

export type WaitingBody = ReturnType<typeof createWaitingBody>;

/** The chunks of one body that are not on the disk yet. */
export function createWaitingBody(budget: ByteBudget) {
  const chunks: Buffer[] = [];
  let isCut = false;

  function clear(): void {
    for (const chunk of chunks.splice(0)) budget.giveBack(costOf(chunk));
  }

  return {
    /** True after a chunk did not fit the budget. No later chunk is kept, so that the body is cut but has no hole. */
    get isCut(): boolean {
      return isCut;
    },
    get isEmpty(): boolean {
      return chunks.length === 0;
    },
    /** Keeps the chunk itself, not a copy. Returns false when the chunk is left out. */
    push(chunk: Buffer): boolean {
      if (isCut || chunk.length === 0) return false;
      isCut = !budget.take(costOf(chunk));
      if (!isCut) chunks.push(chunk);
      return !isCut;
    },
    /** Passes about 1 MiB from the front to `write`, and then gives its memory back, also when `write` rejects. */
    async flush(write: (batch: Buffer) => Promise<void>): Promise<void> {
      if (chunks.length === 0) return;
      let bytes = 0;
      let count = 0;
      while (count < chunks.length && (count === 0 || bytes < BATCH_BYTES)) {
        bytes += chunks[count]?.length ?? 0;
        count += 1;
      }
      const batch = chunks.splice(0, count);
      try {
        await write(Buffer.concat(batch));
      } finally {
        for (const chunk of batch) budget.giveBack(costOf(chunk));
      }
    },
    clear,
    /** Drops what waits, and leaves out what comes. */
    cut(): void {
      isCut = true;
      clear();
    },
  };
}

const costOf = (chunk: Buffer) => chunk.length + CHUNK_OVERHEAD;
