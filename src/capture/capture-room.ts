/**
 * Keeps the captures within their size all the time: before anything is written, the oldest captures are removed until
 * there is room. The sweeper does the same by the clock, for age and for what was put there by hand.
 */
import { type CaptureFolder, listCaptures, removeCapture } from './capture-folder.ts';

export interface CaptureRoom {
  /** Makes room for bytes that are about to be taken on the disk. False when there is none. */
  take(bytes: number): Promise<boolean>;
  /** Measures the folder again at the next call, because captures were removed meanwhile. */
  remeasure(): void;
}

export interface CaptureRoomOptions {
  dir: string;
  maxBytes: number;
  /** True while a capture is being written to this path. */
  isOpen(path: string): boolean;
}

/** When captures must go, this part of the limit is made free, so that the folder is not listed for every chunk. */
const SPARE_PART = 1 / 32;

export function createCaptureRoom({ dir, maxBytes, isOpen }: CaptureRoomOptions): CaptureRoom {
  /** Never less than what is on the disk; null until it is measured. */
  let used: number | null = null;

  async function removeOldest(bytes: number): Promise<number> {
    const captures = await listCaptures(dir);
    let total = captures.reduce((sum, capture) => sum + capture.bytes, 0);
    const target = maxBytes - Math.max(bytes, maxBytes * SPARE_PART);
    const oldestFirst = captures.sort((a: CaptureFolder, b: CaptureFolder) => a.at - b.at);
    for (const capture of oldestFirst) {
      if (total <= target) break;
      if (isOpen(capture.path)) continue;
      const removed = await removeCapture(capture.path).then(
        () => true,
        () => false,
      );
      if (removed) total -= capture.bytes;
    }
    return total;
  }

  return {
    async take(bytes) {
      if (maxBytes === Number.POSITIVE_INFINITY) return true;
      used ??= (await listCaptures(dir)).reduce((sum, capture) => sum + capture.bytes, 0);
      if (used + bytes > maxBytes) used = await removeOldest(bytes);
      if (used + bytes > maxBytes) return false;
      used += bytes;
      return true;
    },
    remeasure() {
      used = null;
    },
  };
}
