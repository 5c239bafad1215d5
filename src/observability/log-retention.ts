/**
 * Keeps the access log within an age and a size. A day's file that has grown to a quarter of the size becomes a part
 * (`access-2026-01-31.1.jsonl`), so that the oldest lines of one busy day can go as well.
 */
import { readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Logger } from 'winston';
import { endOfLocalDay } from './local-day.ts';
import { planRemoval } from './retention.ts';

export interface LogRetentionOptions {
  maxBytes: number;
  maxAgeMs: number;
  log: Pick<Logger, 'warn'>;
  now?: () => number;
}

const PARTS = 4;
const NAME = /^access-(\d{4}-\d{2}-\d{2})(?:\.(\d+))?\.jsonl$/;

interface LogFile {
  path: string;
  day: string;
  /** Infinity for the file that is written now, which is the newest of its day. */
  part: number;
  bytes: number;
}

/** Neither of its functions ever rejects. */
export function createLogRetention({ maxBytes, maxAgeMs, log, now = Date.now }: LogRetentionOptions) {
  let lastPath: string | null = null;
  /** Never less than what is on the disk. */
  let used = 0;
  let failed = false;

  /** Begins a part where the file is large, and returns how many bytes are left. */
  async function trim(path: string, bytes: number): Promise<number> {
    const files = await listLog(dirname(path));
    const current = files.find((file) => file.path === path);
    if (current !== undefined && current.bytes > 0 && current.bytes + bytes > maxBytes / PARTS) {
      const parts = files.filter(({ day, part }) => day === current.day && part !== Number.POSITIVE_INFINITY);
      current.part = 1 + Math.max(0, ...parts.map(({ part }) => part));
      current.path = path.replace(/\.jsonl$/, `.${current.part}.jsonl`);
      await rename(path, current.path);
    }
    return await removeOldest(files, path, bytes);
  }

  async function removeOldest(files: LogFile[], path: string, bytes: number): Promise<number> {
    let total = files.reduce((sum, file) => sum + file.bytes, 0);
    const stored = files
      .toSorted((a, b) => a.part - b.part)
      .map((file) => ({ ...file, at: endOfLocalDay(file.day), busy: file.path === path }));
    for (const file of planRemoval(stored, { maxAgeMs, maxBytes: maxBytes - bytes }, now())) {
      await rm(file.path, { force: true });
      total -= file.bytes;
    }
    return total;
  }

  function warn(path: string, error: unknown): void {
    // The log is more important than its size, and the next file or sweep tries again.
    if (!failed) log.warn('Cannot remove old access logs', { file: basename(path), error: String(error) });
    failed = true;
  }

  return {
    /** Makes room for bytes that are about to be appended to this file. */
    async makeRoom(path: string, bytes: number): Promise<void> {
      try {
        const size = await stat(path).then(
          (info) => info.size,
          () => 0,
        );
        const isNew = path !== lastPath;
        lastPath = path;
        if (isNew || used + bytes > maxBytes || (size > 0 && size + bytes > maxBytes / PARTS))
          used = await trim(path, bytes);
        used += bytes;
      } catch (error) {
        warn(path, error);
      }
    },
    /** Removes what has become too old or too much while nothing is written. This file, that of today, stays. */
    async sweep(path: string): Promise<void> {
      try {
        await removeOldest(await listLog(dirname(path)), path, 0);
      } catch (error) {
        warn(path, error);
      }
    },
  };
}

async function listLog(dir: string): Promise<LogFile[]> {
  const names = await readdir(dir).catch(() => []);
  const files = names.map(async (name): Promise<LogFile[]> => {
    const [, day, part] = NAME.exec(name) ?? [];
    if (day === undefined) return [];
    const path = join(dir, name);
    const info = await stat(path).catch(() => null);
    if (!info?.isFile()) return [];
    return [
      { path, day, part: part === undefined ? Number.POSITIVE_INFINITY : Number(part), bytes: info.size },
    ];
  });
  return (await Promise.all(files)).flat();
}
