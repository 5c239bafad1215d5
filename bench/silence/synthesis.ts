/** The parts that generated sounds are put together from. A sound comes out the same at every run for the same seed. */
import { between, type Random } from '../common/random.ts';
import { addAt, RATE } from '../common/samples.ts';

const FULL_TURN = 2 * Math.PI;

/** Makes so many seconds of a sound, at 16 kHz in -1..1; `random` chooses its tune, pitch and pace. */
export type Sound = (seconds: number, random: Random) => Float32Array;
/** Sounds of one kind, by name. */
export type Sounds = Readonly<Record<string, Sound>>;

export const sine = (frequency: number, t: number) => Math.sin(FULL_TURN * frequency * t);
/** Tones of one level that sound together. */
export const tones = (frequencies: readonly number[], level: number, t: number) =>
  frequencies.reduce((all, tone) => all + level * sine(tone, t), 0);
export const oneOf = <T>(random: Random, [first, ...rest]: readonly [T, ...T[]]): T =>
  [first, ...rest][Math.floor(random() * (rest.length + 1))] ?? first;

export function make(seconds: number, at: (t: number, i: number) => number): Float32Array {
  return Float32Array.from({ length: Math.round(seconds * RATE) }, (_, i) => at(i / RATE, i));
}

/** An oscillator whose frequency may change with each sample. @param harmonics the level of each multiple */
export function oscillator(harmonics: readonly number[]): (frequency: number) => number {
  let phase = 0;
  return (frequency) => {
    phase = (phase + frequency / RATE) % 1;
    return harmonics.reduce(
      (sum, level, i) => (level === 0 ? sum : sum + level * Math.sin(FULL_TURN * phase * (i + 1))),
      0,
    );
  };
}

export const white = (random: Random) => () => 2 * random() - 1;

/** Noise through a low pass of one pole, at about the same power. @param smoothing 0 is white, towards 1 is darker */
export function dark(random: Random, smoothing: number): () => number {
  const gain = Math.sqrt((1 + smoothing) / (1 - smoothing));
  let last = 0;
  return () => {
    last = smoothing * last + (1 - smoothing) * (2 * random() - 1);
    return last * gain;
  };
}

/** A resonance of two poles, as a formant or the body of an instrument has. */
export function resonance(frequency: number, bandwidth: number): (input: number) => number {
  const radius = Math.exp((-Math.PI * bandwidth) / RATE);
  const turn = 2 * radius * Math.cos((FULL_TURN * frequency) / RATE);
  let [last, before] = [0, 0];
  return (input) => {
    const out = (1 - radius) * input + turn * last - radius * radius * before;
    [before, last] = [last, out];
    return out;
  };
}

/** Adds events that begin at random times, `rate` a second. @param event makes one of so many seconds */
export function scattered(
  seconds: number,
  random: Random,
  rate: number,
  event: () => Float32Array,
): Float32Array {
  const out = new Float32Array(Math.round(seconds * RATE));
  for (let at = between(random, 0, 1 / rate); at < seconds; at += -Math.log(1 - random()) / rate) {
    addAt(out, event(), Math.round(at * RATE));
  }
  return out;
}

export function sum(...parts: Float32Array[]): Float32Array {
  const out = new Float32Array(parts[0]?.length ?? 0);
  for (const part of parts) addAt(out, part, 0);
  return out;
}

/** Scales to a peak, so that sounds of all kinds are about as loud as speech. */
export function atPeak(samples: Float32Array, peak: number): Float32Array {
  const most = samples.reduce((max, sample) => Math.max(max, Math.abs(sample)), 1e-9);
  return samples.map((sample) => (sample * peak) / most);
}
