/**
 * Tells loud sounds without speech from speech, by the certainty of the voice activity model. The model is less sure
 * of speech the softer it is, so its doubt tells something only where it heard loud audio. bench/results/hallucination.md has the
 * figures. Pure.
 */
import { powerOf } from './level.ts';

/** The root mean square of samples in -1..1; -30 dBFS. Telephone speech is at -26 dBFS (ITU-T P.56). */
const LOUD = 0.03;
/** A loud span of a lower certainty is no speech: of 821 chunks of clear, distant or noisy speech none was below it. */
const LEAST_CERTAINTY = 0.6;
/** A client that lowers the threshold asks for less certain speech, too, and one that sets 0 for all of the audio. */
const OF_THRESHOLD = 1.2;

/**
 * @param certainty of a span of speech, 0 to 1
 * @param threshold the probability at which speech begins
 * @param samples gives those of the span, and is called only where the certainty leaves a doubt
 * @param gain that with which the model heard them
 */
export function isNoise(
  certainty: number,
  threshold: number,
  samples: () => Float32Array,
  gain = 1,
): boolean {
  return certainty < Math.min(LEAST_CERTAINTY, OF_THRESHOLD * threshold) && isLoud(samples(), gain);
}

export function isLoud(samples: Float32Array, gain = 1): boolean {
  return gain ** 2 * powerOf(samples) > LOUD * LOUD * samples.length;
}
