/** Tones of telephones (ITU-T E.180 supplement 2, Q.23) and alarms. */
import { between } from '../common/random.ts';
import { dark, make, oneOf, oscillator, type Sounds, sine, tones } from './synthesis.ts';

/** Tones that are on and off by turns. @param cadence seconds on, off, on ... */
function cadenced(seconds: number, pitches: readonly number[], cadence: readonly number[]): Float32Array {
  const period = cadence.reduce((total, part) => total + part, 0);
  return make(seconds, (t) => {
    let rest = t % period;
    const part = cadence.findIndex((length) => {
      if (rest < length) return true;
      rest -= length;
      return false;
    });
    return part % 2 === 0 ? tones(pitches, 0.2, t) : 0;
  });
}

const DTMF_ROWS = [697, 770, 852, 941] as const;
const DTMF_COLUMNS = [1209, 1336, 1477, 1633] as const;

/** Tones that follow each other, each with a pause behind it. */
function sequence(
  seconds: number,
  toneSec: number,
  pauseSec: number,
  next: () => readonly number[],
): Float32Array {
  let [index, pitches]: [number, readonly number[]] = [-1, []];
  return make(seconds, (t) => {
    const at = Math.floor(t / (toneSec + pauseSec));
    if (at !== index) [index, pitches] = [at, next()];
    return t % (toneSec + pauseSec) < toneSec ? tones(pitches, 0.25, t) : 0;
  });
}

function swept(seconds: number, low: number, high: number, periodSec: number, wave: number[]): Float32Array {
  const tone = oscillator(wave);
  return make(seconds, (t) => {
    const turn = (t / periodSec) % 1;
    return 0.4 * tone(low + (high - low) * (turn < 0.5 ? 2 * turn : 2 - 2 * turn));
  });
}

export const SIGNALS: Sounds = {
  'dial tone': (seconds, random) =>
    cadenced(seconds, oneOf(random, [[350, 440], [425], [400], [350, 450]]), [60]),
  ringing: (seconds, random) =>
    oneOf(random, [
      () => cadenced(seconds, [440, 480], [2, 4]),
      () => cadenced(seconds, [425], [1, 4]),
      () => cadenced(seconds, [400, 450], [0.4, 0.2, 0.4, 2]),
    ])(),
  'busy tone': (seconds, random) =>
    oneOf(random, [
      () => cadenced(seconds, [480, 620], [0.5, 0.5]),
      () => cadenced(seconds, [425], [0.48, 0.48]),
      () => cadenced(seconds, [480, 620], [0.25, 0.25]),
      () => cadenced(seconds, [425], [0.2, 0.2]),
    ])(),
  'special information tone': (seconds) => {
    let at = 0;
    return sequence(seconds, 0.33, 0.02, () => [[950], [1400], [1800], []][at++ % 4] ?? []);
  },
  'dialed digits': (seconds, random) =>
    sequence(seconds, between(random, 0.07, 0.3), between(random, 0.05, 0.3), () => [
      oneOf(random, DTMF_ROWS),
      oneOf(random, DTMF_COLUMNS),
    ]),
  fax: (seconds, random) => cadenced(seconds, [oneOf(random, [1100, 2100])], [0.5, 3]),
  modem: (seconds, random) => {
    const tone = oscillator([0.3]);
    const rate = oneOf(random, [75, 300, 1200]);
    let [bit, frequency] = [-1, 1200];
    return make(seconds, (t) => {
      const now = Math.floor(t * rate);
      if (now !== bit) [bit, frequency] = [now, random() < 0.5 ? 1200 : 2200];
      return tone(frequency);
    });
  },
  beeps: (seconds, random) => {
    const [on, off] = [between(random, 0.05, 0.6), between(random, 0.1, 3)];
    return cadenced(seconds, [between(random, 400, 3000)], [on, off, on, off, on, 4 * off]);
  },
  'morse code': (seconds, random) => {
    const [tone, unit] = [between(random, 500, 1000), between(random, 0.05, 0.1)];
    const cadence = Array.from({ length: 60 }, (_, i) => unit * oneOf(random, i % 2 ? [1, 1, 3] : [1, 3]));
    return cadenced(seconds, [tone], cadence);
  },
  siren: (seconds, random) =>
    swept(seconds, between(random, 400, 800), between(random, 1000, 1800), between(random, 0.3, 6), [1, 0.3]),
  'two-tone horn': (seconds, random) => {
    const [low, periodSec] = [between(random, 360, 500), between(random, 0.5, 1.4)];
    const horn = oscillator([0.3, 0.15, 0.1, 0.05]);
    return make(seconds, (t) => horn(t % periodSec < periodSec / 2 ? low : low * 1.33));
  },
  'mains hum': (seconds, random) => {
    const hum = oscillator([0.02, 0.01, 0.015, 0.004, 0.008]);
    const [noise, mains] = [dark(random, 0.5), oneOf(random, [50, 60])];
    return make(seconds, () => hum(mains) + 0.002 * noise());
  },
  'tone with clicks': (seconds, random) => {
    const tone = between(random, 200, 2000);
    return make(seconds, (t) => 0.2 * sine(tone, t) + (random() < 0.0005 ? 0.6 * (random() - 0.5) : 0));
  },
};
