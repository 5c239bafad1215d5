/**
 * Records of weights files, kept beside each file as `<file>.json`: its checksum (SHA-256), its origin, and the size,
 * time and inode that it had when it was hashed. While these three stay the same, gigabytes need not be hashed again.
 * A file that is missing, incomplete or corrupted is found here.
 */
import { readFileSync, type Stats, statSync } from 'node:fs';
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { parsedJson } from '../parsed-json.ts';
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

/** The time for which a size counts as true, ms. */
const FRESH_MS = 1000;

export class Records {
  readonly #dir: string;
  /** Those that were written or checked. In a folder that is read-only they hold for one run of the process. */
  readonly #known = new Map<string, FileRecord>();
  /** The sizes of the files that were asked for, null for one that is missing or wrong. */
  readonly #sizes = new Map<string, { model: Weights; bytes: number | null }>();
  #refreshedAt = performance.now();
  #refreshing: Promise<void> | null = null;

  constructor(dir: string) {
    this.#dir = dir;
  }

  /**
   * Checks a file against its pins and its record. The file is hashed only if it has changed since the last time, or if
   * it is to be hashed `anew`: a disk may lose bits without a change of the time.
   */
  async verify(
    model: Weights,
    file: string,
    signal: AbortSignal,
    report: ReportProgress,
    { anew } = { anew: false },
  ): Promise<Verdict> {
    const path = join(this.#dir, file);
    const info = await stat(path).catch(() => null);
    if (this.#sizes.get(file)?.bytes !== info?.size) this.invalidate(file);
    if (!info) return { state: 'absent' };
    const record = await this.#read(file);
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
      await this.#save(file, recordOf(info, sha256, origin)).catch(() => {}); // a read-only folder: the record is kept in memory
    }
    return { state: 'good', path };
  }

  /**
   * Records a file that this program has just written and hashed.
   * @param at its path until a rename, which keeps size, time and inode
   * @throws Error when the record is not on the disk
   */
  async write(file: string, sha256: string, origin: Origin, at = join(this.#dir, file)): Promise<void> {
    await this.#save(file, recordOf(await stat(at), sha256, origin));
  }

  /** Removes the record of a file that is removed. */
  async forget(file: string): Promise<void> {
    this.invalidate(file);
    this.#known.delete(file);
    await rm(this.#pathOf(file), { force: true });
  }

  /**
   * The size in bytes, by a check of presence and size; null if the file is missing or has another size. It is what was
   * seen last, so that a question costs no call of the system; `refresh` sees what others have changed meanwhile.
   */
  sizeOf(model: Weights, file: string): number | null {
    const last = this.#sizes.get(file) ?? { model, bytes: this.#sizeNow(model, file) };
    this.#sizes.set(file, last);
    void this.refresh();
    return last.bytes;
  }

  /** Forgets the size of a file that has changed. */
  invalidate(file: string): void {
    this.#sizes.delete(file);
  }

  /** Reads all sizes again, unless that was done in the last second. */
  async refresh(): Promise<void> {
    if (performance.now() - this.#refreshedAt > FRESH_MS) this.#refreshing ??= this.#refreshAll();
    await this.#refreshing;
  }

  async #refreshAll(): Promise<void> {
    await Promise.all(
      [...this.#sizes].map(async ([file, before]) => {
        const size = await stat(join(this.#dir, file)).then(
          (info) => info.size,
          () => null,
        );
        const isRight = size === null || hasPin(before.model, file, size);
        const bytes = isRight || (await this.#read(file))?.bytes === size ? size : null;
        if (this.#sizes.get(file) === before) this.#sizes.set(file, { ...before, bytes }); // else it was changed meanwhile
      }),
    );
    this.#refreshedAt = performance.now();
    this.#refreshing = null;
  }

  /** As `#refreshAll`, for a caller that cannot wait. */
  #sizeNow(model: Weights, file: string): number | null {
    try {
      const { size } = statSync(join(this.#dir, file));
      if (hasPin(model, file, size)) return size;
      const record = this.#known.get(file) ?? parseRecord(readFileSync(this.#pathOf(file), 'utf8'));
      return record?.bytes === size ? size : null;
    } catch {
      return null; // a file or record is not there, or the folder is one that this user may not enter
    }
  }

  #pathOf(file: string): string {
    return join(this.#dir, `${file}.json`);
  }

  async #read(file: string): Promise<FileRecord | null> {
    const text = await readFile(this.#pathOf(file), 'utf8').catch(() => null);
    return (text === null ? null : parseRecord(text)) ?? this.#known.get(file) ?? null;
  }

  async #save(file: string, record: FileRecord): Promise<void> {
    this.invalidate(file);
    this.#known.set(file, record);
    const path = this.#pathOf(file);
    const aside = `${path}.${process.pid}`;
    try {
      await writeFile(aside, `${JSON.stringify(record, null, 2)}\n`);
      await syncFile(aside);
      await rename(aside, path);
      await syncFolder(this.#dir);
    } catch (error) {
      await rm(aside, { force: true }).catch(() => {});
      throw new Error(`the record of ${file} cannot be written: ${(error as Error).message}`);
    }
  }
}

function recordOf({ size: bytes, mtimeMs, ino: inode }: Stats, sha256: string, origin: Origin): FileRecord {
  return { sha256, bytes, origin, mtimeMs, inode };
}

function pinsOf(model: Weights, file: string): Pin[] {
  return [...Object.values(model.files), ...model.derived].filter((pin) => pin.file === file);
}

const hasPin = (model: Weights, file: string, size: number): boolean =>
  pinsOf(model, file).some((pin) => pin.bytes === size);

function expectation(pins: readonly Pin[]): string {
  const values = pins.flatMap(({ bytes, sha256 }) =>
    sha256 ? [`${bytes} bytes with sha256 ${sha256}`] : [],
  );
  if (values.length === 0) return 'and nothing is published to verify it with';
  return `expected ${[...new Set(values)].join(' or ')}`; // a record repeats the pin of its file
}

function parseRecord(text: string): FileRecord | null {
  const { data = null } = recordSchema.safeParse(parsedJson(text));
  return data; // a crash may have cut the record, and the file is hashed again
}
