/**
 * The first layer of pyannote's network: band-pass filters of which only the edges were trained (SincNet,
 * https://arxiv.org/abs/1808.00158, with the odd filters of https://arxiv.org/abs/2001.08095). Each step rounds to single
 * precision where torch does, because its own rounding of large angles shows in the network's output.
 */
const SAMPLE_RATE = 16_000;
const LEAST_HZ = 50;
const round = Math.fround;

export interface SincParameters {
  /** The lower edges and the widths in Hz, less 50 Hz each. Their signs mean nothing. */
  low: Float32Array;
  band: Float32Array;
  /** The left half of a Hamming window, and 2 pi times the seconds from the center. */
  window: Float32Array;
  times: Float32Array;
}

/** Filters of 2 * half + 1 taps: an even one for each band, then an odd one for each. */
export function sincFilters({ low, band, window, times }: SincParameters): Float32Array {
  const half = times.length;
  const taps = 2 * half + 1;
  const filters = new Float32Array(2 * low.length * taps);
  low.forEach((lowHz, i) => {
    const from = round(LEAST_HZ + Math.abs(lowHz));
    const sum = round(round(from + LEAST_HZ) + Math.abs(band[i] ?? 0));
    const to = Math.min(Math.max(sum, LEAST_HZ), SAMPLE_RATE / 2);
    const width = round(2 * round(to - from));
    const even = filters.subarray(i * taps, (i + 1) * taps);
    const odd = filters.subarray((low.length + i) * taps, (low.length + i + 1) * taps);
    even[half] = 1;
    times.forEach((time, at) => {
      const [lower, upper] = [round(from * time), round(to * time)];
      const scaled = (difference: number) =>
        round(round(round(difference) / round(time / 2)) * (window[at] ?? 0)) / width;
      const symmetric = scaled(round(Math.sin(upper)) - round(Math.sin(lower)));
      const antisymmetric = scaled(round(Math.cos(lower)) - round(Math.cos(upper)));
      even[at] = even[taps - 1 - at] = symmetric;
      odd[at] = antisymmetric;
      odd[taps - 1 - at] = -antisymmetric;
    });
  });
  return filters;
}
