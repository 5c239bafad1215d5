/**
 * What captures look like on disk: `<dir>/<YYYY-MM-DD>/<request id>/{req.bin,resp.bin,meta.json}`. Nothing else
 * below the folder is ever listed, counted or removed, and no symbolic link is followed, so that a folder set by
 * mistake loses nothing and removal cannot be led out of it.
 */
import type { Dirent } from 'node:fs';
import { lstat, readdir, rm, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { endOfLocalDay } from '../local-day.ts';

export const CAPTURE_FILES = {
  request: 'req.bin',
  response: 'resp.bin',
  /** Written last: where it is, the capture is complete. */
  meta: 'meta.json',
  unfinishedMeta: 'meta.json.tmp',
} as const;

const KNOWN_FILES: ReadonlySet<string> = new Set(Object.values(CAPTURE_FILES));
const DAY = /^\d{4}-\d{2}-\d{2}$/;
/** Of `captureName`, with the `-2` of a repeated id. */
const NAME = /^[A-Za-z0-9\-_:.%]{1,400}$/;

export interface CaptureFolder {
  path: string;
  /** Epoch milliseconds: when it last changed, but not later than the end of its day, so that neither a copied
   * capture nor one moved to an old day counts as new. */
  at: number;
  bytes: number;
}

/**
 * A request id as a folder's name: itself, but `.` and `..` become `%2E` and `%2E%2E`. What no id may contain is
 * written as `%` and hexadecimal too, so that no string whatever names another folder; `%` is in no id, so these
 * names are no other's.
 */
export function captureName(requestId: string): string {
  const safe = requestId.slice(0, 128).replace(/[^A-Za-z0-9\-_:.]/g, escaped);
  if (safe === '') return '%';
  return safe === '.' || safe === '..' ? safe.replace(/\./g, escaped) : safe;
}

const escaped = (char: string) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;

/** Every capture below `dir`, complete or not. What vanishes meanwhile is left out; no folder, no captures. */
export async function listCaptures(dir: string): Promise<CaptureFolder[]> {
  const found: CaptureFolder[] = [];
  for (const day of await daysIn(dir)) {
    for (const entry of await entriesOf(join(dir, day))) {
      if (!entry.isDirectory() || !NAME.test(entry.name)) continue;
      const path = join(dir, day, entry.name);
      const capture = await measure(path, endOfLocalDay(day)).catch(ignoreMissing);
      if (capture !== null) found.push(capture);
    }
  }
  return found;
}

async function measure(path: string, endOfDay: number): Promise<CaptureFolder | null> {
  const { mtimeMs } = await lstat(path);
  let bytes = 0;
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (!entry.isFile() || !KNOWN_FILES.has(entry.name)) return null;
    bytes += (await lstat(join(path, entry.name))).size;
  }
  return { path, at: Math.min(mtimeMs, endOfDay), bytes };
}

/** Removes the files of a capture by name, then its folder: what is not ours makes it fail instead of vanish. */
export async function removeCapture(path: string): Promise<void> {
  for (const name of KNOWN_FILES) await rm(join(path, name), { force: true });
  await rmdir(path).catch(ignoreMissing);
}

export async function removeEmptyDays(dir: string): Promise<void> {
  for (const day of await daysIn(dir)) {
    await rmdir(join(dir, day)).catch((error) => {
      if (!['ENOTEMPTY', 'EEXIST', 'ENOENT'].includes(error.code)) throw error;
    });
  }
}

async function daysIn(dir: string): Promise<string[]> {
  const entries = await entriesOf(dir);
  return entries
    .filter((e) => e.isDirectory() && DAY.test(e.name))
    .map((e) => e.name)
    .sort();
}

async function entriesOf(dir: string): Promise<Dirent[]> {
  return (await readdir(dir, { withFileTypes: true }).catch(ignoreMissing)) ?? [];
}

function ignoreMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null;
  throw error;
}
