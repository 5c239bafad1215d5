/**
 * Removes bleed from a call with one speaker on each channel: the other speaker, softer and a little later, as the echo
 * of a loudspeaker or the crosstalk of a line. Where there is bleed, the levels of both channels rise and fall together
 * for a second, which those of two people never do. Its gain is measured, and a channel that is no louder than that is
 * silenced. Someone who speaks over the other speaker is louder than that, and must stay. Pure.
 */
import { setImmediate } from 'node:timers/promises';
import { joined, SAMPLE_RATE } from './decoder.ts';

/** Samples of a window: 32 ms. A block of audio holds whole ones. */
const WINDOW = 512;
const windows = (sec: number) => Math.round((sec * SAMPLE_RATE) / WINDOW);

/** The channels are compared over a second, four times a second. */
const EXCERPT = windows(1);
const HOP = windows(0.25);
/** Bleed comes up to 0.3 s later; earlier where a channel was recorded with a delay. */
const MAX_LAG = windows(0.32);
/** The least correlation of the levels of one sound. */
const SAME_SOUND = 0.7;
/** Levels that change less, in dB, have no shape to compare. */
const STEADY_DB = 3;
/** An excerpt has sound if its loudest window is this far above the noise, which is this quantile of the levels. */
const ABOVE_NOISE_DB = 6;
const NOISE_QUANTILE = 0.1;
/** Bleed is at least this much softer than in the other channel, dB. */
const SOFTER_DB = 6;
/** Added to the measured gain, dB, because rooms and lines pass some sounds better than others. */
const MARGIN_DB = 4;
const BLEED_QUANTILE = 0.75;
/** The least share of the soft excerpts that hold the louder voice with the same lag. Two separate voices have none. */
const LEAST_SHARE = 0.15;
const LEAST_EXCERPTS = 2;
/** Levels are averaged over this many windows before and after each. */
const AROUND = windows(0.2);
/** Bleed changes during a long call, so it is measured for each stretch, together with its neighbors. */
const STRETCH = windows(30);

/** Equal channels hold one sound in most excerpts, and differ in level by a small and constant amount. */
const EQUAL = { share: 0.75, decibels: 12, spread: 3 };

const SILENCE_DB = -90;

/** Reads a channel to its end. @returns the level of each window, in dB of full scale: 0.5 MB an hour */
export async function levelsOf(blocks: AsyncIterable<Float32Array>): Promise<Float32Array> {
  const parts: Float32Array[] = [];
  for await (const block of blocks) {
    const levels = new Float32Array(Math.ceil(block.length / WINDOW));
    for (let i = 0; i < levels.length; i += 1) {
      const window = block.subarray(i * WINDOW, (i + 1) * WINDOW);
      let power = 0;
      for (const sample of window) power += sample * sample;
      levels[i] = decibels(power / window.length);
    }
    parts.push(levels);
  }
  return joined(parts);
}

/** For each window of a channel: 1 if it holds only bleed. */
export type Bleed = Uint8Array;

/** An excerpt with sound in at least one channel. */
interface Excerpt {
  /** How much louder the right channel is, dB. */
  difference: number;
  /** Whether there is sound in both. */
  both: boolean;
  /** If both have the same sound: its loudest level in each, and by how many windows the right one is later. */
  same: { lag: number; left: number; right: number } | null;
}

/** @returns the bleed in the left and in the right channel; null if both hold the same sound throughout */
export async function findBleed(left: Float32Array, right: Float32Array): Promise<[Bleed, Bleed] | null> {
  const length = Math.min(left.length, right.length);
  const excerpts: Excerpt[][] = [];
  for (let from = 0; from < length; from += STRETCH) {
    await setImmediate();
    excerpts.push(excerptsOf(left, right, { from, to: Math.min(length, from + STRETCH) }));
  }
  if (areEqual(excerpts.flat())) return null;
  const balance = balanceOf(excerpts.flat());
  const balanced = left.map((level) => level + balance);
  const bleeds: [Bleed, Bleed] = [new Uint8Array(left.length), new Uint8Array(right.length)];
  for (let i = 0; i < excerpts.length; i += 1) {
    await setImmediate();
    const near = excerpts.slice(Math.max(0, i - 1), i + 2).flat();
    const stretch = { from: i * STRETCH, to: Math.min(length, (i + 1) * STRETCH) };
    const seen = near.map((excerpt) => differencesOf(excerpt, balance));
    markBleed(seen, balanced, right, stretch, bleeds[1]);
    markBleed(seen.map(reversed), right, balanced, stretch, bleeds[0]);
  }
  return bleeds;
}

interface Range {
  from: number;
  to: number;
}

function excerptsOf(left: Float32Array, right: Float32Array, { from, to }: Range): Excerpt[] {
  const found: Excerpt[] = [];
  const [leftSound, rightSound] = [left, right].map((levels) => {
    const noise = quantile(levels.subarray(Math.max(0, from - STRETCH), to + STRETCH), NOISE_QUANTILE);
    return noise + ABOVE_NOISE_DB;
  }) as [number, number];
  for (let at = from; at < to && at + EXCERPT <= Math.min(left.length, right.length); at += HOP) {
    const [hasLeft, hasRight] = [loudest(left, at) > leftSound, loudest(right, at) > rightSound];
    if ((!hasLeft && !hasRight) || (isSteady(left, at) && isSteady(right, at))) continue;
    const both = hasLeft && hasRight;
    const difference = levelOf(right, at) - levelOf(left, at);
    found.push({ both, difference, same: both ? sameSound(left, right, at) : null });
  }
  return found;
}

function isSteady(levels: Float32Array, at: number): boolean {
  const excerpt = levels.subarray(at, at + EXCERPT);
  return Math.max(...excerpt) - Math.min(...excerpt) < STEADY_DB;
}

/** Finds the lag at which the levels of both channels correlate most; null if no correlation is high enough. */
function sameSound(left: Float32Array, right: Float32Array, at: number): Excerpt['same'] {
  let best = { lag: 0, correlation: 0 };
  for (let lag = -MAX_LAG; lag <= MAX_LAG; lag += 1) {
    if (at - lag < 0 || at - lag + EXCERPT > left.length) continue;
    const correlation = correlationOf(left.subarray(at - lag), right.subarray(at));
    if (correlation > best.correlation) best = { lag, correlation };
  }
  if (best.correlation < SAME_SOUND) return null;
  return { lag: best.lag, left: loudest(left, at - best.lag), right: loudest(right, at) };
}

/** The correlation of the levels of an excerpt, -1 to 1. */
function correlationOf(a: Float32Array, b: Float32Array): number {
  let [sumA, sumB, squaresA, squaresB, products] = [0, 0, 0, 0, 0];
  for (let i = 0; i < EXCERPT; i += 1) {
    const [x, y] = [a[i] as number, b[i] as number];
    sumA += x;
    sumB += y;
    squaresA += x * x;
    squaresB += y * y;
    products += x * y;
  }
  const [varianceA, varianceB] = [squaresA - sumA ** 2 / EXCERPT, squaresB - sumB ** 2 / EXCERPT];
  if (Math.min(varianceA, varianceB) === 0) return 0;
  return (products - (sumA * sumB) / EXCERPT) / Math.sqrt(varianceA * varianceB);
}

function areEqual(excerpts: readonly Excerpt[]): boolean {
  const differences = excerpts.flatMap(({ same }) => (same ? [same.right - same.left] : []));
  if (differences.length < LEAST_EXCERPTS || differences.length < EQUAL.share * excerpts.length) return false;
  const [low, high] = [quantile(differences, 0.1), quantile(differences, 0.9)];
  return high - low <= EQUAL.spread && Math.max(Math.abs(low), Math.abs(high)) <= EQUAL.decibels;
}

/**
 * How much louder one channel was recorded than the other, dB to be added to the left one. The bleed of a loud channel
 * may be louder than the voice in a soft one. That there are two speakers shows all the same: when the other one speaks,
 * one channel gets louder and the other softer.
 */
function balanceOf(excerpts: readonly Excerpt[]): number {
  const same = excerpts.flatMap(({ same }) => same ?? []);
  const differences = same.map(({ left, right }) => right - left);
  const middle = (quantile(differences, 0.1) + quantile(differences, 0.9)) / 2;
  const [ofRight, ofLeft] = [true, false].map((isRight) => {
    const those = same.filter(({ left, right }) => right - left > middle === isRight);
    return { left: median(those.map(({ left }) => left)), right: median(those.map(({ right }) => right)) };
  }) as [Record<'left' | 'right', number>, Record<'left' | 'right', number>];
  const turns = Math.min(ofLeft.left - ofRight.left, ofRight.right - ofLeft.right);
  return turns >= SOFTER_DB ? middle : 0;
}

/** How much louder a channel is than the other one: in all of an excerpt, and in the sound that both have. */
interface Differences {
  both: boolean;
  difference: number;
  same: { lag: number; difference: number } | null;
}

const differencesOf = ({ both, difference, same }: Excerpt, balance: number): Differences => ({
  both,
  difference: difference - balance,
  same: same && { lag: same.lag, difference: same.right - same.left - balance },
});

const reversed = ({ both, difference, same }: Differences): Differences => ({
  both,
  difference: -difference,
  same: same && { lag: -same.lag, difference: -same.difference },
});

/** Marks the windows of a stretch of `heard` that hold only bleed from `source`, the other channel. */
function markBleed(
  excerpts: readonly Differences[],
  source: Float32Array,
  heard: Float32Array,
  { from, to }: Range,
  bleed: Bleed,
): void {
  const softer = excerpts.filter(({ both, difference }) => both && difference < -SOFTER_DB);
  const found = softer.flatMap(({ same }) => (same && same.difference < -SOFTER_DB ? [same] : []));
  const lag = Math.round(median(found.map(({ lag }) => lag)));
  const same = found.filter((one) => Math.abs(one.lag - lag) <= 1);
  if (same.length < LEAST_EXCERPTS || same.length < LEAST_SHARE * softer.length) return;
  const differences = same.map(({ difference }) => difference);
  const gain = quantile(differences, BLEED_QUANTILE);
  const most = Math.min(-SOFTER_DB, gain + MARGIN_DB);
  const sourceLevels = smoothed(source, { from: from - lag - 1, to: to - lag + 1 });
  const levels = smoothed(heard, { from, to });
  for (let i = from; i < to; i += 1) {
    const at = i - from;
    const loudest = Math.max(...sourceLevels.subarray(at, at + 3));
    if ((levels[at] as number) < loudest + most) bleed[i] = 1;
  }
}

/** The level of each window of a range, averaged with the windows around it. */
function smoothed(levels: Float32Array, { from, to }: Range): Float32Array {
  const power = (i: number) => (i < 0 || i >= levels.length ? 0 : 10 ** ((levels[i] as number) / 10));
  const out = new Float32Array(to - from);
  let sum = 0;
  for (let i = from - AROUND; i < from + AROUND; i += 1) sum += power(i);
  for (let i = from; i < to; i += 1) {
    sum += power(i + AROUND);
    out[i - from] = decibels(sum / (2 * AROUND + 1));
    sum -= power(i - AROUND);
  }
  return out;
}

/** Samples of a fade, 10 ms, so that silencing makes no click. */
const FADE = 160;

/** The blocks of a channel with its bleed silenced. */
export async function* withoutBleed(
  blocks: AsyncIterable<Float32Array>,
  bleed: Bleed,
): AsyncGenerator<Float32Array, void, undefined> {
  let first = 0;
  for await (const block of blocks) {
    for (let at = 0; at < block.length; at += WINDOW) {
      const i = first + at / WINDOW;
      if (!bleed[i]) continue;
      const window = block.subarray(at, at + WINDOW);
      const fadesOut = i > 0 && !bleed[i - 1];
      const fadesIn = i + 1 < bleed.length && !bleed[i + 1];
      for (let j = 0; j < window.length; j += 1) {
        const share = Math.max(fadesOut ? 1 - j / FADE : 0, fadesIn ? 1 - (WINDOW - 1 - j) / FADE : 0);
        window[j] = share > 0 ? share * (window[j] as number) : 0;
      }
    }
    first += block.length / WINDOW;
    yield block;
  }
}

const decibels = (power: number) => Math.max(SILENCE_DB, 10 * Math.log10(power));

const loudest = (levels: Float32Array, at: number) => Math.max(...levels.subarray(at, at + EXCERPT));

function levelOf(levels: Float32Array, at: number): number {
  let sum = 0;
  for (let i = at; i < at + EXCERPT; i += 1) sum += 10 ** ((levels[i] as number) / 10);
  return decibels(sum / EXCERPT);
}

function quantile(values: ArrayLike<number>, share: number): number {
  const sorted = Float32Array.from(values).sort();
  return sorted[Math.floor(share * (sorted.length - 1))] ?? 0;
}

const median = (values: ArrayLike<number>) => quantile(values, 0.5);
