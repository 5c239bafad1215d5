/**
 * Records of weights files, kept beside each file as `<file>.json`: its checksum (SHA-256), its origin, and the size,
 * time and inode that it had when it was hashed. While these three stay the same, gigabytes need not be hashed again.
 * A file that is missing, incomplete or corrupted is found here.
 */
import { readFileSync, type Stats, statSync } from 'node:fs';
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { hashFile, syncFile, syncFolder } from './disk.ts';
import type { ReportProgress } from './source.ts';
import type { Weights } from './weights.ts';

const recordSchema = z.object({
  sha256: z.string(),
  bytes: z.int().nonnegative(),
  /** A `found` file was put here by someone, so only the catalogue's pins count. The others this program wrote. */
  origin: z.preprocess(
    // Folders that an earlier version filled have this spelling.
    (origin) => (origin === 'quantised' ? 'quantized' : origin),
    z.enum(['hub', 'import', 'quantized', 'found']),
  ),
  mtimeMs: z.number(),
  inode: z.number(),
});
type FileRecord = z.infer<typeof recordSchema>;
export type Origin = FileRecord['origin'];

type Verdict =
  | { state: 'absent' }
  | { state: 'good'; path: string }
  | { state: 'mismatch'; path: string; explanation: string };

interface Pin {
  bytes: number | null;
  sha256: string | null;
}

export interface Records {
  /**
   * Checks a file against its pins and its record. The file is hashed only if it has changed since the last time, or if
   * it is to be hashed `anew`: a disk may lose bits without a change of the time.
   */
  verify(
    model: Weights,
    file: string,
    signal: AbortSignal,
    report: ReportProgress,
    options?: { anew: boolean },
  ): Promise<Verdict>;
  /**
   * Records a file that this program has just written and hashed.
   * @param at its path until a rename, which keeps size, time and inode
   * @throws Error when the record is not on the disk
   */
  write(file: string, sha256: string, origin: Origin, at?: string): Promise<void>;
  /** Removes the record of a file that is removed. */
  forget(file: string): Promise<void>;
  /**
   * The size in bytes, by a check of presence and size; null if the file is missing or has another size. It is what was
   * seen last, so that a question costs no call of the system; `refresh` sees what others have changed meanwhile.
   */
  sizeOf(model: Weights, file: string): number | null;
  /** Forgets the size of a file that has changed. */
  invalidate(file: string): void;
  /** Reads all sizes again, unless that was done in the last second. */
  refresh(): Promise<void>;
}

/** The time for which a size counts as true, ms. */
const FRESH_MS = 1000;

export function createRecords(dir: string): Records {
  const recordFiles = createRecordFiles(dir);
  const sizes = createSizeCache(dir, recordFiles);

  async function save(file: string, record: FileRecord): Promise<void> {
    sizes.invalidate(file);
    await recordFiles.save(file, record);
  }

  return {
    async verify(model, file, signal, report, { anew } = { anew: false }) {
      const path = join(dir, file);
      const info = await stat(path).catch(() => null);
      if (sizes.last(file) !== info?.size) sizes.invalidate(file);
      if (!info) return { state: 'absent' };
      const record = await recordFiles.read(file);
      const pins = pinsOf(model, file);
      if (record && record.origin !== 'found') pins.push(record);
      if (!pins.some((pin) => pin.sha256 !== null && pin.bytes === info.size)) {
        return { state: 'mismatch', path, explanation: `found ${info.size} bytes, ${expectation(pins)}` };
      }
      const unchanged =
        !anew && record?.bytes === info.size && record.mtimeMs === info.mtimeMs && record.inode === info.ino;
      const sha256 = unchanged
        ? record.sha256
        : await hashFile(path, signal, (doneBytes) =>
            report({ phase: 'verifying', what: file, doneBytes, totalBytes: info.size }),
          );
      if (!pins.some((pin) => pin.sha256 === sha256 && pin.bytes === info.size)) {
        return { state: 'mismatch', path, explanation: `found sha256 ${sha256}, ${expectation(pins)}` };
      }
      if (!unchanged) {
        const origin = record?.sha256 === sha256 ? record.origin : 'found';
        await save(file, recordOf(info, sha256, origin)).catch(() => {}); // a read-only folder: the record is kept in memory
      }
      return { state: 'good', path };
    },
    async write(file, sha256, origin, at = join(dir, file)) {
      await save(file, recordOf(await stat(at), sha256, origin));
    },
    async forget(file) {
      sizes.invalidate(file);
      await recordFiles.remove(file);
    },
    sizeOf: sizes.sizeOf,
    invalidate: sizes.invalidate,
    refresh: sizes.refresh,
  };
}

function recordOf({ size: bytes, mtimeMs, ino: inode }: Stats, sha256: string, origin: Origin): FileRecord {
  return { sha256, bytes, origin, mtimeMs, inode };
}

type RecordFiles = ReturnType<typeof createRecordFiles>;

/** The records on the disk. The folder may be read-only: they are then in memory, for one run of the process. */
function createRecordFiles(dir: string) {
  const known = new Map<string, FileRecord>();
  const recordPath = (file: string) => join(dir, `${file}.json`);
  return {
    async read(file: string): Promise<FileRecord | null> {
      const text = await readFile(recordPath(file), 'utf8').catch(() => null);
      return (text === null ? null : parseRecord(text)) ?? known.get(file) ?? null;
    },
    /** As `read`, for a caller that cannot wait. */
    readSync: (file: string) => known.get(file) ?? readRecordSync(recordPath(file)),
    async save(file: string, record: FileRecord): Promise<void> {
      known.set(file, record);
      const aside = `${recordPath(file)}.${process.pid}`;
      try {
        await writeFile(aside, `${JSON.stringify(record, null, 2)}\n`);
        await syncFile(aside);
        await rename(aside, recordPath(file));
        await syncFolder(dir);
      } catch (error) {
        await rm(aside, { force: true }).catch(() => {});
        throw new Error(`the record of ${file} cannot be written: ${(error as Error).message}`);
      }
    },
    async remove(file: string): Promise<void> {
      known.delete(file);
      await rm(recordPath(file), { force: true });
    },
  };
}

/** The sizes of the files that were asked for, null for one that is missing or wrong. */
function createSizeCache(dir: string, recordFiles: RecordFiles) {
  const cached = new Map<string, { model: Weights; bytes: number | null }>();
  let refreshedAt = performance.now();
  let refreshing: Promise<void> | null = null;

  const isPinned = (model: Weights, file: string, size: number) =>
    pinsOf(model, file).some((pin) => pin.bytes === size);

  function sizeNow(model: Weights, file: string): number | null {
    const size = fileSizeSync(join(dir, file));
    if (size === null || isPinned(model, file, size)) return size;
    return recordFiles.readSync(file)?.bytes === size ? size : null;
  }

  async function checkedSize(model: Weights, file: string): Promise<number | null> {
    const size = await stat(join(dir, file)).then(
      (info) => info.size,
      () => null,
    );
    if (size === null || isPinned(model, file, size)) return size;
    return (await recordFiles.read(file))?.bytes === size ? size : null;
  }

  async function refreshAll(): Promise<void> {
    await Promise.all(
      [...cached].map(async ([file, before]) => {
        const bytes = await checkedSize(before.model, file);
        if (cached.get(file) === before) cached.set(file, { ...before, bytes }); // else it was changed meanwhile
      }),
    );
    refreshedAt = performance.now();
    refreshing = null;
  }

  async function refresh(): Promise<void> {
    if (performance.now() - refreshedAt > FRESH_MS) refreshing ??= refreshAll();
    await refreshing;
  }

  function sizeOf(model: Weights, file: string): number | null {
    const last = cached.get(file) ?? { model, bytes: sizeNow(model, file) };
    cached.set(file, last);
    void refresh();
    return last.bytes;
  }

  const last = (file: string) => cached.get(file)?.bytes;
  const invalidate = (file: string) => void cached.delete(file);
  return { sizeOf, last, invalidate, refresh };
}

function pinsOf(model: Weights, file: string): Pin[] {
  return [...Object.values(model.files), ...model.derived].filter((pin) => pin.file === file);
}

function expectation(pins: readonly Pin[]): string {
  const values = pins.flatMap(({ bytes, sha256 }) =>
    sha256 ? [`${bytes} bytes with sha256 ${sha256}`] : [],
  );
  if (values.length === 0) return 'and nothing is published to verify it with';
  return `expected ${[...new Set(values)].join(' or ')}`; // a record repeats the pin of its file
}

function parseRecord(text: string): FileRecord | null {
  try {
    return recordSchema.parse(JSON.parse(text));
  } catch {
    return null; // a crash may have cut the record, and the file is hashed again
  }
}

/** Null for a file that is not there, and for one in a folder that this user may not enter. */
function fileSizeSync(path: string): number | null {
  try {
    return statSync(path).size;
  } catch {
    return null;
  }
}

function readRecordSync(path: string): FileRecord | null {
  try {
    return parseRecord(readFileSync(path, 'utf8'));
  } catch {
    return null;
  }
}
