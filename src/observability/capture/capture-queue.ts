/**
 * What waits for the disk, in memory: jobs, of which one runs at a time, and the chunks of bodies. Chunks and open
 * captures share one budget, so that a disk that is slow or hangs costs a bounded amount of memory.
 */

/** Bookkeeping bytes per chunk. */
const CHUNK_OVERHEAD = 256;
const BATCH_BYTES = 1024 * 1024;

export type Job = () => Promise<void>;

export interface JobQueue {
  /** A job that waits already is not added again; one that runs is, and then runs again. */
  add(job: Job): void;
  /** Resolves when no job is left, those added meanwhile included. */
  idle(): Promise<void>;
}

/** Jobs run one after the other, in the order in which they were added; they must not reject. */
export function createJobQueue(): JobQueue {
  const jobs = new Set<Job>();
  let running: Promise<void> | null = null;

  async function run(): Promise<void> {
    // The set is walked while it grows; a job that is added again runs again.
    for (const job of jobs) {
      jobs.delete(job);
      await job();
    }
    running = null; // with no await since the last look at the set
  }

  return {
    add(job) {
      jobs.add(job);
      running ??= run();
    },
    async idle() {
      while (running !== null) await running;
    },
  };
}

/** Bytes of memory, taken and given back. */
export interface Budget {
  /** False, and nothing taken, where fewer bytes are left. */
  take(bytes: number): boolean;
  giveBack(bytes: number): void;
}

export function createBudget(maxBytes: number): Budget {
  let taken = 0;
  return {
    take(bytes) {
      if (taken + bytes > maxBytes) return false;
      taken += bytes;
      return true;
    },
    giveBack(bytes) {
      taken -= bytes;
    },
  };
}

/** The chunks of one body that are not on the disk yet. */
export interface WaitingBody {
  /** Something did not fit the budget. From there on nothing is kept: a body is cut, it never has a hole. */
  readonly isCut: boolean;
  readonly isEmpty: boolean;
  /** Keeps the chunk itself, not a copy; false where it is left out. */
  push(chunk: Buffer): boolean;
  /** Hands about 1 MiB from the front to `write`; its memory is given back however that ends. */
  flush(write: (batch: Buffer) => Promise<void>): Promise<void>;
  clear(): void;
}

export function createWaitingBody(budget: Budget): WaitingBody {
  const chunks: Buffer[] = [];
  let isCut = false;

  return {
    get isCut() {
      return isCut;
    },
    get isEmpty() {
      return chunks.length === 0;
    },
    push(chunk) {
      if (isCut || chunk.length === 0) return false;
      isCut = !budget.take(costOf(chunk));
      if (!isCut) chunks.push(chunk);
      return !isCut;
    },
    async flush(write) {
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
    clear() {
      for (const chunk of chunks.splice(0)) budget.giveBack(costOf(chunk));
    },
  };
}

const costOf = (chunk: Buffer) => chunk.length + CHUNK_OVERHEAD;
