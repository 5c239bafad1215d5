/** Noises: of weather, of machines, of crowds without words, and of things that are struck. */
import { between, type Random } from '../common/random.ts';
import { addAt, RATE } from '../common/samples.ts';
import {
  atPeak,
  dark,
  make,
  oneOf,
  oscillator,
  resonance,
  type Sound,
  type Sounds,
  scattered,
  sine,
  sum,
  white,
} from './synthesis.ts';

/** A short burst that rings. @param tone 0 for plain noise */
function knock(random: Random, decay: number, tone: number, level: number): Float32Array {
  const noise = white(random);
  const ring = tone > 0 ? resonance(tone, 60) : null;
  return atPeak(
    make(6 / decay, (t) => {
      const strike = Math.exp(-t * decay * 4) * noise();
      return ring === null ? Math.exp(-t * decay) * noise() : ring(strike);
    }),
    level,
  );
}

/** Knocks at a steady pace that sways a little. */
function paced(seconds: number, random: Random, rate: number, event: () => Float32Array): Float32Array {
  const out = new Float32Array(Math.round(seconds * RATE));
  for (let at = 0.1; at < seconds; at += between(random, 0.85, 1.15) / rate)
    addAt(out, event(), Math.round(at * RATE));
  return out;
}

/** Steady noise. @param levels powers of ten @param smoothings of its layers, 0 for white noise */
function steady(levels: readonly [number, number], ...smoothings: number[]): Sound {
  return (seconds, random) => {
    const layers = smoothings.map((smoothing) => (smoothing === 0 ? white(random) : dark(random, smoothing)));
    const level = 10 ** between(random, ...levels);
    return make(seconds, () => level * layers.reduce((all, layer) => all + layer(), 0));
  };
}

/** Noise whose level wanders. @param pace how often a second it changes */
function gusts(seconds: number, random: Random, smoothing: number, pace: number): Float32Array {
  const noise = dark(random, smoothing);
  const phases = [random(), random(), random()];
  return make(seconds, (t) => {
    const swell = phases.reduce((all, phase, i) => all + sine(pace * (0.4 + 0.37 * i), t + 10 * phase), 0);
    return 0.15 * (1.2 + 0.33 * swell) * noise();
  });
}

/** An engine: harmonics of its firing rate, which sways, with noise. */
function engine(seconds: number, random: Random, rate: number, noisy: number): Float32Array {
  const turns = oscillator([0.3, 0.25, 0.2, 0.12, 0.1, 0.08, 0.05]);
  const [noise, sway] = [dark(random, 0.9), between(random, 0.1, 0.6)];
  return make(seconds, (t) => 0.5 * turns(rate * (1 + 0.15 * sine(sway, t))) + noisy * 0.2 * noise());
}

export const NOISES: Sounds = {
  silence: (seconds) => make(seconds, () => 0),
  'almost silence': steady([-4.3, -2.7], 0),
  'white noise': steady([-2.3, -0.3], 0),
  'pink noise': steady([-2.3, -0.9], 0, 0.7, 0.93, 0.985),
  'brown noise': steady([-2, -0.5], 0.995),
  wind: (seconds, random) => gusts(seconds, random, between(random, 0.9, 0.99), between(random, 0.1, 0.7)),
  surf: (seconds, random) => gusts(seconds, random, between(random, 0.3, 0.8), between(random, 0.05, 0.2)),
  rain: (seconds, random) => {
    const [noise, level] = [white(random), between(random, 0.01, 0.08)];
    const drops = scattered(seconds, random, between(random, 10, 60), () =>
      knock(random, 300, between(random, 1000, 4000), between(random, 0.05, 0.4)),
    );
    return sum(
      make(seconds, () => level * noise()),
      drops,
    );
  },
  crackle: (seconds, random) =>
    scattered(seconds, random, between(random, 2, 40), () =>
      knock(random, 1500, 0, between(random, 0.1, 0.9)),
    ),
  applause: (seconds, random) =>
    scattered(seconds, random, between(random, 20, 250), () =>
      knock(random, between(random, 60, 150), between(random, 800, 2000), 0.3),
    ),
  'a crowd without words': (seconds, random) => {
    const murmurs = Array.from({ length: 8 }, () => {
      const [noise, body] = [dark(random, 0.6), resonance(between(random, 300, 1800), 200)];
      const [pace, phase] = [between(random, 0.5, 5), random()];
      return make(seconds, (t) => body(noise()) * (0.6 + 0.4 * sine(pace, t + phase)));
    });
    return atPeak(sum(...murmurs), between(random, 0.1, 0.7));
  },
  typing: (seconds, random) =>
    paced(seconds, random, between(random, 3, 9), () =>
      knock(random, 120, between(random, 1500, 4000), 0.4 * random()),
    ),
  footsteps: (seconds, random) =>
    paced(seconds, random, between(random, 1.2, 2.5), () => knock(random, 40, between(random, 80, 400), 0.6)),
  knocking: (seconds, random) =>
    paced(seconds, random, between(random, 1, 4), () => knock(random, 60, between(random, 120, 500), 0.7)),
  clock: (seconds, random) =>
    paced(
      seconds,
      () => 0.5,
      oneOf(random, [1, 2, 4]),
      () => knock(random, 200, 2500, 0.3),
    ),
  'an engine': (seconds, random) => engine(seconds, random, between(random, 20, 120), between(random, 0, 1)),
  'a small motor': (seconds, random) => engine(seconds, random, between(random, 120, 400), 0.3),
  'a drill': (seconds, random) => {
    const run = engine(seconds, random, between(random, 150, 300), 1);
    const [on, period] = [between(random, 0.5, 3), between(random, 3.5, 6)];
    return run.map((sample, i) => ((i / RATE) % period < on ? sample : 0.01 * sample));
  },
  helicopter: (seconds, random) => {
    const [noise, rate] = [dark(random, 0.85), between(random, 8, 20)];
    return make(seconds, (t) => 0.25 * (0.1 + Math.exp(-8 * ((t * rate) % 1))) * noise());
  },
  'a fan': (seconds, random) => {
    const [noise, rate] = [dark(random, 0.8), between(random, 4, 30)];
    return make(seconds, (t) => 0.1 * (1 + 0.2 * sine(rate, t)) * noise());
  },
  'a train': (seconds, random) => {
    const rate = between(random, 0.6, 1.6);
    const clacks = [0, 0.18].map((offset) =>
      make(seconds, (t) => {
        const since = (t + offset) % (1 / rate);
        return 0.4 * Math.exp(-since * 40) * sine(140, since);
      }),
    );
    return sum(gusts(seconds, random, 0.95, 0.2), ...clacks);
  },
  'a printer': (seconds, random) => {
    const tone = oscillator([0.2, 0.1, 0.1, 0.08, 0.05]);
    const [rate, noise] = [between(random, 1, 3), white(random)];
    return make(seconds, (t) =>
      (t * rate) % 1 < 0.7
        ? tone(220 + 180 * Math.floor(4 * ((t * rate) % 1))) + 0.05 * noise()
        : 0.01 * noise(),
    );
  },
  'a creaking door': (seconds, random) => {
    const creak = oscillator([0.2, 0.2, 0.15, 0.15, 0.1, 0.1]);
    const body = resonance(between(random, 600, 1500), 150);
    const pace = between(random, 0.2, 0.6);
    return atPeak(
      make(seconds, (t) =>
        sine(pace, t) > 0 ? body(creak(90 + 200 * sine(pace, t) + 20 * (random() - 0.5))) : body(0),
      ),
      0.5,
    );
  },
};
