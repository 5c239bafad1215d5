/**
 * Brings audio that arrives in pieces to another rate. It is a polyphase filter: a sinc under a Kaiser window
 * (J. O. Smith, "Digital Audio Resampling"). Amplitudes are kept up to 85 % of the lower Nyquist frequency and halved
 * at 92 % of it. Above 108 % of it images and aliases are 65 dB down. A linear interpolation would fold what is above
 * 8 kHz into the speech.
 */
import { SAMPLE_RATE } from '../decoder.ts';

/** The zero crossings of the sinc on each side. */
const CROSSINGS = 32;
const BETA = 7;
const PASS = 0.92;

/**
 * @param rate of the samples that come, 8000 to 48000 Hz
 * @param to the rate of those that are returned, in the same range
 */
export function createResampler(rate: number, to: number = SAMPLE_RATE) {
  if (rate === to) return { take: (samples: Float32Array) => samples, end: () => new Float32Array(0) };
  const common = greatestDivisor(rate, to);
  const [up, down] = [to / common, rate / common];
  const scale = PASS * Math.min(1, up / down);
  const half = Math.ceil(CROSSINGS / scale);
  const ratio = `${up}/${down}`;
  const phases = known.get(ratio) ?? filters(up, half, scale);
  known.set(ratio, phases);
  // Before the first sample is silence, so the output begins with the input.
  const silence = new Float32Array(half - 1);
  let held: Float32Array = silence;
  let phase = 0;

  function take(samples: Float32Array): Float32Array {
    const input = new Float32Array(held.length + samples.length);
    input.set(held);
    input.set(samples, held.length);
    const out = new Float32Array(Math.max(0, Math.ceil(((input.length - 2 * half + 1) * up - phase) / down)));
    let at = 0;
    for (let o = 0; o < out.length; o += 1) {
      out[o] = product(phases[phase] as Float32Array, input, at);
      phase += down;
      at += Math.floor(phase / up);
      phase %= up;
    }
    held = input.slice(at);
    return out;
  }

  return {
    /** Takes the next samples and returns those of the other rate that are known by now; 2 to 4 ms are held back. */
    take,
    /** Returns what is held back, as if silence followed. The next samples are the first of something new. */
    end(): Float32Array {
      const last = take(new Float32Array(half));
      [held, phase] = [silence, 0];
      return last;
    },
  };
}

/** Four sums, because each addition waits for the one before: it takes a third of the time of a single one. */
function product(filter: Float32Array, input: Float32Array, at: number): number {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  let i = 0;
  const last = filter.length - 3;
  for (; i < last; i += 4) {
    a += (filter[i] as number) * (input[at + i] as number);
    b += (filter[i + 1] as number) * (input[at + i + 1] as number);
    c += (filter[i + 2] as number) * (input[at + i + 2] as number);
    d += (filter[i + 3] as number) * (input[at + i + 3] as number);
  }
  for (; i < filter.length; i += 1) a += (filter[i] as number) * (input[at + i] as number);
  return a + b + (c + d);
}

/** The filters of each ratio that was asked for. There are few rates, and a client may change its own at any time. */
const known = new Map<string, Float32Array[]>();

/** The filter of each phase: `2 * half` weights, which sum up to 1 so that a constant stays what it is. */
function filters(up: number, half: number, scale: number): Float32Array[] {
  return Array.from({ length: up }, (_, phase) => {
    const weights = Float64Array.from({ length: 2 * half }, (_, i) => {
      const x = i - (half - 1) - phase / up;
      const inside = 1 - (x / half) ** 2;
      return inside <= 0 ? 0 : sinc(scale * x) * bessel(BETA * Math.sqrt(inside));
    });
    const sum = weights.reduce((total, weight) => total + weight, 0);
    return Float32Array.from(weights, (weight) => weight / sum);
  });
}

const sinc = (x: number) => (x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x));

/** The modified Bessel function of the first kind and order 0, by its series. */
function bessel(x: number): number {
  let term = 1;
  let sum = 1;
  for (let k = 1; term > 1e-12 * sum; k += 1) {
    term *= (x / (2 * k)) ** 2;
    sum += term;
  }
  return sum;
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}
