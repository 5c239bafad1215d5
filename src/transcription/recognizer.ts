/** The interface of the model families: a recognizer turns one chunk of speech into sentences. */
import type { ChunkOptions, Lane } from '../engine/types.ts';
import { createLanguageTally, type DetectedLanguage, type LanguageTally } from './language/tally.ts';
import type { SegmentGranularity, TaskType } from './request.ts';
import type { UnnumberedSegment, Word } from './segment.ts';
import type { Chunk, ChunkLimits } from './speech/chunks.ts';

export interface ChunkRequest {
  /** An ISO 639 code known to the model: the client's, or the only one left; undefined when it is to be detected. */
  language: string | undefined;
  /** The languages to choose among. If the model knows none of them, it chooses among all of its own. */
  languages: readonly string[];
  /** Resolves to what all chunks before tell, when those are done. */
  before(): Promise<EarlierChunks>;
  translate: boolean;
  prompt: string;
  /** Spellings of the words to expect, for a family that looks for them; for the others they are in the prompt. */
  keywords: readonly string[];
  temperature: number;
  /** Texts that are followed side by side where a chunk is in doubt, for a family that can; 1 is greedy decoding. */
  beams: number;
  /** True for a text that is computed anew in a moment, so that nothing which is in doubt is decoded again. */
  draft?: boolean;
  /** True for sentences with word times. Otherwise only the text matters, and the chunk may be one segment. */
  timed: boolean;
  /** Whole sentences, or subtitles for a recognizer with `cutsSubtitles`. */
  granularity?: SegmentGranularity;
  /** `transcribe_raw` is without punctuation and digits; the others have them. */
  taskType?: TaskType;
  signal: AbortSignal;
}

/** The options for families that decode a chunk in only one way: no prompt, no retries, and times for every token. */
export const GREEDY: Omit<ChunkOptions, 'language'> = {
  translate: false,
  prompt: '',
  temperature: 0,
  audioContext: 0,
  maxTokens: 0,
  beams: 1,
  times: true,
  words: true,
  again: false,
};

/** A span of the audio that has no text: the model only repeated itself or wrote no words, or the sound is missing. */
export interface Dropped {
  start: number;
  end: number;
  reason: 'repetition' | 'no_text' | 'damaged';
}

interface SpokenLanguage {
  detected: DetectedLanguage;
  /** The length of the speech in this language that became words. */
  seconds: number;
}

export interface Recognition {
  /** Empty when the chunk has no words. The last sentence may continue in the next chunk. */
  sentences: UnnumberedSegment[];
  /** The language of the chunk; of several, that of most of the speech. */
  detected: DetectedLanguage;
  /** Where the language changes in the chunk: each piece of it in one language. */
  spoken?: SpokenLanguage[];
  /** The parts of the chunk without text. Without sentences and without this, all of the chunk has no text. */
  dropped?: Dropped[];
  /** The syllables a second of a text that is short for its speech, where nothing more was heard in the parts of it. */
  completePace?: number;
}

/** The chunk, as speech that has no text. */
export const withoutText = (
  { startSec, endSec }: Pick<Chunk, 'startSec' | 'endSec'>,
  reason: Dropped['reason'],
): Dropped => ({ start: startSec, end: endSec, reason });

/** All speech of a chunk that has no text. */
export const speechWithoutText = ({
  chunk,
  sentences,
  dropped,
}: Pick<Recognition, 'sentences' | 'dropped'> & { chunk: Pick<Chunk, 'startSec' | 'endSec'> }): Dropped[] =>
  dropped ?? (sentences.length > 0 ? [] : [withoutText(chunk, 'no_text')]);

export interface Recognizer {
  /**
   * Spans of speech share a chunk within these limits, of which those of chunks.ts hold where none is given. `maxSec` is
   * at most 29; a longer span is a chunk of its own.
   * @param language that of the speech, if it is known before
   */
  limits(language: string | undefined): Partial<ChunkLimits>;
  /** True for a model that omits what is said far more softly than something else in its chunk. */
  readonly raisesSoft?: true;
  /** True when the recognizer gives subtitles instead of sentences to a client that asks for them. */
  readonly cutsSubtitles?: true;
  /** @throws `request.signal.reason` after an abort */
  recognize(lane: Lane, chunk: Chunk, request: ChunkRequest): Promise<Recognition>;
  /**
   * The words of a text that is said in the chunk, with their times; for families whose models have `aligns`.
   * @throws GatewayError `text_too_long`; `signal.reason` after an abort
   */
  align?(
    lane: Lane,
    chunk: Chunk,
    said: { text: string; language: string; signal: AbortSignal },
  ): Promise<Word[]>;
}

/**
 * Finds the recognizer of a family in its folder, such as `whisper/recognizer.ts`. A new family needs no change here.
 * @param family the family of a model in the catalogue. It must never come from a client, because it is put in a path.
 * @throws Error when the family has no file, which a test rules out for the catalogue
 */
export async function recognizerOf(family: string): Promise<Recognizer> {
  const { recognizer } = (await import(`./${family}/recognizer.ts`)) as { recognizer: Recognizer };
  return recognizer;
}

/** What the chunks before one tell about it. Pure. */
export interface EarlierChunks {
  readonly languages: LanguageTally;
  /** The slowest speech, in syllables a second, that was found to have all its text; infinite before any was. */
  readonly slowestPace: number;
}

export const NO_EARLIER_CHUNKS: EarlierChunks = {
  languages: createLanguageTally(undefined),
  slowestPace: Number.POSITIVE_INFINITY,
};
