/**
 * The types of the native engine. `addon.ts` implements them, and the rest of the gateway sees only them.
 *
 * Audio is 16 kHz mono float32 in -1..1 throughout. Times are milliseconds from the first sample of the call.
 * Every long call runs on a thread of the object it belongs to, takes an AbortSignal, and rejects with
 * `signal.reason` once the native side has really stopped. Other failures reject with NativeError.
 */

export const NATIVE_ERROR_CODES = [
  'load_failed', // the file is not a model of this family
  'bad_audio', // the file cannot be decoded
  'inference_failed',
  'incomplete', // the model stopped before the end of the audio; another attempt may reach it
  'repetition', // the model only repeated itself; another attempt may hear more
  'text_too_long', // the text to align has more tokens than the model takes at once
  'out_of_memory',
  'closed', // the object was closed before or during the call
  'invalid_argument',
] as const;
export type NativeErrorCode = (typeof NATIVE_ERROR_CODES)[number];

/** A failure of the native engine. Its message may name paths, so it is for the log only. */
export class NativeError extends Error {
  override readonly name = 'NativeError';
  readonly code: NativeErrorCode;
  constructor(code: NativeErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

export interface LoadOptions {
  /** The model family, by the name of its native backend. */
  family: string;
  path: string;
  device: string; // 'cpu' | 'cuda:0' | 'vulkan:0' ...
  threads: number;
}

export interface ModelInfo {
  family: string;
  /** The ISO 639 codes that the model takes as `language`, in the model's own order. */
  languages: string[];
  multilingual: boolean;
  /** Encoder positions of 20 ms in a full window (1500 for Whisper); 0 if a call cannot choose them. */
  audioContext: number;
  /** Decoder positions (448 for Whisper). */
  textContext: number;
  /** How many chunks are worth decoding at once. */
  lanes: number;
  /** Weights and buffers held, bytes. */
  memoryBytes: number;
}

export interface Doubt {
  /** A text is in doubt if its mean log probability, with that of its end, is from `least` on and below `sure`. */
  least: number;
  sure: number;
  /** Texts that are followed side by side, the first one among them, 2..8. */
  beams: number;
}

export interface ChunkOptions {
  /** ISO 639 code, one of `info.languages`; '' where the model itself detects the language (SenseVoice). */
  language: string;
  translate: boolean;
  /** Text the decoder is conditioned on; '' for none. */
  prompt: string;
  /** 0..1. At 0 the decoder takes the best text that it finds; above 0 it samples with a fixed seed. */
  temperature: number;
  /** Encoder positions to compute; 0 means the full window. */
  audioContext: number;
  /** The most tokens to decode; 0 means the model's own limit. */
  maxTokens: number;
  /** Texts that are followed side by side at a temperature of 0 (beam search), 1..8; 1 is greedy decoding. */
  beams: number;
  /** When a greedy text without times is in doubt; a more probable one is then looked for beside it. */
  doubt?: Doubt;
  /** False: the decoder writes no times, and each segment is as long as its window. */
  times: boolean;
  /** Align each token by dynamic time warping over the cross attention (slower, exact to about 50 ms). */
  words: boolean;
  /** True where the call before may have been for the same audio: what was encoded for that is used again then. */
  again: boolean;
  /**
   * The text that is said, for a model that aligns texts (Whisper). Nothing is decoded then: the one segment has the
   * tokens of this text, with their times and probabilities.
   */
  text?: string;
  /**
   * Words to expect, for a model that looks for them among its tokens (Parakeet, SenseVoice): at most 300 of 600 bytes
   * in UTF-8. A text differs from the text without them only where it has one of them.
   */
  keywords?: readonly string[];
  /** Inverse text normalization: punctuation and digits, where the model has the choice (SenseVoice). Default true. */
  normalizeText?: boolean;
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
  /** Natural logarithm of the probability that the text ends behind this segment, where the decoder ended it there. */
  endLogprob?: number;
  /** SenseVoice detects the language, the emotion and the event beside the words; other models leave them out. */
  language?: string;
  languageProbability?: number;
  /** As the model spells its tags: `HAPPY`, `NEUTRAL`, `EMO_UNKNOWN` ... */
  emotion?: string;
  /** `Speech`, `BGM`, `Laughter` ... */
  event?: string;
}

export interface LanguageGuess {
  /** The ISO 639 code of the most probable language. */
  language: string;
  /** 0..1. */
  probability: number;
  /** The probability (0..1) of each language of the model, by its code. */
  probabilities: Record<string, number>;
  /** The same of each part that was asked for. */
  parts?: LanguageGuess[];
}

export interface CallOptions {
  signal?: AbortSignal | undefined;
}

export interface DetectionOptions {
  /** With the same value as in the transcription that follows, the samples are encoded only once for both. */
  audioContext: number;
  /** Parts of the samples whose languages are asked for, too (Whisper), at most 63. All are encoded as one. */
  parts?: { startMs: number; endMs: number }[];
}

/** Decodes chunks one after the other, in the order of the calls, on a thread of its own. */
export interface Lane {
  readonly info: ModelInfo;
  /** Decodes one chunk of at most 30 s. */
  transcribe(samples: Float32Array, options: ChunkOptions, call?: CallOptions): Promise<DecodedSegment[]>;
  detectLanguage(
    samples: Float32Array,
    options: DetectionOptions,
    call?: CallOptions,
  ): Promise<LanguageGuess>;
}

export interface TranscriptionModel extends Lane {
  /**
   * The lane with an index below `info.lanes`; index 0 is the model itself. Lanes work at the same time and share the
   * weights and the threads of the model. A lane is made at the first call with its index, and closed with the model.
   * When there is no memory for another lane, the call returns the model itself.
   */
  lane(index: number): Promise<Lane>;
  /** Cancels what runs, waits for it and frees the weights. Idempotent. */
  close(): Promise<void>;
}

/** Speech probability per window of 512 samples (32 ms). */
export interface VoiceActivityModel {
  /**
   * `samples.length` must be a multiple of 512 except in the last call of a stream (the rest is zero-padded).
   * `reset` starts a new stream; without it the recurrent state of the previous call is kept. What is heard `apart` is
   * a stream of its own, after which the one before it goes on.
   */
  probabilities(
    samples: Float32Array,
    options: { reset: boolean; apart?: boolean },
    call?: CallOptions,
  ): Promise<Float32Array>;
  close(): Promise<void>;
}

/** Diarization: tells speakers apart. Its calls keep nothing from one to the next. */
export interface SpeakerModel {
  /**
   * Who of up to three speakers speaks when, in windows of 10 s. The windows begin `step` samples apart (1600 to 160000)
   * and cover all samples, of which there are at most 120 s; after the end is silence. The result is
   * [window][589 frames][7 classes]: natural logarithms of probabilities. The classes stand for sets of the speakers of
   * the window: {}, {1}, {2}, {3}, {1, 2}, {1, 3}, {2, 3}. Frame `i` is centered at sample 495 + 270 * i of its window.
   */
  segmentation(samples: Float32Array, options: { step: number }, call?: CallOptions): Promise<Float32Array>;
  /**
   * Embeddings of 192 values of at most 30 s: one of all samples, or one for each of the masks (at most 512). `values`
   * holds one mask after the other, of equal length, 1048576 values at most: each value is the weight (0 and more) of an
   * equal stretch of the time. An embedding of a mask of zeros means nothing.
   */
  embeddings(
    samples: Float32Array,
    options?: { masks: number; values?: Float32Array | undefined },
    call?: CallOptions,
  ): Promise<Float32Array>;
  close(): Promise<void>;
}

/** Tells whether someone who has stopped to speak is done. Its calls keep nothing from one to the next. */
export interface TurnDetector {
  /**
   * The probability, 0..1, that the turn which ends with these samples is complete. There are at most 8 s of them; where
   * there are fewer, the model hears silence before them.
   */
  probability(samples: Float32Array, call?: CallOptions): Promise<number>;
  close(): Promise<void>;
}

/** What the addon decodes, as the content of the file shows it (`src/audio/sniff.ts`). */
export type NativeFormat = 'wav' | 'mp3' | 'flac' | 'vorbis';

export interface AudioFileInfo {
  /** Hz in the file, before resampling. */
  sampleRate: number;
  channels: number;
  /** The duration that the header gives, in seconds; null when only decoding would show it. */
  durationSec: number | null;
}

export interface OpenAudioFileOptions extends CallOptions {
  /** The one channel that is read, from 0. Without it, and in a file without it, the average of all is read. */
  channel?: number | undefined;
}

export interface NativeAudioFile {
  readonly info: AudioFileInfo;
  /**
   * What was lost to damage in the samples so far, in seconds; after the last ones also what the header names beyond
   * them.
   */
  readonly lost: readonly { startSec: number; endSec: number }[];
  /** Half the difference of two channels at each sample of the last read; null where they are not two. */
  readonly sides: Float32Array | null;
  /**
   * The next `maxSamples` samples (16 kHz mono), fewer only at the end; null when there are none left. Only one call
   * may run at a time. After an aborted call the file can only be closed.
   */
  read(maxSamples: number, call?: CallOptions): Promise<Float32Array | null>;
  close(): void;
}

/** The libraries that `npm run build -- <name>` makes, in the order in which `auto` asks them. */
export const GPU_LIBRARIES = ['cuda', 'vulkan'] as const;
export type GpuLibrary = (typeof GPU_LIBRARIES)[number];

export interface ComputeDevice {
  /** `CPU`, `CUDA0`, `Vulkan0` ... */
  name: string;
  gpu: boolean;
  memoryBytes: number;
}

export interface EngineInfo {
  whisperVersion: string;
  ggmlVersion: string;
  devices: ComputeDevice[];
  /** Those of ggml's libraries for GPUs that are installed, whether they find a GPU or not. */
  gpuLibraries: readonly GpuLibrary[];
  /** The level of instructions of the kernels on the CPU, as `SVC_CPU` names it; '' where none can be used. */
  cpuLevel: string;
  cpuFeatures: string[];
  /** The GPUs for which the CUDA library has code, as `800,900` for those of compute capability 8.0 and 9.0; '' without it. */
  cudaArchitectures: string;
  /** The model families that this build can load, by the names of their backends, sorted. */
  families: string[];
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** The engine itself. Its calls reject with NativeError: `load_failed`, `bad_audio` or `out_of_memory`. */
export interface NativeEngine {
  readonly info: EngineInfo;
  /** Loads the libraries for GPUs once more where none gave a GPU. @returns what the system says of those it cannot load */
  gpuLoadErrors(): Partial<Record<GpuLibrary, string>>;
  /** Sends the lines that the native libraries log to `write`; null stops it. */
  setLogger(write: ((level: LogLevel, message: string) => void) | null): void;
  loadModel(options: LoadOptions): Promise<TranscriptionModel>;
  loadVoiceActivity(options: { path: string }): Promise<VoiceActivityModel>;
  /** `threads` is 1 where it is not given. It changes nothing of the results. */
  loadSpeakers(options: { path: string; threads?: number }): Promise<SpeakerModel>;
  /** `threads` changes nothing of the results. */
  loadTurnDetector(options: { path: string; threads: number }): Promise<TurnDetector>;
  /** Open files share a few threads, which work on each of them in turns of about 50 ms. */
  openAudio(path: string, format: NativeFormat, options?: OpenAudioFileOptions): Promise<NativeAudioFile>;
  /** Rewrites a ggml Whisper file (f16/f32) with its 2-d weights as q8_0, as whisper.cpp's `quantize` does. */
  quantize(options: { source: string; target: string; type: 'q8_0' }): Promise<void>;
}
