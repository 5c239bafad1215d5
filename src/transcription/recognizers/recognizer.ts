/** What every model family offers the use case: one chunk of speech in, sentences out. */
import type { ChunkOptions, Lane } from '../../engine/types.ts';
import type { Chunk } from '../chunks.ts';
import type { UnnumberedSegment } from '../segment.ts';

export interface ChunkRequest {
  /** ISO 639 code the client gave, known to the model; undefined = to be detected. */
  language: string | undefined;
  /** The languages to choose among; all of the model's where it knows none of these. */
  languages: readonly string[];
  /** What was heard in the chunk before, which may still be worked on; null for the first. */
  before(): Promise<DetectedLanguage | null>;
  translate: boolean;
  prompt: string;
  temperature: number;
  /** Sentences with word times; without, only the text matters and the chunk may be one segment. */
  timed: boolean;
  /** Whole sentences, or pieces to be read on a screen, for a recognizer that cuts them. */
  granularity?: 'sentence' | 'subtitle';
  /** Whether to write punctuation and digits; `rich` as `transcribe`. */
  taskType?: 'transcribe' | 'transcribe_raw' | 'rich';
  signal: AbortSignal;
}

/** What a family is asked that decodes a chunk in one way: no prompt, no other attempt, and times for every token. */
export const GREEDY: Omit<ChunkOptions, 'language'> = {
  translate: false,
  prompt: '',
  temperature: 0,
  audioContext: 0,
  maxTokens: 0,
  words: true,
};

/** A language and how sure the model is of it (0..1; 1 when the client gave it). */
export interface DetectedLanguage {
  language: string;
  probability: number;
}

export interface Recognition {
  /** None when the chunk holds no words. The last one may go on in the next chunk. */
  sentences: UnnumberedSegment[];
  detected: DetectedLanguage;
  /** Why speech was found but no text can be given: the engine only repeats itself. */
  dropped?: 'repetition';
}

/** How speech is put together for a family. */
export interface Packing {
  /** Longest chunk, seconds, at most 30. */
  maxSec: number;
  /** Whether chunks gain from being joined across long pauses, where nobody asked for times. */
  joinsAcrossPauses: boolean;
}

export interface Recognizer {
  readonly packing: Packing;
  /** Whether it gives subtitles in place of sentences where the client asks for them. */
  readonly cutsSubtitles?: true;
  /** @throws `request.signal.reason` when aborted */
  recognize(lane: Lane, chunk: Chunk, request: ChunkRequest): Promise<Recognition>;
}
