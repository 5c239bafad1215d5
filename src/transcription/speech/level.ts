/**
 * Brings soft audio to the level of clear speech for the voice activity model, which is less sure of speech the softer
 * it is. Within a block, what is far softer than the loud voice beside it is raised, too. The models that write text
 * hear the audio as it is: the features of Whisper and Parakeet do not depend on its level. But Whisper's depend on the
 * loudest sound of the chunk, so it hears spans that are far softer raised. Loud sounds without speech are told from
 * speech by the model's certainty. bench/results/decoding.md has the figures. Pure.
 */
import { type Span, WINDOW_SAMPLES } from './voice-activity.ts';

/** The root mean square of the loudest quarter of a second in clear speech, samples in -1..1. */
const CLEAR = 0.1;
/** 40 dB. What is softer still is the noise of the recorder. */
const MAX_GAIN = 100;
const LOUDEST_WINDOWS = 8;
/** A block counts as at least half as loud as the one before, so that a pause does not become as loud as speech. */
const LEAST_SHARE = 0.5;
/** Someone far away in a block with a loud voice: what is softer beside it is heard as this much of it, 26 dB softer. */
const FAR_SHARE = 0.05;
/** 0.75 s before and after a window say how loud it is there, so that the pauses of a sentence stay as soft as they are. */
const BESIDE_WINDOWS = 24;
/** Digital silence, and what is softer than a step of 16 bits. */
const LEAST_LOUDNESS = 1e-6;
/** The gains of so much audio are known, of which the longest chunk is a part. */
const KNOWN_WINDOWS = 4000;

/**
 * Removes the offset of a cheap microphone, which would hide soft speech: each block loses its mean, from the first one
 * on whose mean is greater than the root mean square of the sound around it. Other audio stays as it is, to the bit.
 */
export function createOffsetRemover() {
  let isThere = false;
  let offset = 0;
  return {
    /** Takes the next block of a stream. */
    remove(block: Float32Array): Float32Array {
      // In less audio a low sound has a mean, too.
      if (block.length >= LOUDEST_WINDOWS * WINDOW_SAMPLES) {
        const mean = sumOf(block) / block.length;
        isThere ||= 2 * mean ** 2 * block.length > powerOf(block);
        if (isThere) offset = mean;
      }
      return isThere ? block.map((sample) => sample - offset) : block;
    },
  };
}

export function createLeveler() {
  /** The gain of each window in the last blocks. The first one is that of the window number `first`. */
  let gains: number[] = [];
  let first = 0;
  let before = 0;
  return {
    /** Takes the next block of a stream. @returns it with gains of 1 or more; samples may exceed -1..1 */
    level(block: Float32Array): Float32Array {
      const loudness = loudnessOf(block);
      before = Math.max(maximum(loudness), LEAST_SHARE * before);
      const ofBlock = gainFor(before);
      const found = loudness.map((_, i) => {
        const beside = loudness.slice(Math.max(0, i - BESIDE_WINDOWS), i + BESIDE_WINDOWS + LOUDEST_WINDOWS);
        const raised = Math.max(LEAST_LOUDNESS, FAR_SHARE * before) / Math.max(LEAST_LOUDNESS, ...beside);
        return Math.min(MAX_GAIN, ofBlock * Math.max(1, raised));
      });
      const forgotten = Math.max(0, gains.length - KNOWN_WINDOWS);
      first += forgotten;
      gains = [...gains.slice(forgotten), ...found];
      return found.every((gain) => gain === 1) ? block : withGains(block, found);
    },
    /** The least gain from this sample of the stream up to another one; 1 behind the last block. */
    gainIn(start: number, end: number): number {
      const place = (window: number) => Math.max(0, window - first);
      const [from, to] = [Math.floor(start / WINDOW_SAMPLES), Math.ceil(end / WINDOW_SAMPLES)];
      const within = gains.slice(place(from), place(to));
      return within.length === 0 ? 1 : Math.min(...within);
    },
  };
}

const gainFor = (loudness: number) => Math.min(MAX_GAIN, Math.max(1, CLEAR / loudness));
const maximum = (values: readonly number[]) => values.reduce((most, value) => Math.max(most, value), 0);

/** From the middle of a window to that of the next one a gain becomes the other one. */
function withGains(block: Float32Array, gains: readonly number[]): Float32Array {
  return block.map((sample, i) => {
    const place = Math.max(0, i / WINDOW_SAMPLES - 0.5);
    const at = Math.floor(place);
    const gain = gains[at] ?? 1;
    const next = gains[at + 1] ?? gain;
    return sample * (gain + (place - at) * (next - gain));
  });
}

/** For each window the root mean square of `LOUDEST_WINDOWS` windows up to it, and of all samples where there are fewer. */
function loudnessOf(block: Float32Array): number[] {
  const powers: number[] = [];
  const loudness: number[] = [];
  const samples = Math.min(block.length, LOUDEST_WINDOWS * WINDOW_SAMPLES);
  let sum = 0;
  for (let start = 0; start < block.length; start += WINDOW_SAMPLES) {
    const power = powerOf(block.subarray(start, start + WINDOW_SAMPLES));
    powers.push(power);
    sum += power - (powers.at(-1 - LOUDEST_WINDOWS) ?? 0);
    loudness.push(Math.sqrt(Math.max(0, sum) / samples));
  }
  return loudness;
}

// Both see every sample of the audio, and an index is five times as fast here as `of`.
function sumOf(samples: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < samples.length; i += 1) sum += samples[i] as number;
  return sum;
}

/** The sum of the squares. */
export function powerOf(samples: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < samples.length; i += 1) sum += (samples[i] as number) ** 2;
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

/** 12 dB: a span of speech that is softer than the loudest of its chunk is raised up to here. */
const RAISED_SHARE = 0.25;
/** 30 dB. What is softer by more than this and 12 dB stays softer. */
const MAX_RAISE = 32;
/** 0.1 s: the gain of a span reaches 1 so soon in the pause beside it. */
const RAMP_SAMPLES = 1600;

/**
 * Raises the spans of speech that are far softer than the loudest, as those of someone far away, because Whisper omits
 * them. The pauses stay as they are.
 * @param samples of a chunk, which are changed
 * @param spans in samples, in order
 */
export function raiseSoftSpans(samples: Float32Array, spans: readonly Span[]): void {
  const levels = spans.map(({ start, end }) => maximum(loudnessOf(samples.subarray(start, end))));
  const loudest = maximum(levels);
  spans.forEach(({ start, end }, i) => {
    const gain = Math.min(MAX_RAISE, (RAISED_SHARE * loudest) / Math.max(LEAST_LOUDNESS, levels[i] ?? 0));
    if (gain <= 1) return;
    // Two raised spans share their pause.
    const before = Math.min(RAMP_SAMPLES, (start - (spans[i - 1]?.end ?? -start)) / 2);
    const after = Math.min(RAMP_SAMPLES, ((spans[i + 1]?.start ?? Number.POSITIVE_INFINITY) - end) / 2);
    const [from, to] = [Math.ceil(start - before), Math.min(samples.length, end + after)];
    for (let at = from; at < to; at += 1) {
      const outside = at < start ? (start - at) / before : at < end ? 0 : (at + 1 - end) / after;
      samples[at] = (samples[at] ?? 0) * (gain + outside * (1 - gain));
    }
  });
}
