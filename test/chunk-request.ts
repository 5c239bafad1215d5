/** What a recognizer is asked with: nothing special, but for the changes. */
import { createLanguageTally } from '../src/transcription/language-tally.ts';
import type { ChunkRequest } from '../src/transcription/recognizers/recognizer.ts';

export function chunkRequest(changes: Partial<ChunkRequest>): ChunkRequest {
  return {
    language: undefined,
    languages: [],
    before: async () => createLanguageTally(undefined),
    translate: false,
    prompt: '',
    beams: 1,
    temperature: 0,
    timed: false,
    signal: new AbortController().signal,
    ...changes,
  };
}
