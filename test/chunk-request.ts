/** What a recognizer is asked with: nothing special, but for the changes. */

import type { DetectedLanguage } from '../src/transcription/language/tally.ts';
import { type ChunkRequest, type HeardBefore, NOTHING_BEFORE } from '../src/transcription/recognizer.ts';

export function chunkRequest(changes: Partial<ChunkRequest>): ChunkRequest {
  return {
    language: undefined,
    languages: [],
    before: async () => NOTHING_BEFORE,
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
export const afterSpeechIn = (language: DetectedLanguage): HeardBefore => ({
  ...NOTHING_BEFORE,
  languages: NOTHING_BEFORE.languages.with(language, 1),
});
