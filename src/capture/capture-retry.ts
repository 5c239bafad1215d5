/**
 * Switches payload capture on again after the disk failed, as an operator would who has made room. It looks now and
 * then, ever more seldom, and only where there is room to spare: captures must not take the last bytes of a disk that
 * others fill.
 */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from 'winston';
import { freeBytes } from '../machine.ts';
import { makeFolder } from '../make-folder.ts';

export interface CaptureRetryOptions {
  dir: string;
  log: Logger;
  /** Switches capture on. */
  resume(): void;
  /** The time until it looks first. Each time is twice as long as the one before, also where capture failed again. */
  firstMs?: number;
  mostMs?: number;
  /** The free bytes of a disk that may have captures again. */
  spareBytes?: number;
}

export function createCaptureRetry(options: CaptureRetryOptions) {
  const { dir, log, resume, firstMs = 60_000, mostMs = 30 * 60_000 } = options;
  const { spareBytes = 64 * 1024 * 1024 } = options;
  let timer: NodeJS.Timeout | undefined;
  let waitMs = firstMs;
  let resumedAt = Number.NEGATIVE_INFINITY;

  function wait(): void {
    const mine = setTimeout(async () => {
      const takes = await takesCaptures(dir, spareBytes).catch(() => false);
      if (timer !== mine) return; // it was cancelled meanwhile
      if (!takes) {
        log.debug('Payload capture stays off, because the disk takes no captures', { dir });
        return wait();
      }
      resumedAt = performance.now();
      log.info('Payload capture is on again, because the disk takes captures', { dir });
      resume();
    }, waitMs).unref();
    timer = mine;
    waitMs = Math.min(mostMs, 2 * waitMs);
  }

  /** Somebody has switched capture on or off, which stays. */
  function cancel(): void {
    clearTimeout(timer);
    timer = undefined;
  }

  return {
    /** The disk has failed just now. */
    failed(): void {
      cancel();
      if (performance.now() - resumedAt > mostMs) waitMs = firstMs;
      wait();
    },
    cancel,
  };
}

/** @throws the error of a disk that takes none */
async function takesCaptures(dir: string, spareBytes: number): Promise<boolean> {
  makeFolder(dir);
  if ((await freeBytes(dir)) < spareBytes) return false;
  const probe = join(dir, `.probe-${process.pid}`);
  await writeFile(probe, 'x');
  await rm(probe);
  return true;
}
