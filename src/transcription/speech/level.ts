/**
 * Brings soft audio to the level of clear speech for the voice activity model, which is less sure of speech the softer
 * it is. The models that write text hear the audio as it is: the features of Whisper and Parakeet do not depend on its
 * level. Loud sounds without speech are told from speech by the model's certainty. bench/results/decoding.md has the
 * figures. Pure.
 */
import { WINDOW_SAMPLES } from './voice-activity.ts';

/** The root mean square of the loudest quarter of a second in clear speech, samples in -1..1. */
const CLEAR = 0.1;
/** 40 dB. What is softer still is the noise of the recorder. */
const MAX_GAIN = 100;
const LOUDEST_WINDOWS = 8;
/** A block counts as at least half as loud as the one before, so that a pause does not become as loud as speech. */
const LEAST_SHARE = 0.5;

export interface Leveler {
  /** Takes the next block of a stream. @returns it with a gain of 1 or more; samples may exceed -1..1 */
  level(block: Float32Array): Float32Array;
  /** The gain of the sample at this place of the stream; 1 behind the last block. */
  gainAt(sample: number): number;
}

export function createLeveler(): Leveler {
  /** One for each block: a day of audio has some thousands. */
  const gains: { end: number; gain: number }[] = [];
  let before = 0;
  let end = 0;
  return {
    level(block) {
      before = Math.max(loudestIn(block), LEAST_SHARE * before);
      const gain = Math.min(MAX_GAIN, Math.max(1, CLEAR / before));
      end += block.length;
      gains.push({ end, gain });
      return gain === 1 ? block : block.map((sample) => gain * sample);
    },
    gainAt: (sample) => gains.find((block) => sample < block.end)?.gain ?? 1,
  };
}

/** The largest root mean square of `LOUDEST_WINDOWS` windows in a row, and of all samples where there are fewer. */
function loudestIn(block: Float32Array): number {
  const powers: number[] = [];
  let sum = 0;
  let most = 0;
  for (let start = 0; start < block.length; start += WINDOW_SAMPLES) {
    const power = powerOf(block.subarray(start, start + WINDOW_SAMPLES));
    powers.push(power);
    sum += power - (powers.at(-1 - LOUDEST_WINDOWS) ?? 0);
    most = Math.max(most, sum);
  }
  return block.length === 0 ? 0 : Math.sqrt(most / Math.min(block.length, LOUDEST_WINDOWS * WINDOW_SAMPLES));
}

/** The sum of the squares. */
export function powerOf(samples: Float32Array): number {
  let sum = 0;
  for (const sample of samples) sum += sample * sample;
  return sum;
}

/** The root mean square of samples in -1..1; -30 dBFS. Telephone speech is at -26 dBFS (ITU-T P.56). */
const LOUD = 0.03;
/** A loud span of a lower certainty is no speech: of 821 chunks of clear, distant or noisy speech none was below it. */
const LEAST_CERTAINTY = 0.6;
/** A client that lowers the threshold asks for less certain speech, too, and one that sets 0 for all of the audio. */
const OF_THRESHOLD = 1.2;

/**
 * The model is less sure of speech the softer it is, so its doubt tells something only where it heard loud audio.
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
