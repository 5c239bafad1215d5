/** Jobs that several callers share. Each may leave; a job is aborted only when all of its callers have left. */
import { onAbort } from '../abort.ts';

export interface SharedJobs<Key, Result> {
  /**
   * Joins the job under way with this key, or starts `run`.
   * @throws the error of the job, or `signal.reason` when the caller's signal aborts
   */
  join(key: Key, run: (signal: AbortSignal) => Promise<Result>, signal?: AbortSignal): Promise<Result>;
}

interface Job<Result> {
  result: Promise<Result>;
  controller: AbortController;
  waiters: number;
}

export function createSharedJobs<Key, Result>(): SharedJobs<Key, Result> {
  const jobs = new Map<Key, Job<Result>>();

  function start(key: Key, run: (signal: AbortSignal) => Promise<Result>): Job<Result> {
    const controller = new AbortController();
    const previous = jobs.get(key)?.result;
    // An aborted run must first have closed its files, so the new run waits for its end.
    const ready = previous ? previous.then(ignore, ignore) : Promise.resolve();
    const result = ready.then(() => run(controller.signal));
    const job: Job<Result> = { result, controller, waiters: 0 };
    jobs.set(key, job);
    const forget = () => {
      if (jobs.get(key) === job) jobs.delete(key);
    };
    result.then(forget, forget);
    return job;
  }

  return {
    join(key, run, signal) {
      if (signal?.aborted) return Promise.reject(signal.reason);
      const running = jobs.get(key);
      const job = running && !running.controller.signal.aborted ? running : start(key, run);
      job.waiters++;
      return new Promise((resolve, reject) => {
        let here = true;
        const leave = () => {
          leaving[Symbol.dispose]();
          if (here) job.waiters--;
          here = false;
        };
        const leaving = onAbort(signal, () => {
          leave();
          if (job.waiters === 0) job.controller.abort(signal?.reason);
          reject(signal?.reason);
        });
        job.result.then(
          (value) => {
            leave();
            resolve(value);
          },
          (error) => {
            leave();
            reject(error);
          },
        );
      });
    },
  };
}

function ignore(): void {}
