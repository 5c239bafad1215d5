/** What a recognizer is asked with: nothing special, but for the changes. */
import type { DetectedLanguage } from '../src/transcription/language/tally.ts';
import { type ChunkRequest, type EarlierChunks, NO_EARLIER_CHUNKS } from '../src/transcription/recognizer.ts';

export function chunkRequest(changes: Partial<ChunkRequest>): ChunkRequest {
  return {
    language: undefined,
    languages: [],
    before: async () => NO_EARLIER_CHUNKS,
    translate: false,
    prompt: '',
    keywords: [],
    beams: 1,
    temperature: 0,
    timed: false,
    signal: new AbortController().signal,
    ...changes,
  };
}

/** What the chunks before tell when there was a second of speech in one language. */
export const afterSpeechIn = (language: DetectedLanguage): EarlierChunks => ({
  ...NO_EARLIER_CHUNKS,
  languages: NO_EARLIER_CHUNKS.languages.with(language, 1),
});
