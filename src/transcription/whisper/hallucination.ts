/**
 * Finds hallucinations: text that Whisper wrote where nobody speaks. Two models must be in doubt: the voice
 * activity model and Whisper itself. Each alone is also in doubt of some real words, but hardly ever both.
 * bench/results/hallucination.md has the figures. Pure.
 */
import type { Outcome } from '../decoding.ts';
import type { Chunk } from '../speech/chunks.ts';
import { isLoud } from '../speech/level.ts';

const MAX_NO_SPEECH = 0.3;
const MIN_AVG_LOGPROB = -0.6;
/** With a lower certainty of speech one sign of doubt in the text is enough. */
const DOUBTFUL = 0.8;
/** With a higher certainty of speech no sign is enough. */
const CERTAIN = 0.95;

export function isInvented(
  { noSpeechProb, avgLogprob }: Pick<Outcome, 'noSpeechProb' | 'avgLogprob'>,
  { speech, samples, gain }: Pick<Chunk, 'speech' | 'samples' | 'gain'>,
): boolean {
  const certainty = Math.max(...speech.map((span) => span.certainty));
  const signs = Number(noSpeechProb > MAX_NO_SPEECH) + Number(avgLogprob < MIN_AVG_LOGPROB);
  const isDoubtful = (certainty < CERTAIN && signs === 2) || (certainty < DOUBTFUL && signs === 1);
  return isDoubtful && isLoud(samples, gain);
}
