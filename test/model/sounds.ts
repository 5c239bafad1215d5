/** Formulas make sounds without speech: silence, noises, tones, something like music, things and animals. */
import { seededRandom } from '../../bench/common/random.ts';
import { dark, make, sine, white } from '../../bench/silence/synthesis.ts';

export type Sound = (seconds: number) => Float32Array;

const whiteNoise = (seed: number) => white(seededRandom(seed));

/** @param smoothing 0 gives white noise, and a value towards 1 gives darker noise */
const filteredNoise =
  (smoothing: number, level: number, seed: number): Sound =>
  (seconds) => {
    const noise = dark(seededRandom(seed), smoothing);
    return make(seconds, () => level * noise());
  };

/** A chord that swells and fades `rate` times a second. */
const pulsing =
  (rate: number, chord: readonly number[]): Sound =>
  (seconds) =>
    make(seconds, (t) => {
      const swell = 0.5 + 0.5 * sine(rate, t);
      return chord.reduce((sum, f) => sum + 0.15 * swell * sine(f, t), 0);
    });

/** Decaying bursts of noise: `rate` a second, each ringing at `tone` or plain. */
const bursts =
  (rate: number, decay: number, tone: number, seed: number): Sound =>
  (seconds) => {
    const noise = whiteNoise(seed);
    return make(seconds, (t) => {
      const since = t % (1 / rate);
      return 0.5 * Math.exp(-since * decay) * (tone > 0 ? sine(tone, since) : noise());
    });
  };

const CHORDS = [
  [261.6, 329.6, 392],
  [220, 261.6, 329.6],
  [174.6, 220, 261.6],
  [196, 246.9, 293.7],
];

export const SOUNDS: Record<string, Sound> = {
  silence: (seconds) => make(seconds, () => 0),
  'almost silence': filteredNoise(0, 0.0005, 1),
  'white noise': filteredNoise(0, 0.2, 2),
  'pink-like noise': filteredNoise(0.9, 0.2, 3),
  'rumble of an engine': (seconds) => {
    const noise = filteredNoise(0.98, 0.15, 4)(seconds);
    return make(seconds, (t, i) => (noise[i] ?? 0) + 0.2 * sine(55, t) + 0.1 * sine(110, t));
  },
  rain: (seconds) => {
    const noise = whiteNoise(5);
    return make(seconds, () => 0.05 * noise() + (Math.abs(noise()) > 0.998 ? 0.4 * noise() : 0));
  },
  'a tone of 440 Hz': (seconds) => make(seconds, (t) => 0.4 * sine(440, t)),
  'a dial tone': (seconds) => make(seconds, (t) => 0.2 * (sine(350, t) + sine(440, t))),
  'a busy tone': (seconds) => make(seconds, (t) => (t % 1 < 0.5 ? 0.2 * (sine(480, t) + sine(620, t)) : 0)),
  'a siren': (seconds) =>
    make(
      seconds,
      (t) => 0.3 * Math.sin(2 * Math.PI * (900 * t - (300 / (2 * Math.PI * 0.5)) * Math.cos(Math.PI * t))),
    ),
  'chords like hold music': (seconds) =>
    make(seconds, (t) => {
      const chord = CHORDS[Math.floor(t) % CHORDS.length] ?? [];
      const fade = Math.exp(-(t % 1) * 2);
      return chord.reduce(
        (sum, f) => sum + 0.08 * fade * (sine(f, t) + 0.4 * sine(2 * f, t) + 0.2 * sine(3 * f, t)),
        0,
      );
    }),
  'a slowly pulsing chord of A': pulsing(2, [220, 277, 330]),
  'a pulsing chord of A': pulsing(4, [220, 277, 330]),
  'a slowly pulsing chord of C': pulsing(2, [261.6, 329.6, 392]),
  'a pulsing chord of C': pulsing(4, [261.6, 329.6, 392]),
  'a trembling chord of C': pulsing(8, [261.6, 329.6, 392]),
  'a melody with drums': (seconds) => {
    const noise = whiteNoise(6);
    const scale = [262, 294, 330, 349, 392, 440, 494, 523];
    return make(seconds, (t) => {
      const note = scale[(Math.floor(t * 4) * 5) % scale.length] ?? 262;
      const drum = Math.exp(-(t % 0.5) * 40) * noise() * 0.3;
      return 0.25 * Math.exp(-(t % 0.25) * 6) * (sine(note, t) + 0.5 * sine(2 * note, t)) + drum;
    });
  },
  'a ticking clock': bursts(1, 200, 2000, 7),
  'typing on keys': bursts(6, 120, 0, 8),
  'knocking on wood': bursts(2, 60, 180, 9),
  applause: (seconds) => {
    const claps = [7.3, 9.1, 11.7, 13.9].map((rate, i) => bursts(rate, 90, 0, 10 + i)(seconds));
    return make(seconds, (_, i) => claps.reduce((sum, clap) => sum + (clap[i] ?? 0), 0) / 2);
  },
  'a bird': (seconds) =>
    make(seconds, (t) => (t % 0.8 < 0.2 ? 0.3 * Math.sin(2 * Math.PI * (3000 * t + 200 * sine(30, t))) : 0)),
};
