/**
 * Keeps the captures within an age and a size (contract 8). Before anything is written, the oldest captures are removed
 * until there is room; at the start and every half hour those that are too old go, and what was put there by hand.
 */
import type { Logger } from 'winston';
import { planRemoval } from '../observability/retention.ts';
import { listCaptures, removeCapture, removeEmptyDays } from './capture-folder.ts';

export type CaptureRetention = ReturnType<typeof createCaptureRetention>;

export interface CaptureRetentionOptions {
  dir: string;
  log: Logger;
  maxAgeMs: number;
  maxBytes: number;
  /** True while a capture is being written to this path. */
  isOpen(path: string): boolean;
  now?: () => number;
}

const SWEEP_MS = 30 * 60_000;
/** When captures must go, this part of the limit is made free, so that the folder is not listed for every chunk. */
const SPARE_PART = 1 / 32;

export function createCaptureRetention(options: CaptureRetentionOptions) {
  const { dir, log, maxAgeMs, maxBytes, isOpen, now = Date.now } = options;
  /** Never less than what is on the disk; null until it is measured. */
  let used: number | null = null;
  let sweeping: Promise<number> | null = null;
  let closed = false;

  /** Removes what is outside of the limits. @returns the bytes that are left, and how many captures were removed */
  async function removeBeyond(limits: { maxAgeMs: number; maxBytes: number }) {
    const captures = (await listCaptures(dir)).map((c) => ({ ...c, busy: isOpen(c.path) }));
    let left = captures.reduce((sum, { bytes }) => sum + bytes, 0);
    let removed = 0;
    for (const { path, bytes } of planRemoval(captures, limits, now())) {
      if (closed) break;
      if (isOpen(path)) continue;
      // A capture that cannot be removed must not keep the others from being removed.
      const error = await removeCapture(path).then(() => null, String);
      if (error !== null) {
        log.error('Cannot remove a capture', { path, error });
        continue;
      }
      removed += 1;
      left -= bytes;
    }
    return { left, removed };
  }

  async function run(): Promise<number> {
    try {
      const { removed } = await removeBeyond({ maxAgeMs, maxBytes });
      await removeEmptyDays(dir);
      if (removed > 0) log.info('Old captures were removed', { dir, removed });
      return removed;
    } catch (error) {
      log.error('Cannot sweep the captures', { dir, error: String(error) });
      return 0;
    }
  }

  /** Sweeps now, or joins the sweep under way. It never rejects, and returns how many captures were removed. */
  function sweep(): Promise<number> {
    sweeping ??= run().finally(() => {
      sweeping = null;
    });
    return sweeping;
  }

  const timer = setInterval(() => void sweep(), SWEEP_MS);
  timer.unref();
  void sweep();

  return {
    /** Makes room for bytes that are about to be taken on the disk. False when there is none. */
    async take(bytes: number): Promise<boolean> {
      if (maxBytes === Number.POSITIVE_INFINITY) return true;
      used ??= (await listCaptures(dir)).reduce((sum, capture) => sum + capture.bytes, 0);
      if (used + bytes > maxBytes) {
        const target = maxBytes - Math.max(bytes, maxBytes * SPARE_PART);
        used = (await removeBeyond({ maxAgeMs: Number.POSITIVE_INFINITY, maxBytes: target })).left;
      }
      if (used + bytes > maxBytes) return false;
      used += bytes;
      return true;
    },
    /** Measures the folder again at the next call, because captures were removed meanwhile. */
    remeasure(): void {
      used = null;
    },
    sweep,
    /** Stops a sweep under way after its current capture. */
    async close(): Promise<void> {
      closed = true;
      clearInterval(timer);
      await sweeping;
    },
  };
}
