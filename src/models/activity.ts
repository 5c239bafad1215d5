/** Tracks the work of the store, for the dashboard, for the log, and for requests that wait for a model or share it. */
import { onAbort } from '../abort.ts';
import { megabytes } from './disk.ts';
import type { ModelProgress, ReportProgress } from './source.ts';

export type ProgressListener = (progress: ModelProgress) => void;

export function createActivity(log: { info(message: string): void }) {
  const latest = new Map<string, ModelProgress>();
  const listeners = new Map<string, Set<ProgressListener>>();

  return {
    /** The latest report of each job that runs now. */
    current: () => [...latest.values()],

    /** Runs a job on a model. Its reports are in `current` until it ends. */
    async track<Result>(id: string, work: (report: ReportProgress) => Promise<Result>): Promise<Result> {
      const reportToLog = createProgressLog(log);
      try {
        return await work((progress) => {
          const event = { id, ...progress };
          latest.set(id, event);
          reportToLog(progress);
          for (const listener of listeners.get(id) ?? []) listener(event);
        });
      } finally {
        latest.delete(id);
      }
    },

    /** Passes all reports about a model to a listener until `wait` ends, also those of jobs that others started. */
    async listen<Result>(
      id: string,
      listener: ProgressListener | undefined,
      wait: () => Promise<Result>,
    ): Promise<Result> {
      if (!listener) return wait();
      const group = listeners.get(id) ?? new Set();
      listeners.set(id, group.add(listener));
      try {
        return await wait();
      } finally {
        group.delete(listener);
      }
    },
  };
}

/** Logs the progress of a download, at each tenth of the file. */
function createProgressLog(log: { info(message: string): void }): ReportProgress {
  let told = 0;
  return ({ phase, what, doneBytes, totalBytes }) => {
    if (phase !== 'downloading' || totalBytes === null) return;
    const tenth = Math.floor((doneBytes / totalBytes) * 10);
    // The end has a line elsewhere. A file that is downloaded from its start again is logged again.
    if (tenth > told && tenth < 10)
      log.info(`Downloading ${what}: ${tenth * 10} % of ${megabytes(totalBytes)}.`);
    told = tenth;
  };
}

interface SharedJob<Result> {
  result: Promise<Result>;
  controller: AbortController;
  waiters: number;
}

/** Jobs that several callers share, by their keys. Each may leave; a job is aborted only when all of them have left. */
export class SharedJobs<Result> {
  readonly #jobs = new Map<string, SharedJob<Result>>();

  /**
   * Joins the job under way with this key, or starts `run`.
   * @throws the error of the job, or `signal.reason` when the caller's signal aborts
   */
  async join(
    key: string,
    run: (signal: AbortSignal) => Promise<Result>,
    signal?: AbortSignal,
  ): Promise<Result> {
    signal?.throwIfAborted();
    const running = this.#jobs.get(key);
    const job = running && !running.controller.signal.aborted ? running : this.#start(key, run);
    job.waiters += 1;
    let leave = (_reason: unknown) => {};
    using _leaving = onAbort(signal, () => leave(signal?.reason));
    try {
      return await new Promise((resolve, reject) => {
        leave = reject;
        job.result.then(resolve, reject);
      });
    } finally {
      job.waiters -= 1;
      if (job.waiters === 0) job.controller.abort(signal?.reason);
    }
  }

  #start(key: string, run: (signal: AbortSignal) => Promise<Result>): SharedJob<Result> {
    const controller = new AbortController();
    // An aborted run must first have closed its files, so the new run waits for its end.
    const before = this.#jobs.get(key)?.result.catch(() => undefined);
    const result = Promise.resolve(before)
      .then(() => run(controller.signal))
      .finally(() => {
        if (this.#jobs.get(key) === job) this.#jobs.delete(key);
      });
    const job: SharedJob<Result> = { result, controller, waiters: 0 };
    this.#jobs.set(key, job);
    return job;
  }
}
