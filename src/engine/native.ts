import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/**
 * The whole native surface, typed. This file alone loads the addon; everything else takes a `NativeEngine`.
 *
 * Audio is 16 kHz mono float32 in -1..1 throughout. Times are milliseconds from the first sample handed in.
 * Every long call runs on a thread of the object it belongs to, takes an AbortSignal, and rejects with
 * `signal.reason` once the native side has really stopped.
 */

export type NativeErrorCode =
  | 'load_failed' // the file is not a model this backend can use
  | 'bad_audio' // the file cannot be decoded
  | 'inference_failed'
  | 'out_of_memory'
  | 'closed' // the object was closed before or during the call
  | 'invalid_argument';

export class NativeError extends Error {
  override readonly name = 'NativeError';
  readonly code: NativeErrorCode;
  constructor(code: NativeErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

export interface LoadOptions {
  backend: 'whisper' | 'parakeet' | 'sensevoice' | 'fake';
  path: string;
  device: string; // 'cpu' | 'cuda:0' ...
  threads: number;
}

export interface ModelInfo {
  backend: string;
  /** ISO 639 codes the model can be asked for, in the model's own order. */
  languages: string[];
  multilingual: boolean;
  /** Encoder positions of 20 ms for a full window (1500 for Whisper); 0 where a call cannot choose them. */
  audioContext: number;
  /** Decoder positions (448 for Whisper). */
  textContext: number;
  /** How many chunks are worth decoding at once. */
  lanes: number;
  /** Weights and buffers held, bytes. */
  memoryBytes: number;
}

export interface ChunkOptions {
  /** ISO 639 code, one of `info.languages`; '' where the model itself finds it (SenseVoice). */
  language: string;
  translate: boolean;
  /** Text the decoder is conditioned on; '' for none. */
  prompt: string;
  /** 0 = greedy; above 0 samples with a fixed seed (0..1). */
  temperature: number;
  /** Encoder positions to compute, 0 = full window. */
  audioContext: number;
  /** Upper bound of decoded tokens, 0 = the model's own. */
  maxTokens: number;
  /** Align each token by dynamic time warping over the cross attention (slower, exact to about 50 ms). */
  words: boolean;
  /** Punctuation and digits, where the model has the choice (SenseVoice); they are the default. */
  itn?: boolean;
}

export interface Token {
  id: number;
  /** UTF-8 bytes; a character may be spread over several tokens. Empty for timestamp and control tokens. */
  bytes: Uint8Array;
  /** Natural logarithm of the probability the model gave this token. */
  logprob: number;
  startMs: number;
  endMs: number;
}

export interface DecodedSegment {
  startMs: number;
  endMs: number;
  tokens: Token[];
  /** Probability (0..1) of the no-speech token at the start of the window. */
  noSpeechProb: number;
  /** What SenseVoice tells beside the words. */
  language?: string;
  languageProbability?: number;
  /** As the model's tags are spelled: `HAPPY`, `NEUTRAL`, `EMO_UNKNOWN` ... */
  emotion?: string;
  /** `Speech`, `BGM`, `Laughter` ... */
  event?: string;
}

export interface LanguageGuess {
  language: string;
  probability: number;
  probabilities: Record<string, number>;
}

export interface JobHooks {
  signal?: AbortSignal | undefined;
  onSegment?: (segment: DecodedSegment) => void;
  /** 0..1, never falling. */
  onProgress?: (fraction: number) => void;
}

/** As in the transcription that follows on the same samples: it then does not encode them again. */
export interface DetectionOptions {
  audioContext: number;
  words: boolean;
}

/** Decodes chunks one after the other, in the order of the calls, on a thread of its own. */
export interface Lane {
  readonly info: ModelInfo;
  /** Decodes one chunk of at most 30 s. */
  transcribe(samples: Float32Array, options: ChunkOptions, hooks?: JobHooks): Promise<DecodedSegment[]>;
  detectLanguage(
    samples: Float32Array,
    options: DetectionOptions,
    hooks?: Pick<JobHooks, 'signal'>,
  ): Promise<LanguageGuess>;
}

export interface TranscriptionModel extends Lane {
  /**
   * The lane of a number below `info.lanes`; 0 is the model itself. Lanes work at the same time and share the weights
   * and the threads of the model. One is made when it is first asked for, and closed with the model; where there is
   * no memory for it, it is the model itself.
   */
  lane(index: number): Promise<Lane>;
  /** Cancels what runs, waits for it and frees the weights. Idempotent. */
  close(): Promise<void>;
}

/** Speech probability per window of 512 samples (32 ms). */
export interface VoiceActivityModel {
  /**
   * `samples.length` must be a multiple of 512 except in the last call of a stream (the rest is zero-padded).
   * `reset` starts a new stream; without it the recurrent state goes on from the previous call.
   */
  probabilities(
    samples: Float32Array,
    options: { reset: boolean },
    hooks?: Pick<JobHooks, 'signal'>,
  ): Promise<Float32Array>;
  close(): Promise<void>;
}

export interface AudioFileInfo {
  format: 'wav' | 'mp3' | 'flac' | 'vorbis';
  /** Of the file, before conversion. */
  sampleRate: number;
  channels: number;
  /** As the header says; null when only decoding would tell. */
  durationSec: number | null;
}

export interface NativeAudioFile {
  readonly info: AudioFileInfo;
  /** The next samples (16 kHz mono), fewer only at the end; null when there are none left. */
  read(maxSamples: number): Promise<Float32Array | null>;
  close(): void;
}

export interface ComputeDevice {
  /** `CPU`, `CUDA0` ... */
  name: string;
  description: string;
  gpu: boolean;
  memoryBytes: number;
}

export interface EngineInfo {
  whisperVersion: string;
  ggmlVersion: string;
  devices: ComputeDevice[];
  cpuFeatures: string[];
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface NativeEngine {
  readonly info: EngineInfo;
  setLogger(write: ((level: LogLevel, message: string) => void) | null): void;
  loadModel(options: LoadOptions): Promise<TranscriptionModel>;
  loadVoiceActivity(options: { path: string }): Promise<VoiceActivityModel>;
  openAudio(path: string): Promise<NativeAudioFile>;
  /** Rewrites a ggml Whisper file (f16/f32) with its 2-d weights as q8_0, as whisper.cpp's `quantize` does. */
  quantize(options: { source: string; target: string; type: 'q8_0' }): Promise<void>;
}

/** What the addon itself exports; its calls settle when the native work has ended, and are cancelled by number. */
interface Addon {
  engineInfo(): EngineInfo;
  setLogger(write: ((level: LogLevel, message: string) => void) | null): void;
  cancel(id: number): void;
  loadModel(options: LoadOptions): Job<AddonModel>;
  loadVoiceActivity(options: { path: string }): Job<AddonVoiceActivity>;
  openAudio(options: { path: string }): Job<AddonAudioFile>;
  quantize(options: { source: string; target: string; type: string }): Job<void>;
}
interface Job<T> {
  promise: Promise<T>;
  id: number;
}
interface AddonHooks {
  onSegment: ((segment: DecodedSegment) => void) | undefined;
  onProgress: ((fraction: number) => void) | undefined;
}
interface AddonModel {
  readonly info: ModelInfo;
  lane(): Job<AddonModel>;
  transcribe(samples: Float32Array, options: ChunkOptions, hooks: AddonHooks): Job<DecodedSegment[]>;
  detectLanguage(samples: Float32Array, options: DetectionOptions): Job<LanguageGuess>;
  close(): Promise<void>;
}
interface AddonVoiceActivity {
  probabilities(samples: Float32Array, options: { reset: boolean }): Job<Float32Array>;
  close(): Promise<void>;
}
interface AddonAudioFile {
  readonly info: AudioFileInfo;
  read(options: { maxSamples: number }): Job<Float32Array | null>;
  close(): void;
}

const codes: ReadonlySet<unknown> = new Set<NativeErrorCode>([
  'load_failed',
  'bad_audio',
  'inference_failed',
  'out_of_memory',
  'closed',
  'invalid_argument',
]);

function toNativeError(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || !codes.has(error.code)) return error;
  return new NativeError(error.code as NativeErrorCode, error.message);
}

/**
 * Starts a native call and waits for its end, also when it was aborted: only then is the thread free and the memory
 * given back. A hook that throws ends the call with what it threw.
 */
async function run<T>(
  addon: Addon,
  start: (guard: Guard) => Job<T>,
  signal?: AbortSignal | undefined,
): Promise<T> {
  signal?.throwIfAborted();
  let thrown: { error: unknown } | undefined;
  let id = 0;
  const cancel = () => addon.cancel(id);
  const guard: Guard = (hook) =>
    hook &&
    ((value) => {
      if (thrown || signal?.aborted) return;
      try {
        hook(value);
      } catch (error) {
        thrown = { error };
        cancel();
      }
    });
  try {
    const job = start(guard);
    id = job.id;
    signal?.addEventListener('abort', cancel, { once: true });
    const result = await job.promise;
    signal?.throwIfAborted();
    if (thrown) throw thrown.error;
    return result;
  } catch (error) {
    if (thrown) throw thrown.error;
    signal?.throwIfAborted();
    throw toNativeError(error);
  } finally {
    signal?.removeEventListener('abort', cancel);
  }
}
type Guard = <V>(hook: ((value: V) => void) | undefined) => ((value: V) => void) | undefined;

function wrapLane(addon: Addon, model: AddonModel): Lane & Closing {
  let closing: Promise<void> | undefined;
  return {
    info: model.info,
    transcribe: (samples, options, hooks = {}) =>
      run(
        addon,
        (guard) =>
          model.transcribe(samples, options, {
            onSegment: guard(hooks.onSegment),
            onProgress: guard(hooks.onProgress),
          }),
        hooks.signal,
      ),
    detectLanguage: (samples, options, hooks = {}) =>
      run(addon, () => model.detectLanguage(samples, options), hooks.signal),
    close: () => (closing ??= model.close()),
  };
}
interface Closing {
  close(): Promise<void>;
}

function wrapModel(addon: Addon, model: AddonModel): TranscriptionModel {
  const first = wrapLane(addon, model);
  const others = new Map<number, Promise<Lane & Closing>>();

  async function addLane(): Promise<Lane & Closing> {
    try {
      return wrapLane(addon, await run(addon, () => model.lane()));
    } catch (error) {
      if (error instanceof NativeError && error.code === 'out_of_memory') return first;
      throw error;
    }
  }

  return {
    ...first,
    lane: async (index) => {
      if (index === 0) return first;
      const made = others.get(index) ?? addLane();
      others.set(index, made);
      made.catch(() => others.delete(index)); // the next request may have better luck
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
  let closing: Promise<void> | undefined;
  return {
    probabilities: (samples, options, hooks = {}) =>
      run(addon, () => model.probabilities(samples, options), hooks.signal),
    close: () => (closing ??= model.close()),
  };
}

function wrapAudioFile(addon: Addon, file: AddonAudioFile): NativeAudioFile {
  return {
    info: file.info,
    read: (maxSamples) => run(addon, () => file.read({ maxSamples })),
    close: () => file.close(),
  };
}

function loadAddon(path: string): Addon {
  // GNU's OpenMP runtime reads this when the addon brings it in: how long a thread spins for the others before it
  // sleeps. Spinning for ever costs ten times the decoding where anything else runs, sleeping at once four times
  // where nothing does; docs/performance.md has the figures.
  if (process.env.OMP_WAIT_POLICY === undefined) process.env.GOMP_SPINCOUNT ??= '1000';
  try {
    return createRequire(import.meta.url)(path) as Addon;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      [
        `The native addon cannot be loaded on ${process.platform}-${process.arch} with Node ${process.version}.`,
        `Tried: ${path}`,
        `Reason: ${reason}`,
        'Either it was not compiled yet, or it was compiled on another system, or a library beside it is missing.',
        'Compile it here with: npm run build:native',
      ].join('\n'),
      { cause },
    );
  }
}

/** Compiled output is as deep below the package root as the source: src/engine and dist/engine. */
const defaultPath = fileURLToPath(new URL('../../build/Release/voxgate.node', import.meta.url));

/** Loads the addon; several calls, also from worker threads, share one copy of the library. */
export function loadNative(path: string = defaultPath): NativeEngine {
  const addon = loadAddon(path);
  return {
    info: addon.engineInfo(),
    setLogger: (write) => addon.setLogger(write),
    loadModel: async (options) => wrapModel(addon, await run(addon, () => addon.loadModel(options))),
    loadVoiceActivity: async (options) =>
      wrapVoiceActivity(addon, await run(addon, () => addon.loadVoiceActivity(options))),
    openAudio: async (file) => wrapAudioFile(addon, await run(addon, () => addon.openAudio({ path: file }))),
    quantize: (options) => run(addon, () => addon.quantize(options)),
  };
}
