/** Wraps the native addon as a `NativeEngine`. No other file loads the addon. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onAbort } from '../abort.ts';
import { howToGetAddon, missingSystemPackage, prebuiltAddon, prebuiltGpuFolder } from './prebuilt.ts';
import {
  type AudioFileInfo,
  type ChunkOptions,
  type DecodedSegment,
  type DetectionOptions,
  type EngineInfo,
  GPU_LIBRARIES,
  type GpuLibrary,
  type Lane,
  type LanguageGuess,
  type LoadOptions,
  type LogLevel,
  type ModelInfo,
  NATIVE_ERROR_CODES,
  type NativeAudioFile,
  type NativeEngine,
  NativeError,
  type NativeErrorCode,
  type NativeFormat,
  type SpeakerModel,
  type TranscriptionModel,
  type TurnDetector,
  type VoiceActivityModel,
} from './types.ts';

/** Stands for the average of all channels of a file. */
const ALL_CHANNELS = -1;

const codes: ReadonlySet<unknown> = new Set(NATIVE_ERROR_CODES);

function toNativeError(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || !codes.has(error.code)) return error;
  return new NativeError(error.code as NativeErrorCode, error.message);
}

/**
 * Starts a native call and waits for its end, also after an abort, because only then is the thread free and the
 * memory released.
 */
async function run<T>(addon: Addon, start: () => Job<T>, signal?: AbortSignal | undefined): Promise<T> {
  signal?.throwIfAborted();
  try {
    const job = start();
    using _canceled = onAbort(signal, () => addon.cancel(job.id));
    const result = await job.promise;
    signal?.throwIfAborted();
    return result;
  } catch (error) {
    signal?.throwIfAborted();
    throw toNativeError(error);
  }
}

/** Runs at the first call; the others wait for the same end. */
function once(close: () => Promise<void>): () => Promise<void> {
  let closing: Promise<void> | undefined;
  return () => (closing ??= close());
}

function wrapLane(addon: Addon, model: AddonModel): Lane & Closing {
  return {
    info: model.info,
    transcribe: (samples, options, { signal } = {}) =>
      run(addon, () => model.transcribe(samples, options), signal),
    detectLanguage: (samples, options, { signal } = {}) =>
      run(addon, () => model.detectLanguage(samples, options), signal),
    close: once(() => model.close()),
  };
}
interface Closing {
  close(): Promise<void>;
}

function wrapModel(addon: Addon, model: AddonModel): TranscriptionModel {
  const first = wrapLane(addon, model);
  const others = new Map<number, Promise<Lane & Closing>>();

  async function addLane(index: number): Promise<Lane & Closing> {
    try {
      return wrapLane(addon, await run(addon, () => model.lane()));
    } catch (error) {
      others.delete(index); // the next request tries again
      if (error instanceof NativeError && error.code === 'out_of_memory') return first;
      throw error;
    }
  }

  return {
    ...first,
    lane: async (index) => {
      if (index === 0) return first;
      const made = others.get(index) ?? addLane(index);
      others.set(index, made);
      return made;
    },
    close: async () => {
      const made = await Promise.allSettled(others.values());
      const lanes = made.flatMap((lane) => (lane.status === 'fulfilled' ? [lane.value] : []));
      await Promise.all([first, ...lanes].map((lane) => lane.close()));
    },
  };
}

function wrapVoiceActivity(addon: Addon, model: AddonVoiceActivity): VoiceActivityModel {
  return {
    probabilities: (samples, { reset, apart = false }, { signal } = {}) =>
      run(addon, () => model.probabilities(samples, { reset, apart }), signal),
    close: once(() => model.close()),
  };
}

function wrapSpeakers(addon: Addon, model: AddonSpeakers): SpeakerModel {
  return {
    segmentation: (samples, options, { signal } = {}) =>
      run(addon, () => model.segmentation(samples, options), signal),
    embeddings: (samples, { masks, values } = { masks: 0 }, { signal } = {}) =>
      run(addon, () => model.embeddings(samples, { masks }, values), signal),
    close: once(() => model.close()),
  };
}

function wrapTurnDetector(addon: Addon, model: AddonTurnDetector): TurnDetector {
  return {
    probability: (samples, { signal } = {}) => run(addon, () => model.probability(samples), signal),
    close: once(() => model.close()),
  };
}

function wrapAudioFile(addon: Addon, file: AddonAudioFile): NativeAudioFile {
  return {
    info: file.info,
    get lost() {
      return file.lost;
    },
    get sides() {
      return file.sides;
    },
    read: (maxSamples, { signal } = {}) => run(addon, () => file.read({ maxSamples }), signal),
    close: () => file.close(),
  };
}

/** The libraries for GPUs: beside the addon, or else in packages of their own. */
function gpuLibraries(beside: string): { name: GpuLibrary; folder: string }[] {
  return GPU_LIBRARIES.flatMap((name) => {
    const isBeside = existsSync(join(beside, `libggml-${name}.so`));
    const folder = isBeside ? beside : prebuiltGpuFolder(name);
    return folder === null ? [] : [{ name, folder }];
  });
}

/** Why the system cannot load a library that gives no GPU, by its name; ggml does not say it. */
function loadError({ name, folder }: { name: GpuLibrary; folder: string }): [GpuLibrary, string][] {
  try {
    process.dlopen({ exports: {} }, join(folder, `libggml-${name}.so`));
    return [];
  } catch (error) {
    const { message } = error as Error;
    // It was loaded, and is no addon.
    return /did not self-register/.test(message) ? [] : [[name, message]];
  }
}

function loadAddon(path: string): Addon {
  // GNU's OpenMP runtime reads this when the addon loads it. It sets how long a thread spins before it sleeps while
  // it waits for the others. Endless spinning makes decoding ten times slower on a machine with other work, and
  // sleeping at once makes it four times slower on an idle one; bench/results/time.md has the figures.
  if (process.env.OMP_WAIT_POLICY === undefined) process.env.GOMP_SPINCOUNT ??= '1000';
  try {
    return createRequire(import.meta.url)(path) as Addon;
  } catch (cause) {
    const [reason = ''] = (cause instanceof Error ? cause.message : String(cause)).split('\n'); // Node appends a "Require stack" in further lines
    const library = missingSystemPackage(reason);
    throw new Error(
      [
        `The native addon cannot be loaded on ${process.platform}-${process.arch} with Node ${process.version}.`,
        `Tried: ${path}`,
        `Reason: ${reason}`,
        ...(library === null
          ? [
              'Either it was not compiled yet, or it was compiled on another system, or a library beside it is missing.',
              `What to do: ${howToGetAddon()}`,
            ]
          : [`What to do: install ${library} (Debian and Ubuntu: apt-get install ${library})`]),
      ].join('\n    '), // indented, so that the log shows one entry
      { cause },
    );
  }
}

/** The same relative path serves both src/engine and dist/engine, which are equally deep below the package root. */
const compiledHere = fileURLToPath(new URL('../../build/Release/voxgate.node', import.meta.url));

/** An addon that was compiled here is taken before the one of a package, because somebody chose to compile it. */
const defaultPath = () => (existsSync(compiledHere) ? compiledHere : (prebuiltAddon() ?? compiledHere));

interface LoadingOptions {
  cpu?: string;
  gpus?: boolean;
  log?: (level: LogLevel, message: string) => void;
}

/**
 * Loads the addon. Several calls, also from worker threads, share one copy of the library.
 * @param options.cpu the level of instructions whose kernels compute, as `SVC_CPU` names it
 * @param options.log takes the lines that the native libraries log from the beginning, as `setLogger`
 * @param options.gpus whether models may run on a GPU; else no library for GPUs is loaded and no GPU is touched
 * @throws Error whose message names the platform, the path, the reason and what to do
 * @throws NativeError `invalid_argument` for a level that this build or this processor does not have, or another one
 *   than the process computes with already
 */
export function loadNative(
  path: string = defaultPath(),
  { cpu = 'auto', gpus = false, log }: LoadingOptions = {},
): NativeEngine {
  const addon = loadAddon(path);
  if (log !== undefined) addon.setLogger(log);
  try {
    addon.useCpu(cpu);
  } catch (error) {
    throw toNativeError(error);
  }
  const libraries = gpuLibraries(dirname(path));
  if (gpus) addon.useGpus([...new Set(libraries.map(({ folder }) => folder))]);
  const info = addon.engineInfo();
  const idle = gpus && !info.devices.some(({ gpu }) => gpu) ? libraries : [];
  return {
    info: {
      ...info,
      gpuLibraries: libraries.map(({ name }) => name),
    },
    gpuLoadErrors: () => Object.fromEntries(idle.flatMap(loadError)),
    setLogger: (write) => addon.setLogger(write),
    loadModel: async (options) => wrapModel(addon, await run(addon, () => addon.loadModel(options))),
    loadVoiceActivity: async (options) =>
      wrapVoiceActivity(addon, await run(addon, () => addon.loadVoiceActivity(options))),
    loadSpeakers: async (options) => wrapSpeakers(addon, await run(addon, () => addon.loadSpeakers(options))),
    loadTurnDetector: async (options) =>
      wrapTurnDetector(addon, await run(addon, () => addon.loadTurnDetector(options))),
    openAudio: async (file, format, { signal, channel = ALL_CHANNELS } = {}) =>
      wrapAudioFile(addon, await run(addon, () => addon.openAudio({ path: file, format, channel }), signal)),
    quantize: (options) => run(addon, () => addon.quantize(options)),
  };
}

/**
 * The exports of the addon. The promise of a job settles when the native work has ended, and `cancel` takes the
 * job's `id`.
 */
interface Addon {
  useCpu(level: string): void;
  useGpus(folders: string[]): void;
  engineInfo(): Omit<EngineInfo, 'gpuLibraries'>;
  setLogger(write: ((level: LogLevel, message: string) => void) | null): void;
  cancel(id: number): void;
  loadModel(options: LoadOptions): Job<AddonModel>;
  loadVoiceActivity(options: { path: string }): Job<AddonVoiceActivity>;
  loadSpeakers(options: { path: string; threads?: number }): Job<AddonSpeakers>;
  loadTurnDetector(options: { path: string; threads: number }): Job<AddonTurnDetector>;
  openAudio(options: { path: string; format: NativeFormat; channel: number }): Job<AddonAudioFile>;
  quantize(options: { source: string; target: string; type: string }): Job<void>;
}
interface Job<T> {
  promise: Promise<T>;
  id: number;
}
interface AddonModel {
  readonly info: ModelInfo;
  lane(): Job<AddonModel>;
  transcribe(samples: Float32Array, options: ChunkOptions): Job<DecodedSegment[]>;
  detectLanguage(samples: Float32Array, options: DetectionOptions): Job<LanguageGuess>;
  close(): Promise<void>;
}
interface AddonVoiceActivity {
  probabilities(samples: Float32Array, options: { reset: boolean; apart: boolean }): Job<Float32Array>;
  close(): Promise<void>;
}
interface AddonSpeakers {
  segmentation(samples: Float32Array, options: { step: number }): Job<Float32Array>;
  embeddings(
    samples: Float32Array,
    options: { masks: number },
    masks: Float32Array | undefined,
  ): Job<Float32Array>;
  close(): Promise<void>;
}
interface AddonTurnDetector {
  probability(samples: Float32Array): Job<number>;
  close(): Promise<void>;
}
interface AddonAudioFile {
  readonly info: AudioFileInfo;
  readonly lost: NativeAudioFile['lost'];
  readonly sides: Float32Array | null;
  read(options: { maxSamples: number }): Job<Float32Array | null>;
  close(): void;
}
