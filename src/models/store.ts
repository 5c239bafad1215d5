import { mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { excerpt, fullMessage, GatewayError } from '../errors.ts';
import { ALL_WEIGHTS, localFile, type Precision, type Weights } from './catalogue.ts';
import { hashFile, requireSpace, syncFolder } from './disk.ts';
import { publishedFile } from './hub.ts';
import { notImportable } from './import/failure.ts';
import { identifyWhisper, openFasterWhisper } from './import/faster-whisper.ts';
import { writeWhisper } from './import/whisper-ggml.ts';
import { acquireLock, type LockTimes } from './lock.ts';
import { createProgressLog } from './progress-log.ts';
import { createRecords } from './records.ts';
import { createSharedJobs } from './shared-job.ts';
import type { ModelProgress, ModelSource, ReportProgress } from './source.ts';

export interface ModelStoreOptions {
  dir: string;
  /** SVC_MODEL_DOWNLOAD: whether `ensure` may fetch. `pull` is an order and always may. */
  download: boolean;
  precision: Precision;
  /** Tried in this order. */
  sources: readonly ModelSource[];
  /** Null without the native addon: then an f16 file is left as it is. */
  quantize: ((job: { source: string; target: string; type: 'q8_0' }) => Promise<void>) | null;
  log: { info(message: string): void; warn(message: string): void };
  catalogue?: readonly Weights[];
  lockTimes?: LockTimes;
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
  onProgress?: ((progress: ModelProgress) => void) | undefined;
}

export interface EnsureOptions extends WaitOptions {
  /** Wanted in place of the store's own; what is on disk in the other one serves where it cannot be made of it. */
  precision?: Precision | undefined;
}

interface ImportOptions extends WaitOptions {
  id?: string | undefined;
}

export interface ModelStore {
  readonly dir: string;
  list(): StoredModel[];
  /** By name and size only: cheap enough for every GET /v1/models. */
  isInstalled(id: string): boolean;
  /** The path of verified weights; fetches, converts and quantises what is missing, once however many ask. */
  ensure(id: string, options?: EnsureOptions): Promise<{ path: string }>;
  pull(id: string, options?: WaitOptions): Promise<{ path: string }>;
  /** Takes the weights of a faster-whisper folder. */
  import(source: string, options?: ImportOptions): Promise<{ id: string; path: string }>;
  /** What is being worked on now. */
  activity(): ModelProgress[];
}

const PRECISIONS: readonly Precision[] = ['q8_0', 'f16'];

export function createModelStore(options: ModelStoreOptions): ModelStore {
  const { dir, precision, log, catalogue = ALL_WEIGHTS } = options;
  const records = createRecords(dir);
  const jobs = createSharedJobs<string, string>();
  const current = new Map<string, ModelProgress>();
  const listeners = new Map<string, Set<(progress: ModelProgress) => void>>();

  function find(id: string): Weights {
    const model = catalogue.find((entry) => entry.id === id);
    if (model) return model;
    throw new GatewayError('unknown_model', {
      model: excerpt(id),
      nearest: catalogue.map((entry) => entry.id).join(', '),
    });
  }

  function reporter(id: string): ReportProgress {
    const tellLog = createProgressLog(log);
    return (progress) => {
      const event = { id, ...progress };
      current.set(id, event);
      tellLog(progress);
      for (const listener of listeners.get(id) ?? []) listener(event);
    };
  }

  function storedFiles(model: Weights): StoredModel['files'] {
    const names = PRECISIONS.flatMap((kind) => {
      const file = localFile(model, kind);
      return file === undefined ? [] : [{ file, precision: kind }];
    });
    return names.flatMap((entry) => {
      const bytes = records.glance(model, entry.file);
      return bytes === null ? [] : [{ ...entry, bytes }];
    });
  }

  /** A verified path, the f16 file the wanted one can be made from, or null for nothing at all. */
  async function onDisk(
    model: Weights,
    precision: Precision,
    signal: AbortSignal,
    report: ReportProgress,
  ): Promise<{ path: string } | { quantise: string } | null> {
    const other = precision === 'q8_0' ? 'f16' : 'q8_0';
    const complaints: string[] = [];
    for (const kind of [precision, other] as const) {
      const file = localFile(model, kind);
      if (file === undefined) continue;
      const verdict = await records.verify(model, file, signal, report);
      if (verdict.state === 'mismatch') complaints.push(`${verdict.path}: ${verdict.explanation}`);
      if (verdict.state !== 'good') continue;
      const makeable = kind === 'f16' && precision === 'q8_0' && localFile(model, 'q8_0') !== undefined;
      if (makeable && model.quantizable && options.quantize && complaints.length === 0) {
        return { quantise: verdict.path };
      }
      for (const complaint of complaints) log.warn(`Not used: ${complaint}`);
      return { path: verdict.path };
    }
    if (complaints.length === 0) return null;
    throw new GatewayError(
      'model_not_installed',
      { model: model.id, why: 'what is there is not what it should be' },
      {
        provider: model.provider,
        cause: new Error(
          `${complaints.join('; ')}. Nothing was changed: move the file away to have it fetched again.`,
        ),
      },
    );
  }

  async function fetchFrom(
    model: Weights,
    precision: Precision,
    scratch: string,
    signal: AbortSignal,
    report: ReportProgress,
  ): Promise<void> {
    const failures: string[] = [];
    for (const source of options.sources.filter((candidate) => candidate.offers(model))) {
      log.info(`Fetching ${model.id} from ${source.name}.`);
      try {
        const { file, sha256 } = await source.fetch({ model, precision, dir, scratch, signal, report });
        await records.write(file, sha256, 'hub');
        log.info(`Fetched ${file} from ${source.name}, sha256 ${sha256}.`);
        return;
      } catch (error) {
        signal.throwIfAborted();
        failures.push(`${source.name}: ${fullMessage(error)}`);
        log.warn(`Could not fetch ${model.id} from ${source.name}: ${fullMessage(error)}`);
      }
    }
    const file = publishedFile(model, precision)?.file;
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

  async function quantise(
    model: Weights,
    source: string,
    scratch: string,
    signal: AbortSignal,
    report: ReportProgress,
  ): Promise<string> {
    const file = localFile(model, 'q8_0');
    if (file === undefined || !options.quantize) return source;
    report({ phase: 'quantising', what: file, doneBytes: 0, totalBytes: null });
    const aside = join(scratch, file);
    await options.quantize({ source, target: aside, type: 'q8_0' });
    signal.throwIfAborted();
    const sha256 = await hashFile(aside, signal);
    await settle(aside, file);
    await records.write(file, sha256, 'quantised');
    log.info(`Quantised ${source} to ${file}, sha256 ${sha256}.`);
    return join(dir, file);
  }

  /** Under its final name only when it is on the disk. */
  async function settle(aside: string, file: string): Promise<void> {
    const handle = await open(aside, 'r+');
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(aside, join(dir, file));
    await syncFolder(dir);
  }

  /** Alone with the model's files, here and in other processes, with a folder that is gone afterwards. */
  async function alone<Result>(
    id: string,
    signal: AbortSignal,
    report: ReportProgress,
    work: (scratch: string) => Promise<Result>,
  ): Promise<Result> {
    await mkdir(dir, { recursive: true });
    const scratch = join(dir, `.${id}.tmp`);
    const lock = await acquireLock(
      join(dir, `.${id}.lock`),
      signal,
      () =>
        report({ phase: 'waiting', what: 'another process has this model', doneBytes: 0, totalBytes: null }),
      options.lockTimes,
    );
    try {
      await rm(scratch, { recursive: true, force: true }); // of a process that died
      await mkdir(scratch);
      return await work(scratch);
    } finally {
      await rm(scratch, { recursive: true, force: true });
      await lock.release();
    }
  }

  async function provide(
    model: Weights,
    precision: Precision,
    mayFetch: boolean,
    signal: AbortSignal,
  ): Promise<string> {
    const report = reporter(model.id);
    try {
      const found = await onDisk(model, precision, signal, report);
      if (found && 'path' in found) return found.path;
      if (!found && !mayFetch) {
        throw new GatewayError(
          'model_not_installed',
          { model: model.id, why: 'SVC_MODEL_DOWNLOAD is off' },
          {
            provider: model.provider,
            cause: new Error(`Nothing is in ${dir}. Run 'voxgate models pull ${model.id}'.`),
          },
        );
      }
      return await alone(model.id, signal, report, async (scratch) => {
        let now = await onDisk(model, precision, signal, report);
        if (!now) {
          await fetchFrom(model, precision, scratch, signal, report);
          now = await onDisk(model, precision, signal, report);
        }
        if (now && 'path' in now) return now.path;
        if (!now) throw new Error(`the source of ${model.id} left no file in ${dir}`);
        return quantise(model, now.quantise, scratch, signal, report);
      });
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof GatewayError) throw error;
      throw new GatewayError(
        'download_failed',
        { model: model.id },
        { provider: model.provider, cause: error },
      );
    } finally {
      current.delete(model.id);
    }
  }

  async function listening<Result>(
    id: string,
    { onProgress }: WaitOptions,
    work: () => Promise<Result>,
  ): Promise<Result> {
    if (!onProgress) return work();
    const group = listeners.get(id) ?? new Set();
    listeners.set(id, group.add(onProgress));
    try {
      return await work();
    } finally {
      group.delete(onProgress);
    }
  }

  function wait(id: string, mayFetch: boolean, waiting: EnsureOptions): Promise<{ path: string }> {
    return listening(id, waiting, async () => {
      const model = find(id);
      const wanted = waiting.precision ?? precision;
      const key = `${id} ${wanted} ${mayFetch ? 'fetched' : 'as it is'}`;
      const path = await jobs.join(key, (signal) => provide(model, wanted, mayFetch, signal), waiting.signal);
      return { path };
    });
  }

  async function importFolder(
    source: string,
    importing: ImportOptions,
  ): Promise<{ id: string; path: string }> {
    const signal = importing.signal ?? new AbortController().signal;
    const { checkpoint, vocabulary, shape } = await openFasterWhisper(source);
    try {
      const id = identifyWhisper(shape, importing.id);
      const model = find(id);
      const report = reporter(id);
      const file = localFile(model, 'f16');
      if (file === undefined) throw notImportable(`${id} takes no imported weights.`);
      return await listening(id, importing, () =>
        alone(id, signal, report, async (scratch) => {
          const there = storedFiles(model)[0];
          if (there)
            throw notImportable(`${id} is already installed: move ${join(dir, there.file)} away first.`);
          const weights = await writeWhisper(checkpoint, vocabulary, join(scratch, file), {
            signal,
            onBegin: (bytes) => requireSpace(dir, bytes * 1.6),
            onProgress: (doneBytes, totalBytes) =>
              report({ phase: 'converting', what: file, doneBytes, totalBytes }),
          });
          await settle(join(scratch, file), file);
          await records.write(file, weights.sha256, 'import');
          log.info(`Imported ${source} as ${file}, sha256 ${weights.sha256}.`);
          const path = join(dir, file);
          if (precision === 'f16') return { id, path };
          return { id, path: await quantise(model, path, scratch, signal, report) };
        }).finally(() => current.delete(id)),
      );
    } finally {
      await checkpoint.close();
    }
  }

  return {
    dir,
    list: () =>
      catalogue.map((model) => {
        const files = storedFiles(model);
        const bytes = files.reduce((sum, entry) => sum + entry.bytes, 0);
        return { id: model.id, family: model.family, installed: files.length > 0, bytes, files };
      }),
    isInstalled(id) {
      const model = catalogue.find((entry) => entry.id === id);
      return model !== undefined && storedFiles(model).length > 0;
    },
    ensure: (id, waiting = {}) => wait(id, options.download, waiting),
    pull: (id, waiting = {}) => wait(id, true, waiting),
    import: (source, importing = {}) => importFolder(source, importing),
    activity: () => [...current.values()],
  };
}
