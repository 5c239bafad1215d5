/**
 * Finds slips: places where bytes are missing from uncompressed samples, or too many. Everything behind one would be
 * loud noise, because each sample is made of parts of two. Places all over the file are tested for it: read from the
 * wrong byte, the highest byte of a sample is the lowest of a real one, which in speech and music is random.
 */
import type { Loss } from './decoder.ts';
import type { Edit } from './edits.ts';
import type { PcmLayout, ReadAt } from './sample-chunk.ts';

type SampleLayout = Pick<PcmLayout, 'width' | 'channels' | 'isBigEndian' | 'isFloat'>;

/** The edit that makes the samples whole again, and its time. */
export interface Slip extends Edit {
  sec: number;
}

/** One place in each second is tested, at most this many. Two slips between them that cancel each other are not seen. */
const PLACES = 16;
/** Samples of each channel that are tested in one place. */
const SAMPLES = 1024;
/** Further channels need no test, as all slip together. */
const MAX_CHANNELS = 8;
/** How uneven the values of a byte may be to count as random. Truly random ones have 1.25 in this many samples. */
const MAX_UNEVENNESS = 1.6;
/** White noise has no correlation with itself at these lags. */
const [MAX_LAG, MAX_CORRELATION] = [4, 0.2];
/** The highest energy of the steps between samples, right reading over wrong reading. */
const MAX_STEPS = 0.25;
/** The fewest values of the highest byte. With fewer, the sound is too soft to judge, or was made of fewer bits. */
const LEAST_VALUES = 4;
/** Floats of sound are 0 or between these sizes; sound has at least this energy. */
const [LEAST_FLOAT, MOST_FLOAT, LEAST_ENERGY] = [2 ** -40, 16, 1e-5];
const [MOSTLY, SELDOM] = [0.99, 0.5];
/** The place of a slip is known to within this. */
const NEAR_SEC = 0.05;

/** The slips as losses. */
export const lossesOf = (slips: readonly Slip[]): Loss[] =>
  slips.map(({ sec }) => ({ startSec: Math.max(0, sec - NEAR_SEC), endSec: sec + NEAR_SEC }));

/** The slips of a file, in order. */
export async function findSlips(readAt: ReadAt, layout: PcmLayout): Promise<Slip[]> {
  const { start, bytes, width, channels, rate } = layout;
  const frame = width * channels;
  const frames = Math.floor((bytes - width) / frame) - SAMPLES;
  if (frames < SAMPLES) return [];
  const partAt = (at: number) => readAt(start + at * frame, SAMPLES * frame + width);
  const phaseAt = async (at: number) => phaseOf(await partAt(at), layout);
  const count = Math.min(PLACES, Math.ceil(frames / rate));
  const places: { at: number; part: Buffer }[] = [];
  for (let i = 0; i <= count; i += 1) {
    const at = Math.floor((frames * i) / count);
    places.push({ at, part: await partAt(at) });
  }
  // Nearly every file ends here, so this has to be quick.
  if (!layout.isFloat && !places.some(({ part }) => isLeftToChance(part, layout))) return [];
  const slips: Slip[] = [];
  let last: { at: number; phase: number } | null = null;
  for (const { at, part } of places) {
    const phase = phaseOf(part, layout);
    if (phase === null) continue;
    // A file that is wrong from its start did not slip.
    if (last === null && phase !== 0) return [];
    if (last !== null && phase !== last.phase) {
      let [low, high] = [last.at, at];
      while (high - low > SAMPLES / 8) {
        const middle = Math.floor((low + high) / 2);
        if ((await phaseAt(middle)) === phase) high = middle;
        else low = middle;
      }
      slips.push(slipAt(high, last.phase, phase, layout));
    }
    last = { at, phase };
  }
  return slips;
}

/**
 * The bytes before the first whole sample, of integers that come as a stream; 0 where they begin with it, and also where
 * they are too few or the sound does not show it.
 */
export function slipOf(stream: Buffer, layout: SampleLayout): number {
  const bytes = stream.subarray(0, SAMPLES * layout.width * layout.channels + layout.width);
  return isLeftToChance(bytes, layout) ? (phaseOf(bytes, layout) ?? 0) : 0;
}

/** Removes one byte that is too many, or inserts what is missing to a whole sample. */
function slipAt(
  at: number,
  before: number,
  phase: number,
  { start, width, channels, rate }: PcmLayout,
): Slip {
  const moved = (phase - before + width) % width;
  const isExtra = moved === 1 && width > 2;
  return {
    at: start + at * width * channels + before,
    remove: isExtra ? 1 : 0,
    insert: new Uint8Array(isExtra ? 0 : width - moved),
    sec: at / rate,
  };
}

/**
 * The byte at which a sample begins, from 0; null if the sound does not show it.
 * @param bytes begin with a sample if nothing slipped
 */
function phaseOf(bytes: Buffer, layout: SampleLayout): number | null {
  const { width, channels, isBigEndian } = layout;
  if (bytes.length < SAMPLES * width * channels + width) return null;
  const lanes = Array.from({ length: Math.min(channels, MAX_CHANNELS) }, (_, channel) => channel * width);
  const readings = Array.from({ length: width }, (_, phase) => {
    const all = lanes.map((lane) => readingOf(samplesAt(bytes, lane + phase, layout), layout.isFloat));
    return {
      steps: Math.max(...all.map(({ steps }) => steps)),
      isNoise: all.some(({ isNoise }) => isNoise),
      isSound: all.some(({ isSound }) => isSound),
    };
  });
  const phase = readings.findIndex(({ isSound, isNoise, steps }, at) => {
    // In this reading the lowest byte is taken for the highest.
    const wrong = readings[(at + (isBigEndian ? width - 1 : 1)) % width];
    return isSound && !isNoise && wrong?.isNoise && steps < wrong.steps * MAX_STEPS;
  });
  return phase < 0 ? null : phase;
}

/** True if the highest byte of some channel looks random. */
function isLeftToChance(part: Buffer, { width, channels, isBigEndian }: SampleLayout): boolean {
  const highest = isBigEndian ? 0 : width - 1;
  return Array.from({ length: Math.min(channels, MAX_CHANNELS) }, (_, channel) => {
    const counts = new Float64Array(256);
    for (let at = channel * width + highest; at < part.length; at += width * channels)
      counts[part[at] as number] = (counts[part[at] as number] as number) + 1;
    return unevennessOf(counts);
  }).some((unevenness) => unevenness < MAX_UNEVENNESS);
}

const unevennessOf = (counts: Float64Array) =>
  (256 * counts.reduce((sum, count) => sum + count * count, 0)) / SAMPLES ** 2;

/** The samples of one channel, -1 to 1. */
function samplesAt(bytes: Buffer, from: number, { width, channels, isBigEndian, isFloat }: SampleLayout) {
  const read = isFloat
    ? (at: number) => (isBigEndian ? bytes.readFloatBE(at) : bytes.readFloatLE(at))
    : (at: number) =>
        (isBigEndian ? bytes.readIntBE(at, width) : bytes.readIntLE(at, width)) / 2 ** (8 * width - 1);
  const samples = new Float64Array(SAMPLES);
  for (let i = 0, at = from; i < SAMPLES && at + width <= bytes.length; i += 1, at += width * channels)
    samples[i] = read(at);
  return samples;
}

/** What samples are like when they are read from a certain byte on. */
interface Reading {
  /** The energy of the steps from sample to sample. */
  steps: number;
  isNoise: boolean;
  isSound: boolean;
}

function readingOf(samples: Float64Array, isFloat: boolean): Reading {
  if (isFloat) return floatReading(samples);
  const counts = new Float64Array(256);
  for (const sample of samples) {
    const value = Math.floor(sample * 128) + 128;
    counts[value] = (counts[value] ?? 0) + 1;
  }
  const energy = energyOf(samples, 0);
  const lags = Array.from({ length: MAX_LAG }, (_, lag) => lag + 1);
  return {
    steps: energyOf(samples, 1),
    isNoise:
      unevennessOf(counts) < MAX_UNEVENNESS &&
      lags.every((lag) => Math.abs(1 - energyOf(samples, lag) / (2 * energy)) < MAX_CORRELATION),
    isSound: counts.filter((count) => count > 0).length >= LEAST_VALUES,
  };
}

function floatReading(samples: Float64Array): Reading {
  const sane = samples.filter((sample) => {
    const size = Math.abs(sample);
    return size === 0 || (size > LEAST_FLOAT && size < MOST_FLOAT);
  });
  const isNoise = sane.length < SELDOM * SAMPLES;
  const isSound = sane.length > MOSTLY * SAMPLES && energyOf(sane, 0) > LEAST_ENERGY;
  return { steps: isNoise ? 1 : 0, isNoise, isSound };
}

/** The mean energy of the samples, or with a lag that of their differences. */
function energyOf(samples: Float64Array, lag: number): number {
  let sum = 0;
  for (let i = lag; i < samples.length; i += 1)
    sum += ((samples[i] as number) - (lag > 0 ? (samples[i - lag] as number) : 0)) ** 2;
  return sum / Math.max(1, samples.length - lag);
}
