/**
 * The store of the weights on disk. It lists the installed models and gives a verified path for each model. A file is
 * trusted only after its hash was compared with a pinned or recorded one. A missing file is made only once, however
 * many callers wait for it.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { excerpt, GatewayError } from '../errors.ts';
import { createActivity, type ProgressListener, SharedJobs } from './activity.ts';
import { ALL_WEIGHTS } from './catalogue.ts';
import { partOf } from './download.ts';
import { type FileWork, ModelFolder, type ModelFolderOptions } from './model-folder.ts';
import { provide } from './provision.ts';
import { Records } from './records.ts';
import type { ModelProgress, ModelSource } from './source.ts';
import { localFile, type Precision, type Weights } from './weights.ts';

export interface ModelStoreOptions {
  dir: string;
  /** True when `ensure` may download (SVC_MODEL_DOWNLOAD). `pull` is an explicit order and always may. */
  download: boolean;
  precision: Precision;
  /** The sources, which are tried in this order. */
  sources: readonly ModelSource[];
  quantize: ModelFolderOptions['quantize'];
  log: { info(message: string): void; warn(message: string): void };
  catalogue?: readonly Weights[];
}

export interface StoredModel {
  id: string;
  family: string;
  installed: boolean;
  bytes: number;
  files: { file: string; precision: Precision; bytes: number }[];
}

export interface WaitOptions {
  signal?: AbortSignal | undefined;
  onProgress?: ProgressListener | undefined;
}

export interface EnsureOptions extends WaitOptions {
  /** Used instead of the store's own. A file of the other precision serves where the wanted one cannot be made. */
  precision?: Precision | undefined;
}

interface ImportOptions extends WaitOptions {
  id?: string | undefined;
}

export interface VerifiedFile {
  file: string;
  path: string;
  /** What differs from the hash that was published or recorded; null for a file that is right. */
  problem: string | null;
}

export interface ModelStore {
  readonly dir: string;
  list(): StoredModel[];
  /** The files of a model that are on disk. */
  filesOf(id: string): StoredModel['files'];
  /** By name and size only, as the folder was last seen, which is cheap enough for every message of a client. */
  isInstalled(id: string): boolean;
  /** Sees what other processes have changed in the folder, unless that was done in the last second. */
  refresh(): Promise<void>;
  /**
   * The path of verified weights. Missing weights are downloaded, converted and quantized, once for all callers.
   * @throws GatewayError `unknown_model`, `model_not_installed` or `download_failed`; `signal.reason` after an abort
   */
  ensure(id: string, options?: EnsureOptions): Promise<{ path: string }>;
  /** As `ensure`, but downloads also when SVC_MODEL_DOWNLOAD is off. */
  pull(id: string, options?: WaitOptions): Promise<{ path: string }>;
  /** Imports the weights of a faster-whisper folder. @throws GatewayError `not_importable` */
  import(source: string, options?: ImportOptions): Promise<{ id: string; path: string }>;
  /** Reads all that is on disk of a model and compares the hashes. @throws GatewayError `unknown_model` */
  verify(id: string, options?: WaitOptions): Promise<VerifiedFile[]>;
  /** Removes all that is on disk of a model, while nobody changes it. @throws GatewayError `unknown_model` */
  remove(id: string, options?: WaitOptions): Promise<{ file: string; bytes: number }[]>;
  /** The jobs that run now. */
  activity(): ModelProgress[];
}

const PRECISIONS: readonly Precision[] = ['q8_0', 'f16'];

function fileNames(model: Weights): { file: string; precision: Precision }[] {
  return PRECISIONS.flatMap((precision) => {
    const file = localFile(model, precision);
    return file === undefined ? [] : [{ file, precision }];
  });
}

/** @throws GatewayError `unknown_model` */
function weightsIn(catalogue: readonly Weights[], id: string): Weights {
  const model = catalogue.find((entry) => entry.id === id);
  if (model) return model;
  const nearest = catalogue.map((entry) => entry.id).join(', ');
  throw new GatewayError('unknown_model', { model: excerpt(id), nearest });
}

export function createModelStore(options: ModelStoreOptions): ModelStore {
  const { dir, precision, log, catalogue = ALL_WEIGHTS, quantize } = options;
  const find = (id: string) => weightsIn(catalogue, id);
  const records = new Records(dir);
  const jobs = new SharedJobs<string>();
  const activity = createActivity(log);
  const folder = new ModelFolder({ dir, records, quantize, log });
  const provision = { dir, sources: options.sources, records, folder, log, keptLarger: new Set<string>() };

  function storedFiles(model: Weights): StoredModel['files'] {
    return fileNames(model).flatMap((entry) => {
      const bytes = records.sizeOf(model, entry.file);
      return bytes === null ? [] : [{ ...entry, bytes }];
    });
  }

  /** Runs `work` as an activity of the model while nothing else changes its files. */
  function alone<Result>(
    id: string,
    { onProgress, signal = new AbortController().signal }: WaitOptions,
    work: (work: FileWork) => Promise<Result>,
  ): Promise<Result> {
    return activity.listen(id, onProgress, () =>
      activity.track(id, (report) => folder.exclusively(id, { signal, report }, work)),
    );
  }

  function wait(id: string, mayFetch: boolean, waiting: EnsureOptions): Promise<{ path: string }> {
    return activity.listen(id, waiting.onProgress, async () => {
      const model = find(id);
      const wanted = waiting.precision ?? precision;
      const key = `${id} ${wanted} ${mayFetch ? 'fetched' : 'as it is'}`;
      const run = (signal: AbortSignal) =>
        activity.track(id, (report) =>
          provide(provision, { model, precision: wanted, mayFetch }, { signal, report }),
        );
      return { path: await jobs.join(key, run, waiting.signal) };
    });
  }

  return {
    dir,
    list: () =>
      catalogue.map((model) => {
        const files = storedFiles(model);
        const bytes = files.reduce((sum, entry) => sum + entry.bytes, 0);
        return { id: model.id, family: model.family, installed: files.length > 0, bytes, files };
      }),
    filesOf: (id) => catalogue.filter((model) => model.id === id).flatMap(storedFiles),
    isInstalled: (id) => catalogue.some((model) => model.id === id && storedFiles(model).length > 0),
    refresh: () => records.refresh(),
    ensure: (id, waiting = {}) => wait(id, options.download, waiting),
    pull: (id, waiting = {}) => wait(id, true, waiting),
    async import(source, { id, ...waiting } = {}) {
      const { importFolder } = await import('./import/import-folder.ts'); // loaded on demand, because imports are rare
      return await importFolder(source, id, precision === 'q8_0', {
        folder,
        log,
        find,
        installedFile: (model) => storedFiles(model)[0]?.file,
        work: (id, work) => alone(id, waiting, work),
      });
    },
    verify: (id, { onProgress, signal = new AbortController().signal } = {}) =>
      activity.listen(id, onProgress, () =>
        activity.track(id, async (report) => verifyFiles(records, find(id), { signal, report })),
      ),
    async remove(id, waiting = {}) {
      const names = fileNames(find(id)).flatMap(({ file }) => [file, ...Object.values(partOf(file))]);
      if (![folder.scratchOf(id), ...names.map((file) => join(dir, file))].some(existsSync)) return [];
      return await alone(id, waiting, () => removeFiles(folder, names));
    },
    activity: activity.current,
  };
}

/** Reads all files of a model and compares their hashes. */
async function verifyFiles(
  records: Records,
  model: Weights,
  { signal, report }: Omit<FileWork, 'scratch'>,
): Promise<VerifiedFile[]> {
  const verified: VerifiedFile[] = [];
  for (const { file } of fileNames(model)) {
    const verdict = await records.verify(model, file, signal, report, { anew: true });
    if (verdict.state === 'absent') continue;
    const problem = verdict.state === 'mismatch' ? verdict.explanation : null;
    verified.push({ file, path: verdict.path, problem });
  }
  return verified;
}

async function removeFiles(
  folder: ModelFolder,
  names: readonly string[],
): Promise<{ file: string; bytes: number }[]> {
  const removed: { file: string; bytes: number }[] = [];
  for (const file of names) {
    const bytes = await folder.remove(file);
    if (bytes !== null) removed.push({ file, bytes });
  }
  return removed;
}
