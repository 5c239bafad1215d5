/**
 * The store of the weights on disk. It lists the installed models and gives a verified path for each model. A file is
 * trusted only after its hash was compared with a pinned or recorded one. A missing file is made only once, however
 * many callers wait for it.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { excerpt, fullMessage, GatewayError } from '../errors.ts';
import { createActivity, type ProgressListener } from './activity.ts';
import { ALL_WEIGHTS } from './catalogue.ts';
import { partOf } from './download.ts';
import { publishedFile } from './hub.ts';
import { importFolder } from './import/import-folder.ts';
import { createModelFolder, type FileWork, type ModelFolderOptions } from './model-folder.ts';
import { createRecords } from './records.ts';
import { createSharedJobs } from './shared-job.ts';
import type { ModelProgress, ModelSource, ReportProgress } from './source.ts';
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
  lockTimes?: ModelFolderOptions['lockTimes'];
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
  look(): Promise<void>;
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

export function createModelStore(options: ModelStoreOptions): ModelStore {
  const { dir, precision, log, catalogue = ALL_WEIGHTS, quantize, lockTimes } = options;
  const records = createRecords(dir);
  const jobs = createSharedJobs<string, string>();
  const activity = createActivity(log);
  const folder = createModelFolder({ dir, records, quantize, log, lockTimes });
  /** The models that could not be quantized, as in a folder that is read-only or full: another try would cost as much. */
  const keptLarger = new Set<string>();

  function find(id: string): Weights {
    const model = catalogue.find((entry) => entry.id === id);
    if (model) return model;
    throw new GatewayError('unknown_model', {
      model: excerpt(id),
      nearest: catalogue.map((entry) => entry.id).join(', '),
    });
  }

  function storedFiles(model: Weights): StoredModel['files'] {
    return fileNames(model).flatMap((entry) => {
      const bytes = records.glance(model, entry.file);
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

  /** A verified path, or the f16 file that the wanted file can be made from, or null when nothing is on disk. */
  async function onDisk(
    model: Weights,
    precision: Precision,
    signal: AbortSignal,
    report: ReportProgress,
  ): Promise<{ path: string } | { quantizeFrom: string } | null> {
    const other = precision === 'q8_0' ? 'f16' : 'q8_0';
    const mayQuantize = folder.canQuantize(model) && !keptLarger.has(model.id);
    const complaints: string[] = [];
    for (const kind of [precision, other] as const) {
      const file = localFile(model, kind);
      if (file === undefined) continue;
      const verdict = await records.verify(model, file, signal, report);
      if (verdict.state === 'mismatch') complaints.push(`${verdict.path}: ${verdict.explanation}`);
      if (verdict.state !== 'good') continue;
      if (kind !== precision && kind === 'f16' && mayQuantize && complaints.length === 0)
        return { quantizeFrom: verdict.path };
      for (const complaint of complaints) log.warn(`Not used: ${complaint}`);
      return { path: verdict.path };
    }
    if (complaints.length === 0) return null;
    throw new GatewayError(
      'model_not_installed',
      { model: model.id, why: 'the file on disk failed its verification' },
      {
        provider: model.provider,
        cause: new Error(
          `${complaints.join('; ')}. Nothing was changed: run voxgate models rm ${model.id}, then voxgate models pull ${model.id}.`,
        ),
      },
    );
  }

  async function fetchFrom(model: Weights, precision: Precision, work: FileWork): Promise<void> {
    const failures: string[] = [];
    for (const source of options.sources.filter((candidate) => candidate.offers(model))) {
      log.info(`Fetching ${model.id} from ${source.name}.`);
      try {
        const { file, sha256 } = await source.fetch({ model, precision, dir, ...work });
        await records.write(file, sha256, 'hub').catch((error: Error) => log.warn(error.message));
        log.info(`Fetched ${file} from ${source.name}, sha256 ${sha256}.`);
        return;
      } catch (error) {
        work.signal.throwIfAborted();
        failures.push(`${source.name}: ${fullMessage(error)}`);
        log.warn(`Could not fetch ${model.id} from ${source.name}: ${fullMessage(error)}`);
      }
    }
    const file = publishedFile(model, precision)?.file ?? localFile(model, 'f16');
    const why = failures.join('; ') || 'no source has them';
    throw new GatewayError(
      'download_failed',
      { model: model.id },
      {
        provider: model.provider,
        cause: new Error(`${why}. Check the network and HF_ENDPOINT, or put ${file} into ${dir}.`),
      },
    );
  }

  async function provide(
    model: Weights,
    precision: Precision,
    mayFetch: boolean,
    signal: AbortSignal,
    report: ReportProgress,
  ): Promise<string> {
    let larger: string | null = null;
    try {
      const found = await onDisk(model, precision, signal, report);
      if (found && 'path' in found) return found.path;
      larger = found?.quantizeFrom ?? null;
      if (!found && !mayFetch) {
        throw new GatewayError(
          'model_not_installed',
          { model: model.id, why: 'SVC_MODEL_DOWNLOAD is off' },
          {
            provider: model.provider,
            cause: new Error(`They are not in ${dir}. Run 'voxgate models pull ${model.id}'.`),
          },
        );
      }
      return await folder.exclusively(model.id, { signal, report }, async (work) => {
        let found = await onDisk(model, precision, signal, report);
        if (!found) {
          await fetchFrom(model, precision, work);
          found = await onDisk(model, precision, signal, report);
        }
        if (!found) throw new Error(`the source of ${model.id} left no file in ${dir}`);
        if ('path' in found) return found.path;
        larger = found.quantizeFrom;
        return folder.quantize(model, larger, work);
      });
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof GatewayError) throw error;
      if (larger !== null) {
        keptLarger.add(model.id);
        log.warn(`${model.id} serves without being quantized: ${(error as Error).message}`);
        return larger;
      }
      throw new GatewayError(
        'download_failed',
        { model: model.id },
        { provider: model.provider, cause: error },
      );
    }
  }

  function wait(id: string, mayFetch: boolean, waiting: EnsureOptions): Promise<{ path: string }> {
    return activity.listen(id, waiting.onProgress, async () => {
      const model = find(id);
      const wanted = waiting.precision ?? precision;
      const key = `${id} ${wanted} ${mayFetch ? 'fetched' : 'as it is'}`;
      const run = (signal: AbortSignal) =>
        activity.track(id, (report) => provide(model, wanted, mayFetch, signal, report));
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
    look: records.look,
    ensure: (id, waiting = {}) => wait(id, options.download, waiting),
    pull: (id, waiting = {}) => wait(id, true, waiting),
    import: (source, { id, ...waiting } = {}) =>
      importFolder(source, id, precision === 'q8_0', {
        folder,
        log,
        find,
        installedFile: (model) => storedFiles(model)[0]?.file,
        work: (id, work) => alone(id, waiting, work),
      }),
    verify: (id, { onProgress, signal = new AbortController().signal } = {}) =>
      activity.listen(id, onProgress, () =>
        activity.track(id, async (report) => {
          const model = find(id);
          const verified: VerifiedFile[] = [];
          for (const { file } of fileNames(model)) {
            const verdict = await records.verify(model, file, signal, report, { anew: true });
            if (verdict.state === 'absent') continue;
            const problem = verdict.state === 'mismatch' ? verdict.explanation : null;
            verified.push({ file, path: verdict.path, problem });
          }
          return verified;
        }),
      ),
    async remove(id, waiting = {}) {
      const names = fileNames(find(id)).flatMap(({ file }) => [file, ...Object.values(partOf(file))]);
      if (!names.some((file) => existsSync(join(dir, file)))) return [];
      return await alone(id, waiting, async () => {
        const removed: { file: string; bytes: number }[] = [];
        for (const file of names) {
          const bytes = await folder.remove(file);
          if (bytes !== null) removed.push({ file, bytes });
        }
        return removed;
      });
    },
    activity: activity.current,
  };
}
