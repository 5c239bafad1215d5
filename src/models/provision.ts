/**
 * How the weights of a model come to be in the folder: they are found there, or fetched from the first source that has
 * them, and quantized where that is wanted.
 */
import { fullMessage, GatewayError } from '../errors.ts';
import { publishedFile } from './hub.ts';
import type { FileWork, ModelFolder } from './model-folder.ts';
import type { Records } from './records.ts';
import type { ModelSource } from './source.ts';
import { localFile, type Precision, type Weights } from './weights.ts';

export interface ProvisionDeps {
  dir: string;
  /** The sources, which are tried in this order. */
  sources: readonly ModelSource[];
  records: Records;
  folder: ModelFolder;
  log: { info(message: string): void; warn(message: string): void };
  /** The models that could not be quantized, as in a folder that is read-only or full: another try would cost as much. */
  keptLarger: Set<string>;
}

export interface Wanted {
  model: Weights;
  precision: Precision;
  /** Whether weights that are missing may be fetched. */
  mayFetch: boolean;
}

/** A verified file, or the f16 file that the wanted file can be made from. */
type Found = { path: string } | { quantizeFrom: string };

type Work = Pick<FileWork, 'signal' | 'report'>;

/** The path of verified weights. @throws GatewayError `model_not_installed` or `download_failed` */
export async function provide(deps: ProvisionDeps, wanted: Wanted, work: Work): Promise<string> {
  const { folder, log, keptLarger } = deps;
  const { model } = wanted;
  let larger: string | null = null;
  try {
    const found = await findOnDisk(deps, wanted, work);
    if (found && 'path' in found) return found.path;
    larger = found?.quantizeFrom ?? null;
    if (!found && !wanted.mayFetch) throw notInstalled(model, deps.dir);
    // Nobody else may change the files of the model while it is downloaded or converted.
    return await folder.exclusively(model.id, work, async (alone) => {
      let now = await findOnDisk(deps, wanted, alone);
      if (!now) {
        await fetchWeights(deps, wanted, alone);
        now = await findOnDisk(deps, wanted, alone);
      }
      if (!now) throw new Error(`the source of ${model.id} left no file in ${deps.dir}`);
      if ('path' in now) return now.path;
      larger = now.quantizeFrom;
      return folder.quantize(model, larger, alone);
    });
  } catch (error) {
    work.signal.throwIfAborted();
    if (error instanceof GatewayError) throw error;
    if (larger === null) throw downloadFailed(model, error);
    keptLarger.add(model.id);
    log.warn(
      `${model.id} serves in 16 bits, which a CPU is slower with. Run voxgate models pull ${model.id} when this is mended: ${(error as Error).message}`,
    );
    return larger;
  }
}

/** @returns null when nothing is on disk. @throws GatewayError `model_not_installed` when only damaged files are */
async function findOnDisk(
  { records, folder, keptLarger, log }: ProvisionDeps,
  { model, precision }: Wanted,
  { signal, report }: Work,
): Promise<Found | null> {
  const mayQuantize = folder.canQuantize(model) && !keptLarger.has(model.id);
  const other = precision === 'q8_0' ? 'f16' : 'q8_0';
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
  if (complaints.length > 0) throw damaged(model, complaints);
  return null;
}

/** @throws GatewayError `download_failed` when no source has them; `signal.reason` after an abort */
async function fetchWeights(
  { dir, sources, records, log }: ProvisionDeps,
  { model, precision }: Wanted,
  work: FileWork,
): Promise<void> {
  const failures: string[] = [];
  for (const source of sources.filter((candidate) => candidate.offers(model))) {
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
  throw downloadFailed(
    model,
    new Error(`${why}. Check the network and HF_ENDPOINT, or put ${file} into ${dir}.`),
  );
}

function damaged({ id, provider }: Weights, complaints: readonly string[]): GatewayError {
  const cause = new Error(
    `${complaints.join('; ')}. Nothing was changed: run voxgate models rm ${id}, then voxgate models pull ${id}.`,
  );
  const why = 'the file on disk failed its verification';
  return new GatewayError('model_not_installed', { model: id, why }, { provider, cause });
}

function notInstalled({ id, provider }: Weights, dir: string): GatewayError {
  const cause = new Error(`run voxgate models pull ${id}, which puts them into ${dir}`);
  const why = 'SVC_MODEL_DOWNLOAD is off';
  return new GatewayError('model_not_installed', { model: id, why }, { provider, cause });
}

function downloadFailed({ id, provider }: Weights, cause: unknown): GatewayError {
  return new GatewayError('download_failed', { model: id }, { provider, cause });
}
