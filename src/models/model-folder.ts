/**
 * Changes to the folder that holds the weights: by one process at a time for each model, in a scratch folder first,
 * and under a file's final name only when the whole file is on the disk. A process that dies leaves no half file.
 */
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hashFile, syncFolder } from './disk.ts';
import { acquireLock, type LockTimes } from './lock.ts';
import type { Origin, Records } from './records.ts';
import type { ReportProgress } from './source.ts';
import { localFile, type Weights } from './weights.ts';

export interface ModelFolderOptions {
  dir: string;
  records: Pick<Records, 'write'>;
  /** Null without the native addon: then an f16 file is left as it is. */
  quantize: ((job: { source: string; target: string; type: 'q8_0' }) => Promise<void>) | null;
  log: { info(message: string): void };
  lockTimes?: LockTimes | undefined;
}

/** What a piece of work on the files of one model is given. */
export interface FileWork {
  /** On the same disk as the models; emptied before the work and removed after it. */
  scratch: string;
  signal: AbortSignal;
  report: ReportProgress;
}

export interface ModelFolder {
  readonly dir: string;
  /** Whether a q8_0 file can be made here from the f16 file of this model. */
  canQuantize(model: Weights): boolean;
  /** Runs `work` while no other process, and nothing else in this one, changes the files of this model. */
  exclusively<Result>(
    id: string,
    context: Omit<FileWork, 'scratch'>,
    work: (context: FileWork) => Promise<Result>,
  ): Promise<Result>;
  /** Moves a finished file out of the scratch folder and records its hash; returns its path. */
  settle(file: string, sha256: string, origin: Origin, scratch: string): Promise<string>;
  /** Makes the q8_0 file of a model from its f16 file; returns the path of the new one. */
  quantize(model: Weights, source: string, work: FileWork): Promise<string>;
}

export function createModelFolder(options: ModelFolderOptions): ModelFolder {
  const { dir, records, log } = options;

  const folder: ModelFolder = {
    dir,

    canQuantize: (model) =>
      options.quantize !== null && model.quantizable === true && localFile(model, 'q8_0') !== undefined,

    async exclusively(id, { signal, report }, work) {
      await mkdir(dir, { recursive: true });
      const scratch = join(dir, `.${id}.tmp`);
      const onWait = () =>
        report({ phase: 'waiting', what: 'another process has this model', doneBytes: 0, totalBytes: null });
      const lock = await acquireLock(join(dir, `.${id}.lock`), signal, onWait, options.lockTimes);
      try {
        await rm(scratch, { recursive: true, force: true }); // left by a process that died
        await mkdir(scratch);
        return await work({ scratch, signal, report });
      } finally {
        await rm(scratch, { recursive: true, force: true });
        await lock.release();
      }
    },

    async settle(file, sha256, origin, scratch) {
      await syncFile(join(scratch, file));
      await rename(join(scratch, file), join(dir, file));
      await syncFolder(dir);
      await records.write(file, sha256, origin);
      return join(dir, file);
    },

    async quantize(model, source, { scratch, signal, report }) {
      const file = localFile(model, 'q8_0');
      if (file === undefined || !options.quantize) return source;
      report({ phase: 'quantizing', what: file, doneBytes: 0, totalBytes: null });
      const target = join(scratch, file);
      await options.quantize({ source, target, type: 'q8_0' });
      signal.throwIfAborted();
      const sha256 = await hashFile(target, signal);
      const path = await folder.settle(file, sha256, 'quantized', scratch);
      log.info(`Quantized ${source} to ${file}, sha256 ${sha256}.`);
      return path;
    },
  };
  return folder;
}

async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r+');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
