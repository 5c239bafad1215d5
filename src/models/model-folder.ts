/**
 * Changes to the folder of the weights. Only one process at a time changes the files of a model. It works in a scratch
 * folder, and a file gets its final name only when all of it is on the disk, so a process that dies leaves no partial
 * file.
 */
import { mkdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../make-folder.ts';
import { hashFile, syncFile, syncFolder } from './disk.ts';
import { acquireLock } from './lock.ts';
import type { Origin, Records } from './records.ts';
import type { ReportProgress } from './source.ts';
import { localFile, type Weights } from './weights.ts';

export interface ModelFolderOptions {
  dir: string;
  records: Pick<Records, 'write' | 'forget' | 'invalidate'>;
  /** Null when the native addon is missing; an f16 file then stays as it is. */
  quantize: ((job: { source: string; target: string; type: 'q8_0' }) => Promise<void>) | null;
  log: { info(message: string): void; warn(message: string): void };
}

/** What a job on the files of a model receives. */
export interface FileWork {
  /** A folder on the same disk as the models. It is empty at the start, and removed after the job. */
  scratch: string;
  signal: AbortSignal;
  report: ReportProgress;
}

export class ModelFolder {
  readonly dir: string;
  readonly #options: ModelFolderOptions;

  constructor(options: ModelFolderOptions) {
    this.dir = options.dir;
    this.#options = options;
  }

  /** The scratch folder of the work on a model. A process that was killed leaves it behind. */
  scratchOf(id: string): string {
    return join(this.dir, `.${id}.tmp`);
  }

  /** True when the q8_0 file of this model can be made from its f16 file. */
  canQuantize(model: Weights): boolean {
    return this.#options.quantize !== null && model.quantizable === true;
  }

  /** Runs `work` while nothing else, in this process or another, changes the files of this model. */
  async exclusively<Result>(
    id: string,
    { signal, report }: Omit<FileWork, 'scratch'>,
    work: (context: FileWork) => Promise<Result>,
  ): Promise<Result> {
    makeFolder(this.dir);
    const scratch = this.scratchOf(id);
    const what = 'another process works on this model';
    const onWait = () => report({ phase: 'waiting', what, doneBytes: 0, totalBytes: null });
    const lock = await acquireLock(join(this.dir, `.${id}.lock`), signal, onWait);
    try {
      await rm(scratch, { recursive: true, force: true }); // a process that died may have left it
      await mkdir(scratch);
      return await work({ scratch, signal, report });
    } finally {
      // What stays is swept by the next work on this model, and must not hide how this one has ended.
      const stays = (error: Error) => this.#options.log.warn(`Left behind by ${id}: ${error.message}`);
      await rm(scratch, { recursive: true, force: true }).catch(stays);
      await lock.release().catch(stays);
    }
  }

  /** Records the hash of a finished file, moves it out of the scratch folder and returns its path. */
  async settle(file: string, sha256: string, origin: Origin, scratch: string): Promise<string> {
    const { records } = this.#options;
    const made = join(scratch, file);
    await syncFile(made);
    // The catalogue need not know these bytes. Without a record nothing would vouch for them, and they would stay unused.
    await records.write(file, sha256, origin, made);
    await rename(made, join(this.dir, file));
    records.invalidate(file);
    await syncFolder(this.dir);
    return join(this.dir, file);
  }

  /** Removes a file and its record. Returns its size in bytes; null when there was none. */
  async remove(file: string): Promise<number | null> {
    const path = join(this.dir, file);
    const found = await stat(path).catch(() => null);
    if (found === null) return null;
    await rm(path);
    await this.#options.records.forget(file);
    this.#options.log.info(`Removed ${file}.`);
    return found.size;
  }

  /** Makes the q8_0 file of a model from its f16 file and returns the path of the new file. */
  async quantize(model: Weights, source: string, { scratch, signal, report }: FileWork): Promise<string> {
    const { quantize, log } = this.#options;
    const file = localFile(model, 'q8_0');
    if (file === undefined || quantize === null) return source;
    report({ phase: 'quantizing', what: file, doneBytes: 0, totalBytes: null });
    const target = join(scratch, file);
    await quantize({ source, target, type: 'q8_0' });
    signal.throwIfAborted();
    const sha256 = await hashFile(target, signal);
    const path = await this.settle(file, sha256, 'quantized', scratch);
    log.info(`Quantized ${source} to ${file}, sha256 ${sha256}.`);
    return path;
  }
}
