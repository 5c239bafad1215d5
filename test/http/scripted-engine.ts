/** The engine and the store of weights that a script takes the place of, without a gateway around them. */
import type { Server } from 'node:http';
import { basename, join } from 'node:path';
import { loadNative } from '../../src/engine/addon.ts';
import type {
  CallOptions,
  ChunkOptions,
  ComputeDevice,
  DecodedSegment,
  LoadOptions,
  NativeEngine,
  SpeakerModel,
  TranscriptionModel,
} from '../../src/engine/types.ts';
import type { OtherBudgets } from '../../src/limits/budgets.ts';
import type { EnsureOptions, ModelStore } from '../../src/models/store.ts';

export interface Script {
  /** Transcribes one chunk. */
  transcribe?(samples: Float32Array, options: ChunkOptions, call: CallOptions): Promise<DecodedSegment[]>;
  /** Loads a model in the place of the scripted one. */
  loadModel?(options: LoadOptions): Promise<TranscriptionModel>;
  /** Tells speakers apart, as `test/voices.ts` does. When absent, the engine cannot, and there are no weights. */
  speakers?: SpeakerModel;
  /** Whether a window is speech. When absent, a loud one is. */
  isSpeech?(window: Float32Array): boolean;
  /** The probability that a turn is complete. When absent, there are no weights that tell it. */
  turns?(samples: Float32Array, signal: AbortSignal | undefined): Promise<number> | number;
  /** Runs when a model is loaded, before the scripted one is made. */
  load?(options: LoadOptions): void;
  /** Devices of the engine; when absent, those that the real one finds. */
  devices?: ComputeDevice[];
  /** Number of chunks that the model takes at once; 1 when absent. */
  lanes?: number;
  /** Ids whose weights are on disk. */
  installed?: string[];
  /** The size of weights on disk; 1000 bytes when absent. */
  weightBytes?(id: string): number;
  /** Fetches absent weights. */
  ensure?(id: string, options: EnsureOptions): Promise<unknown>;
  /** What the store makes ready now. */
  activity?(): ReturnType<ModelStore['activity']>;
  /** Takes the place of the scripted store; `installed` and `ensure` then mean nothing. */
  store?: ModelStore;
  env?: Record<string, string>;
  /** Other limits than the gateway usually has. */
  budgets?: OtherBudgets | undefined;
  engine?: null;
  beforeListening?(server: Server): void;
}

/** Is busy until it is told to stop. */
export const untilAborted: NonNullable<Script['transcribe']> = (_samples, _options, { signal }) =>
  new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));

/** Makes words of the same length, one after the other. */
export function heard(text: string, wordMs = 100): DecodedSegment[] {
  const tokens = text.split(/(?= )/).map((piece, i) => ({
    id: i + 1,
    bytes: Buffer.from(piece),
    logprob: -0.1,
    startMs: i * wordMs,
    endMs: (i + 1) * wordMs,
  }));
  return [{ startMs: 0, endMs: tokens.length * wordMs, tokens, noSpeechProb: 0.01 }];
}

/** Called with 1 when something begins and with -1 when it ends, and with the name of each model that is loaded. */
interface Seen {
  job(change: number): void;
  opening(change: number): void;
  load(name: string): void;
}

/** The real addon decodes, a loud window counts as speech, and the script transcribes. */
export function scriptedEngine(script: Script, seen: Partial<Seen> = {}): NativeEngine {
  const native = loadNative();
  const languages = ['en', 'de', 'fr', 'zh'];
  return {
    ...native,
    info: { ...native.info, ...(script.devices && { devices: script.devices }) },
    setLogger: () => undefined,
    async openAudio(path, format, hooks) {
      seen.opening?.(1);
      try {
        return await native.openAudio(path, format, hooks);
      } finally {
        seen.opening?.(-1);
      }
    },
    quantize: (options) => native.quantize(options),
    loadVoiceActivity: async ({ path }) => {
      seen.load?.(basename(path));
      const isSpeech = script.isSpeech ?? ((window) => window.some((s) => Math.abs(s) > 0.01));
      return {
        probabilities: async (samples) =>
          Float32Array.from({ length: Math.ceil(samples.length / 512) }, (_, i) =>
            isSpeech(samples.subarray(i * 512, (i + 1) * 512)) ? 0.9 : 0,
          ),
        close: async () => undefined,
      };
    },
    async loadSpeakers({ path }) {
      seen.load?.(basename(path));
      if (script.speakers === undefined) throw new Error('The script has no voices');
      return script.speakers;
    },
    async loadTurnDetector({ path }) {
      seen.load?.(basename(path));
      return {
        probability: async (samples, { signal } = {}) => (await script.turns?.(samples, signal)) ?? 0,
        close: async () => undefined,
      };
    },
    loadModel: async (options) => {
      script.load?.(options);
      seen.load?.(basename(options.path));
      if (script.loadModel) return script.loadModel(options);
      const model: TranscriptionModel = {
        info: {
          family: 'fake',
          languages,
          multilingual: true,
          audioContext: 1500,
          textContext: 448,
          lanes: script.lanes ?? 1,
          memoryBytes: 0,
        },
        async transcribe(samples, options, call = {}) {
          call.signal?.throwIfAborted(); // the addon starts nothing then
          seen.job?.(1);
          try {
            return await (script.transcribe?.(samples, options, call) ?? heard(' Hello there.'));
          } finally {
            seen.job?.(-1);
          }
        },
        detectLanguage: async () => ({ language: 'en', probability: 0.9, probabilities: { en: 0.9 } }),
        lane: async () => model,
        close: async () => undefined,
      };
      return model;
    },
  };
}

export function scriptedStore(script: Script, count: (change: number) => void = () => undefined): ModelStore {
  const usual = [
    ...['multilingual-base', 'voice-activity'],
    ...(script.speakers ? ['diarization'] : []),
    ...(script.turns ? ['turn-detection'] : []),
  ];
  const installed = new Set(script.installed ?? usual);
  return {
    isInstalled: (id: string) => installed.has(id),
    filesOf: (id: string) =>
      installed.has(id) ? [{ file: id, precision: 'q8_0', bytes: script.weightBytes?.(id) ?? 1000 }] : [],
    list: () =>
      [...installed].map((id) => {
        const bytes = script.weightBytes?.(id) ?? 1000;
        return { id, family: 'whisper', installed: true, bytes, files: [] };
      }),
    refresh: async () => undefined,
    activity: () => script.activity?.() ?? [],
    pull: async () => undefined,
    remove: async () => [],
    async ensure(id: string, options: EnsureOptions = {}) {
      count(1);
      try {
        await script.ensure?.(id, options);
      } finally {
        count(-1);
      }
      return { path: join('/nowhere', options.precision ?? '', id) };
    },
  } as unknown as ModelStore;
}
