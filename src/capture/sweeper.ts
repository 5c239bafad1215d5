/** Removes captures by age, then by size, at the start and every half hour (contract 8). */
import type { Logger } from 'winston';
import { planRemoval } from '../observability/retention.ts';
import { listCaptures, removeCapture, removeEmptyDays } from './capture-folder.ts';

export interface Sweeper {
  /** Sweeps now, or joins the sweep under way. It never rejects, and returns how many captures were removed. */
  sweep(): Promise<number>;
  /** Stops a sweep under way after its current capture. */
  close(): Promise<void>;
}

const SWEEP_MS = 30 * 60_000;

export interface SweeperOptions {
  dir: string;
  /** True while a capture is being written to this path. */
  isOpen(path: string): boolean;
  /** Days, possibly with a fraction. */
  maxDays: number;
  /** GiB, possibly with a fraction. */
  maxGb: number;
  log: Logger;
  now?: () => number;
}

export function createSweeper(options: SweeperOptions): Sweeper {
  const { dir, isOpen, log, now = Date.now } = options;
  const limits = { maxAgeMs: options.maxDays * 86_400_000, maxBytes: options.maxGb * 1024 ** 3 };
  let running: Promise<number> | null = null;
  let closed = false;

  async function run(): Promise<number> {
    let removed = 0;
    try {
      const captures = (await listCaptures(dir)).map((c) => ({ ...c, busy: isOpen(c.path) }));
      for (const { path } of planRemoval(captures, limits, now())) {
        if (closed) break;
        if (isOpen(path)) continue;
        // A capture that cannot be removed must not keep the others from being removed.
        const error = await removeCapture(path).then(() => null, String);
        if (error === null) removed += 1;
        else log.error('Cannot remove a capture', { path, error });
      }
      await removeEmptyDays(dir);
    } catch (error) {
      log.error('Cannot sweep the captures', { dir, error: String(error) });
    }
    if (removed > 0) log.info('Old captures were removed', { dir, removed });
    return removed;
  }

  function sweep(): Promise<number> {
    running ??= run().finally(() => {
      running = null;
    });
    return running;
  }

  const timer = setInterval(() => void sweep(), SWEEP_MS);
  timer.unref();
  void sweep();

  return {
    sweep,
    async close() {
      closed = true;
      clearInterval(timer);
      await running;
    },
  };
}
