/** Calls of animals and noises that people make without words, from a seed. */
import { between, type Random } from '../common/random.ts';
import {
  atPeak,
  dark,
  make,
  oscillator,
  resonance,
  type Sounds,
  scattered,
  sine,
  sum,
  white,
} from './synthesis.ts';

/** A chirp whose pitch glides. @param wave the levels of its harmonics */
function call(seconds: number, from: number, to: number, wave: readonly number[], warble = 0): Float32Array {
  const tone = oscillator(wave);
  return make(
    seconds,
    (t) =>
      Math.sin((Math.PI * t) / seconds) *
      tone(from + ((to - from) * t) / seconds + warble * sine(30, t)) *
      0.4,
  );
}

/** A call through a mouth that opens and closes, as of a cat or a cow. */
function mouthed(
  random: Random,
  seconds: number,
  pitch: readonly [number, number],
  breath: number,
): Float32Array {
  const tone = oscillator(Array.from({ length: 14 }, (_, i) => 1 / (i + 1)));
  const noise = white(random);
  const formants = [between(random, 400, 700), between(random, 900, 1500)].map((at) => resonance(at, 120));
  const [from, to] = pitch;
  return atPeak(
    make(seconds, (t) => {
      const open = Math.sin((Math.PI * t) / seconds);
      const source = open * (tone(from + ((to - from) * t) / seconds) + breath * noise());
      return formants.reduce((all, formant) => all + formant(source), 0);
    }),
    0.5,
  );
}

export const CREATURES: Sounds = {
  birds: (seconds, random) =>
    scattered(seconds, random, between(random, 1, 5), () => {
      const from = between(random, 1800, 5000);
      return call(between(random, 0.05, 0.3), from, from * between(random, 0.6, 1.5), [1], 200 * random());
    }),
  crickets: (seconds, random) => {
    const [pitch, rate] = [between(random, 3500, 5500), between(random, 20, 60)];
    const [pause, phase] = [between(random, 0.5, 3), random()];
    return make(seconds, (t) =>
      sine(1 / pause, t + phase) > 0 ? 0.15 * Math.max(0, sine(rate, t)) * sine(pitch, t) : 0,
    );
  },
  frogs: (seconds, random) =>
    scattered(seconds, random, between(random, 1, 4), () => {
      const rate = between(random, 20, 60);
      return call(0.4, between(random, 400, 900), between(random, 400, 900), [1, 0.6, 0.4, 0.2]).map(
        (sample, i) => sample * Math.max(0, sine(rate, i / 16_000)),
      );
    }),
  bees: (seconds, random) => {
    const buzz = oscillator([0.2, 0.15, 0.12, 0.1, 0.08, 0.06]);
    const [pitch, pace] = [between(random, 150, 280), between(random, 0.2, 1)];
    return make(seconds, (t) => (0.5 + 0.4 * sine(pace, t)) * buzz(pitch * (1 + 0.06 * sine(3 * pace, t))));
  },
  'an owl': (seconds, random) =>
    scattered(seconds, random, 0.5, () => call(between(random, 0.3, 0.7), 420, 360, [1, 0.1])),
  'a dog': (seconds, random) =>
    scattered(seconds, random, between(random, 0.5, 2), () =>
      mouthed(random, between(random, 0.12, 0.25), [between(random, 300, 500), between(random, 150, 300)], 2),
    ),
  'a cat': (seconds, random) =>
    scattered(seconds, random, 0.5, () =>
      mouthed(random, between(random, 0.5, 1.2), [between(random, 500, 700), between(random, 350, 500)], 0.1),
    ),
  'a cow': (seconds, random) =>
    scattered(seconds, random, 0.35, () => mouthed(random, between(random, 1, 2), [110, 140], 0.2)),
  whales: (seconds, random) =>
    scattered(seconds, random, 0.4, () =>
      call(between(random, 1, 3), between(random, 150, 600), between(random, 150, 900), [1, 0.4, 0.2]),
    ),
  coughing: (seconds, random) =>
    scattered(seconds, random, 0.8, () =>
      sum(...[0.25, 0.2].map((length) => mouthed(random, length, [180, 120], 12))),
    ),
  breathing: (seconds, random) => {
    const [noise, rate] = [dark(random, 0.3), between(random, 0.25, 0.5)];
    const body = resonance(between(random, 800, 1600), 600);
    return atPeak(
      make(seconds, (t) => body(noise()) * Math.max(0.02, Math.abs(sine(rate, t)) ** 2)),
      between(random, 0.02, 0.3),
    );
  },
  humming: (seconds, random) => {
    const tone = oscillator([1, 0.3, 0.1, 0.05]);
    const [pitch, beat] = [between(random, 110, 240), between(random, 0.4, 0.8)];
    const steps = Array.from({ length: 16 }, () => 2 ** (Math.floor(between(random, 0, 9)) / 12));
    let now = pitch;
    return make(seconds, (t) => {
      now += (pitch * (steps[Math.floor(t / beat) % 16] ?? 1) - now) / 800;
      return 0.25 * tone(now * (1 + 0.005 * sine(5, t)));
    });
  },
};
