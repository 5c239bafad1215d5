/**
 * The layout of the captures on disk: `<dir>/<YYYY-MM-DD>/<request id>/{req.bin,resp.bin,meta.json}`. Nothing else
 * below the folder is ever listed, counted or removed, so that a folder set by mistake loses nothing. No symbolic link
 * is followed, so that nothing outside of the folder can be removed.
 */
import { constants, type Dirent, mkdirSync } from 'node:fs';
import { appendFile, lstat, readdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { makeFolder } from '../make-folder.ts';
import { endOfLocalDay, localDay } from '../observability/local-day.ts';

export const CAPTURE_FILES = {
  request: 'req.bin',
  response: 'resp.bin',
  /** This file is written last, so a capture that has it is complete. */
  meta: 'meta.json',
  unfinishedMeta: 'meta.json.tmp',
} as const;

/** Disks give out space in blocks, so that a short file takes as much as one of this size. */
const BLOCK_BYTES = 4096;
/** What a capture takes beside its files: the block of its folder, its name in that of the day, and four inodes. */
export const FOLDER_BYTES = 2 * BLOCK_BYTES;

/** What a file of this size takes on the disk. */
export const onDisk = (size: number): number => Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;

export type Body = 'request' | 'response';
export const BODIES: readonly Body[] = ['request', 'response'];

const KNOWN_FILES: ReadonlySet<string> = new Set(Object.values(CAPTURE_FILES));
const DAY = /^\d{4}-\d{2}-\d{2}$/;
/** The names that `captureName` makes, with the `-2` of a repeated id. */
const NAME = /^[A-Za-z0-9\-_:.%]{1,400}$/;
const REMEMBERED_REPEATS = 1000;
const MAKE_ATTEMPTS = 50;
const REMOVE_ATTEMPTS = 5;
/** O_CREAT is left out, so that a capture whose folder or file was removed does not come back as half a capture. */
const APPEND = constants.O_WRONLY | constants.O_APPEND;

export interface CaptureFolder {
  path: string;
  /**
   * Epoch milliseconds of the last change, but not later than the end of its day, so that neither a copied capture nor
   * one moved to an old day counts as new.
   */
  at: number;
  /** What it takes on the disk. */
  bytes: number;
}

/** A complete capture. */
export interface StoredCapture {
  path: string;
  /** The content of meta.json. */
  meta: Readonly<Record<string, unknown>>;
  requestBytes: number;
  responseBytes: number;
}

/**
 * The folder name for a request id. It is the id itself, except that `.` and `..` become `%2E` and `%2E%2E`. Characters
 * that an id may not have are also written as `%` and hexadecimal, so that no string leads to another folder. No id
 * contains `%`, so an escaped name never equals the name of another id.
 */
export function captureName(requestId: string): string {
  const safe = requestId.slice(0, 128).replace(/[^A-Za-z0-9\-_:.]/g, escaped);
  if (safe === '') return '%';
  return safe === '.' || safe === '..' ? safe.replace(/\./g, escaped) : safe;
}

const escaped = (char: string) => `%${char.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;

/** The newest complete capture of a request; null when there is none. */
export async function findCapture(dir: string, requestId: string): Promise<StoredCapture | null> {
  const days = await daysIn(dir).catch(() => []);
  for (const day of days.reverse()) {
    const newest = await newestIn(join(dir, day), requestId);
    if (newest !== null) return newest;
  }
  return null;
}

/**
 * A request id that was sent again gets `-2`, `-3` and so on; the highest number is the newest. Such a folder may also be
 * that of another id, which ends like that by itself.
 */
async function newestIn(day: string, requestId: string): Promise<StoredCapture | null> {
  const name = captureName(requestId);
  const repeatOf = (entry: string) => {
    if (entry === name) return 1;
    const [before, after = ''] = [entry.slice(0, name.length + 1), entry.slice(name.length + 1)];
    return before === `${name}-` && /^\d+$/.test(after) ? Number(after) : 0;
  };
  const entries = (await entriesOf(day).catch(() => []))
    .filter((entry) => entry.isDirectory() && repeatOf(entry.name) > 0)
    .sort((a, b) => repeatOf(b.name) - repeatOf(a.name));
  for (const { name } of entries) {
    const stored = await readStored(join(day, name)).catch(() => null);
    if (stored?.meta.request_id === requestId) return stored;
  }
  return null;
}

async function readStored(path: string): Promise<StoredCapture> {
  const sizeOf = async (file: string) => {
    const info = await lstat(join(path, file));
    if (!info.isFile()) throw new Error(`${file} is not a regular file`);
    return info.size;
  };
  await sizeOf(CAPTURE_FILES.meta);
  return {
    path,
    meta: JSON.parse(await readFile(join(path, CAPTURE_FILES.meta), 'utf8')),
    requestBytes: await sizeOf(CAPTURE_FILES.request),
    responseBytes: await sizeOf(CAPTURE_FILES.response),
  };
}

/**
 * Returns a function that makes the folder of a capture. The function returns the path of a new, empty folder, and must
 * not be called again before it has returned.
 */
export function createFolderMaker(dir: string): (requestId: string, at: Date) => Promise<string> {
  // Without this map, the thousandth request with one id would try a thousand names.
  const repeats = new Map<string, number>();
  const remember = (wanted: string, repeat: number) => {
    repeats.delete(wanted);
    repeats.set(wanted, repeat);
    const oldest = repeats.keys().next();
    if (repeats.size > REMEMBERED_REPEATS && !oldest.done) repeats.delete(oldest.value);
  };

  return async (requestId, at) => {
    const wanted = join(dir, localDay(at), captureName(requestId));
    let repeat = repeats.get(wanted) ?? 1;
    for (let missing = 0; ; ) {
      const path = repeat === 1 ? wanted : `${wanted}-${repeat}`;
      try {
        await makeDay(dirname(path));
        // Not asynchronous: a sweep must not find the folder before the capture is known to be open. It fails when another
        // capture has this name.
        mkdirSync(path, { mode: 0o700 });
        if (repeat > 1) remember(wanted, repeat);
        return path;
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        // A sweeper may remove the empty day between the calls.
        if (code === 'ENOENT' && missing < MAKE_ATTEMPTS) missing += 1;
        else if (code === 'EEXIST') repeat += 1;
        else throw error;
      }
    }
  };
}

/** @throws Error for a day that is a symbolic link: what is written below it could never be listed or removed */
async function makeDay(path: string): Promise<void> {
  makeFolder(path, { mode: 0o700 });
  if (!(await lstat(path)).isDirectory()) throw new Error(`${path} is not a folder`);
}

/** Creates the empty body files of a new capture, readable by the owner only. */
export async function createBodies(path: string): Promise<void> {
  for (const body of BODIES)
    await writeFile(join(path, CAPTURE_FILES[body]), '', { flag: 'wx', mode: 0o600 });
}

/** Appends to a body file. Rejects with ENOENT when the capture was removed meanwhile. */
export function appendBody(path: string, body: Body, bytes: Buffer): Promise<void> {
  return appendFile(join(path, CAPTURE_FILES[body]), bytes, { flag: APPEND });
}

/** Writes meta.json by a rename, so that the file exists only when the capture is complete. */
export async function writeMeta(path: string, meta: string): Promise<void> {
  const unfinished = join(path, CAPTURE_FILES.unfinishedMeta);
  await writeFile(unfinished, meta, { mode: 0o600 });
  await rename(unfinished, join(path, CAPTURE_FILES.meta));
}

/** Every capture below `dir`, complete or not. Captures that vanish meanwhile are left out; `dir` need not exist. */
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
  let bytes = FOLDER_BYTES;
  for (const entry of await readdir(path, { withFileTypes: true })) {
    if (!entry.isFile() || !KNOWN_FILES.has(entry.name)) return null;
    bytes += onDisk((await lstat(join(path, entry.name))).size);
  }
  return { path, at: Math.min(mtimeMs, endOfDay), bytes };
}

/**
 * Removes the files of a capture by name, then its folder. Another gateway on the same folder may add to the capture
 * meanwhile, so there are several attempts.
 * @throws Error `ENOTEMPTY` when the folder holds a file of someone else, or is written to all the time
 */
export async function removeCapture(path: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    for (const name of KNOWN_FILES) await rm(join(path, name), { force: true });
    try {
      return await rmdir(path);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return;
      if (code !== 'ENOTEMPTY' || attempt === REMOVE_ATTEMPTS) throw error;
    }
  }
}

/** Removes the folders of days without captures. */
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
