/** What the native addon exports, as native/binding/ defines it. Only addon.ts uses it. */
import type {
  AudioFileInfo,
  ChunkOptions,
  DecodedSegment,
  DetectionOptions,
  EngineInfo,
  LanguageGuess,
  LoadOptions,
  LogLevel,
  ModelInfo,
  NativeAudioFile,
  NativeFormat,
} from './types.ts';

/**
 * The exports of the addon. The promise of a job settles when the native work has ended, and `cancel` takes the
 * job's `id`.
 */
export interface Addon {
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
export interface Job<T> {
  promise: Promise<T>;
  id: number;
}
export interface AddonModel {
  readonly info: ModelInfo;
  lane(): Job<AddonModel>;
  transcribe(samples: Float32Array, options: ChunkOptions): Job<DecodedSegment[]>;
  detectLanguage(samples: Float32Array, options: DetectionOptions): Job<LanguageGuess>;
  close(): Promise<void>;
}
export interface AddonVoiceActivity {
  probabilities(samples: Float32Array, options: { reset: boolean; apart: boolean }): Job<Float32Array>;
  close(): Promise<void>;
}
export interface AddonSpeakers {
  segmentation(samples: Float32Array, options: { step: number }): Job<Float32Array>;
  embeddings(
    samples: Float32Array,
    options: { masks: number },
    masks: Float32Array | undefined,
  ): Job<Float32Array>;
  close(): Promise<void>;
}
export interface AddonTurnDetector {
  probability(samples: Float32Array): Job<number>;
  close(): Promise<void>;
}
export interface AddonAudioFile {
  readonly info: AudioFileInfo;
  readonly lost: NativeAudioFile['lost'];
  readonly sides: Float32Array | null;
  read(options: { maxSamples: number }): Job<Float32Array | null>;
  close(): void;
}
