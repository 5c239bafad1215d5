/** Music from a seed: chords, melodies, drums, bells, and mixes of them as callers on hold hear. */
import { between, type Random } from '../common/random.ts';
import { addAt, RATE } from '../common/samples.ts';
import {
  atPeak,
  make,
  oneOf,
  oscillator,
  resonance,
  type Sound,
  type Sounds,
  sine,
  sum,
  tones,
  white,
} from './synthesis.ts';

type Instrument = (frequency: number, seconds: number, random: Random) => Float32Array;

const SCALES: readonly [number[], ...number[][]] = [
  [0, 2, 4, 5, 7, 9, 11],
  [0, 2, 3, 5, 7, 8, 10],
  [0, 2, 4, 7, 9],
];
const PROGRESSIONS: readonly [number[], ...number[][]] = [
  [0, 5, 3, 4],
  [0, 3, 4, 0],
  [0, 4, 5, 3],
  [5, 3, 0, 4],
];

const faded = (t: number, seconds: number, attack: number) =>
  Math.min(1, t / attack, Math.max(0, (seconds - t) / 0.05));

const withHarmonics =
  (harmonics: readonly number[], attack: number, decay: number, vibrato = 0): Instrument =>
  (frequency, seconds) => {
    const tone = oscillator(harmonics);
    return make(
      seconds,
      (t) =>
        0.3 *
        faded(t, seconds, attack) *
        Math.exp(-t * decay) *
        tone(frequency * (1 + vibrato * sine(5.5, t))),
    );
  };

/** Karplus and Strong's plucked string: noise in a delay line whose neighbors are averaged. */
const plucked: Instrument = (frequency, seconds, random) => {
  const line = Float32Array.from({ length: Math.round(RATE / frequency) }, () => 2 * random() - 1);
  return make(seconds, (_, i) => {
    const at = i % line.length;
    const out = line[at] ?? 0;
    line[at] = 0.498 * (out + (line[(at + 1) % line.length] ?? 0));
    return 0.4 * out;
  });
};

/** A choir that sings a vowel: harmonics through two formants. It has no words. */
const vowel: Instrument = (frequency, seconds, random) => {
  const tone = oscillator(Array.from({ length: 12 }, (_, i) => 1 / (i + 1)));
  const [first, second] = oneOf(random, [
    [700, 1100],
    [300, 870],
    [450, 800],
  ]);
  const [low, high] = [resonance(first, 90), resonance(second, 110)];
  return atPeak(
    make(seconds, (t) => {
      const voiced = faded(t, seconds, 0.15) * tone(frequency * (1 + 0.008 * sine(5, t)));
      return low(voiced) + 0.5 * high(voiced);
    }),
    0.3,
  );
};

const INSTRUMENTS = {
  flute: withHarmonics([1, 0.2, 0.05], 0.08, 0.2, 0.006),
  organ: withHarmonics([1, 0.6, 0.3, 0.3, 0, 0.2, 0, 0.2], 0.02, 0),
  piano: withHarmonics([1, 0.5, 0.3, 0.2, 0.1, 0.05], 0.005, 3),
  strings: withHarmonics([1, 0.5, 0.33, 0.25, 0.2, 0.17, 0.14], 0.3, 0, 0.005),
  brass: withHarmonics([0.6, 1, 0.8, 0.6, 0.4, 0.3, 0.2], 0.05, 0.3),
  'chip tune': withHarmonics([1, 0, 0.33, 0, 0.2, 0, 0.14], 0.002, 1),
  'music box': withHarmonics([1, 0, 0.3, 0, 0, 0.2], 0.002, 6),
  guitar: plucked,
  choir: vowel,
} as const satisfies Record<string, Instrument>;

function pitches(random: Random): (step: number) => number {
  const scale = oneOf(random, SCALES);
  const root = 220 * 2 ** (Math.floor(between(random, -7, 6)) / 12);
  return (step) => {
    const octave = Math.floor(step / scale.length);
    return root * 2 ** (octave + (scale[step - octave * scale.length] ?? 0) / 12);
  };
}

function melody(instrument: Instrument): Sound {
  return (seconds, random) => {
    const out = new Float32Array(Math.round(seconds * RATE));
    const [pitch, beat] = [pitches(random), between(random, 0.18, 0.5)];
    let step = Math.floor(between(random, 0, 7));
    for (let at = 0; at < seconds; ) {
      const length = beat * oneOf(random, [1, 1, 1, 2, 2, 4]);
      if (random() < 0.9) addAt(out, instrument(pitch(step), length, random), Math.round(at * RATE));
      step = Math.min(12, Math.max(-4, step + Math.round(between(random, -2.5, 2.5))));
      at += length;
    }
    return out;
  };
}

function chords(instrument: Instrument): Sound {
  return (seconds, random) => {
    const out = new Float32Array(Math.round(seconds * RATE));
    const [pitch, bar] = [pitches(random), between(random, 0.7, 2.5)];
    const progression = oneOf(random, PROGRESSIONS);
    for (let bars = 0; bars * bar < seconds; bars += 1) {
      const degree = progression[bars % progression.length] ?? 0;
      for (const note of [0, 2, 4])
        addAt(out, instrument(pitch(degree + note), bar, random), Math.round(bars * bar * RATE));
    }
    return atPeak(out, 0.5);
  };
}

const drums: Sound = (seconds, random) => {
  const beat = between(random, 0.3, 0.6);
  const noise = white(random);
  return make(seconds, (t) => {
    const [in1, in2, in4] = [t % (2 * beat), (t + beat) % (2 * beat), t % (beat / 2)];
    const kick = Math.exp(-in1 * 18) * sine(60 + 60 * Math.exp(-in1 * 30), in1);
    return 0.5 * kick + 0.25 * Math.exp(-in2 * 25) * noise() + 0.08 * Math.exp(-in4 * 90) * noise();
  });
};

/** Mixes as a pop song or a hold line has them. */
function band(lead: keyof typeof INSTRUMENTS, harmony: keyof typeof INSTRUMENTS): Sound {
  const parts = [melody(INSTRUMENTS[lead]), chords(INSTRUMENTS[harmony]), drums];
  return (seconds, random) =>
    atPeak(sum(...parts.map((part) => part(seconds, random))), between(random, 0.2, 0.9));
}

const bell: Instrument = (frequency, seconds) =>
  make(seconds, (t) =>
    [0.5, 1, 1.19, 1.5, 2, 2.74, 3.01].reduce(
      (all, ratio, i) => all + 0.1 * Math.exp(-t * (0.6 + 0.5 * i)) * sine(frequency * ratio, t),
      0,
    ),
  );

/** Strikes bells again and again. */
function struck(low: number, high: number, everySec: number): Sound {
  return (seconds, random) => {
    const out = new Float32Array(Math.round(seconds * RATE));
    for (let at = 0.2; at < seconds; at += everySec * between(random, 0.7, 1.3))
      addAt(out, bell(between(random, low, high), 5, random), Math.round(at * RATE));
    return atPeak(out, 0.6);
  };
}

export const MUSIC: Sounds = {
  ...Object.fromEntries(
    Object.entries(INSTRUMENTS).flatMap(([name, instrument]) => [
      [`a melody: ${name}`, melody(instrument)],
      [`chords: ${name}`, chords(instrument)],
    ]),
  ),
  drums,
  'a band: piano, strings': band('piano', 'strings'),
  'a band: flute, guitar': band('flute', 'guitar'),
  'a band: brass, organ': band('brass', 'organ'),
  'a band: choir, piano': band('choir', 'piano'),
  'a band: chip tune': band('chip tune', 'chip tune'),
  'church bells': struck(180, 500, 1.6),
  'wind chimes': struck(1000, 3000, 0.5),
  'a pulsing chord': (seconds, random) => {
    const [pitch, rate] = [pitches(random), between(random, 1, 9)];
    const chord = [0, 2, 4].map(pitch);
    return make(seconds, (t) => tones(chord, 0.15 * (0.5 + 0.5 * sine(rate, t)), t));
  },
  whistling: (seconds, random) => {
    const tone = oscillator([0.3, 0.02]);
    const [pitch, beat] = [pitches(random), between(random, 0.2, 0.6)];
    let [index, aim, now] = [-1, 0, 1000];
    return make(seconds, (t) => {
      const at = Math.floor(t / beat);
      if (at !== index) [index, aim] = [at, 3 * pitch(Math.floor(between(random, 0, 8)))];
      now += (aim - now) / 400;
      return tone(now) * (at % 7 === 6 ? 0 : 1);
    });
  },
};
