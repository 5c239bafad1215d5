/** What is asked of a transcription, in domain terms. `wire/request.ts` makes it of the fields that a client sends. */
import type { Channel } from '../audio/decoder.ts';
import type { ChannelLabels } from './channels.ts';
import type { SubtitleSize } from './text/subtitles.ts';

export const FORMATS = ['json', 'text', 'srt', 'verbose_json', 'vtt', 'diarized_json'] as const;
export const TASKS = ['transcribe', 'transcribe_raw', 'rich'] as const;

export type ResponseFormat = (typeof FORMATS)[number];
export type Granularity = 'word' | 'segment';
export type SegmentGranularity = 'sentence' | 'subtitle';
/**
 * The task of the CJK model: text with punctuation and digits, text without them, or text with the emotion and the
 * sound event of each segment.
 */
export type TaskType = (typeof TASKS)[number];

/** What a client says about the speakers that are to be told apart by their voices. */
export interface SpeakerRequest {
  /** The least and the most speakers; the same number twice when the client knows it. */
  count: { min: number; max: number };
  /** The persons whose voices the client gives. `reference` is a data URL of a sound. */
  known: readonly { name: string; reference: string }[];
}

/** When speech begins and ends. An undefined value means the default of the gateway. */
export interface VoiceActivityTuning {
  /** The probability at which speech begins, 0..1. */
  threshold: number | undefined;
  prefixPaddingMs: number | undefined;
  silenceDurationMs: number | undefined;
}

export interface TranscriptionRequest {
  model: string | undefined;
  /** ISO 639 code. */
  language: string | undefined;
  /** The languages to choose among when none is given; empty means all. */
  languages: readonly string[];
  prompt: string;
  keywords: readonly string[];
  /** The text to align; absent when the text is to be heard. */
  text?: string;
  temperature: number;
  /** Texts that are followed side by side where a chunk is in doubt; undefined for the default of the gateway. */
  beamSize: number | undefined;
  responseFormat: ResponseFormat;
  granularities: ReadonlySet<Granularity>;
  segmentGranularity: SegmentGranularity;
  subtitleSize: SubtitleSize;
  logprobs: boolean;
  /** True for the model of OpenAI whose answers list the languages. */
  listsLanguages: boolean;
  voiceActivity: VoiceActivityTuning;
  taskType: TaskType;
  translate: boolean;
  stream: boolean;
  /** Null when speakers are not told apart by their voices. */
  speakers: SpeakerRequest | null;
  /** Who speaks on each channel; null when the average of all channels is heard. */
  channels: ChannelLabels | null;
  /** The one channel of two that is heard; undefined for both. */
  channel: Channel | undefined;
  /** The audio track of a file with several, from 0; undefined for the best one. */
  track: number | undefined;
}
