/**
 * What captures look like on disk: `<dir>/<YYYY-MM-DD>/<request id>/{req.bin,resp.bin,meta.json}`. Nothing else
 * below the folder is ever listed, counted or removed, and no symbolic link is followed, so that a folder set by
 * mistake loses nothing and removal cannot be led out of it.
 */
import { constants, type Dirent } from 'node:fs';
import {
  appendFile,
  lstat,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  stat,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { endOfLocalDay, localDay } from '../local-day.ts';

export const CAPTURE_FILES = {
  request: 'req.bin',
  response: 'resp.bin',
  /** Written last: where it is, the capture is complete. */
  meta: 'meta.json',
  unfinishedMeta: 'meta.json.tmp',
} as const;

export type Body = 'request' | 'response';
export const BODIES: readonly Body[] = ['request', 'response'];

const KNOWN_FILES: ReadonlySet<string> = new Set(Object.values(CAPTURE_FILES));
const DAY = /^\d{4}-\d{2}-\d{2}$/;
/** Of `captureName`, with the `-2` of a repeated id. */
const NAME = /^[A-Za-z0-9\-_:.%]{1,400}$/;
const REMEMBERED_REPEATS = 1000;
const MAKE_ATTEMPTS = 5;
/** Without O_CREAT: a capture whose folder or file was removed must not come back as half of itself. */
const APPEND = constants.O_WRONLY | constants.O_APPEND;

export interface CaptureFolder {
  path: string;
  /** Epoch milliseconds: when it last changed, but not later than the end of its day, so that neither a copied
   * capture nor one moved to an old day counts as new. */
  at: number;
  bytes: number;
}

/** A complete capture. */
export interface StoredCapture {
  path: string;
  /** As in meta.json. */
  meta: Readonly<Record<string, unknown>>;
  requestBytes: number;
  responseBytes: number;
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

/** The newest complete capture of a request; null when there is none (any more). */
export async function findCapture(dir: string, requestId: string): Promise<StoredCapture | null> {
  const days = await daysIn(dir).catch(() => []);
  for (const day of days.reverse()) {
    const newest = await newestIn(join(dir, day), captureName(requestId));
    if (newest !== null) return newest;
  }
  return null;
}

/** A request id sent again has `-2`, `-3`... after it; the highest is the newest. */
async function newestIn(day: string, name: string): Promise<StoredCapture | null> {
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
    if (stored !== null) return stored;
  }
  return null;
}

async function readStored(path: string): Promise<StoredCapture> {
  const sizeOf = async (file: string) => (await stat(join(path, file))).size;
  return {
    path,
    meta: JSON.parse(await readFile(join(path, CAPTURE_FILES.meta), 'utf8')),
    requestBytes: await sizeOf(CAPTURE_FILES.request),
    responseBytes: await sizeOf(CAPTURE_FILES.response),
  };
}

/** Makes the folder of one capture after the other; returns the path of an empty folder that is no other capture's. */
export function createFolderMaker(dir: string): (requestId: string, at: Date) => Promise<string> {
  // Without it the thousandth request of one id would try a thousand names.
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
        await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        await mkdir(path, { mode: 0o700 }); // decides between two captures of one id
        if (repeat > 1) remember(wanted, repeat);
        return path;
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        // The sweeper may remove the empty day between the two.
        if (code === 'ENOENT' && missing < MAKE_ATTEMPTS) missing += 1;
        else if (code === 'EEXIST') repeat += 1;
        else throw error;
      }
    }
  };
}

export async function createBodies(path: string): Promise<void> {
  for (const body of BODIES)
    await writeFile(join(path, CAPTURE_FILES[body]), '', { flag: 'wx', mode: 0o600 });
}

export function appendBody(path: string, body: Body, bytes: Buffer): Promise<void> {
  return appendFile(join(path, CAPTURE_FILES[body]), bytes, { flag: APPEND });
}

/** The capture is complete when this is done: until then no meta.json is there. */
export async function writeMeta(path: string, meta: string): Promise<void> {
  const unfinished = join(path, CAPTURE_FILES.unfinishedMeta);
  await writeFile(unfinished, meta, { mode: 0o600 });
  await rename(unfinished, join(path, CAPTURE_FILES.meta));
}

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
