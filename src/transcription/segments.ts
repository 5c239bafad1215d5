/** Words gathered into groups become segments, with the figures the API gives for each. Pure. */
import type { Chunk } from './chunks.ts';
import { compressionRatio } from './decoding.ts';

import type { UnnumberedSegment, Word } from './segment.ts';

/** What is the same for every group of one chunk. */
type Common = Pick<UnnumberedSegment, 'temperature' | 'noSpeechProb' | 'language' | 'emotion' | 'event'>;

export function toSegments(groups: Word[][], chunk: Chunk, common: Common): UnnumberedSegment[] {
  return groups.map((words) => {
    const text = words.map((word) => word.text).join('');
    return {
      seek: Math.round(chunk.startSec * 100),
      start: words[0]?.start ?? chunk.startSec,
      end: words.at(-1)?.end ?? chunk.startSec,
      text,
      words,
      avgLogprob: meanLogprob(words),
      compressionRatio: compressionRatio(text),
      ...common,
    };
  });
}

function meanLogprob(words: Word[]): number {
  const logprobs = words.flatMap((word) => word.tokens).filter((t) => t.bytes.length > 0);
  return logprobs.reduce((sum, token) => sum + token.logprob, 0) / Math.max(1, logprobs.length);
}
