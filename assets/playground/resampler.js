/** Changes the rate of samples that come in pieces of any length. */

/** Zero crossings of the sinc on each side. More of them make the edge of the band steeper. */
const CROSSINGS = 16;

/**
 * Each sample that comes out is a sum of those around it under a sinc, which ends at half the lower of the two rates, in
 * a Hann window (J. O. Smith, Digital Audio Resampling).
 * @param from samples a second, a whole number
 * @param to the same
 * @returns {(samples: Float32Array) => number[]} takes the next ones, and gives those at `to` that are known by then
 */
export function createResampler(from, to) {
  const cutoff = Math.min(1, to / from);
  const reach = Math.ceil(CROSSINGS / cutoff);
  const kernels = new Map();
  let held = new Float32Array(reach); // silence before the first sample
  let position = reach * to; // of the next sample in `held`, in parts of 1 / to of a sample that came

  /** The weights of the samples from `reach - 1` before to `reach` behind, where the position is `part / to` behind one. */
  function kernelAt(part) {
    const weights = Float64Array.from({ length: 2 * reach }, (_, i) => {
      const x = i + 1 - reach - part / to;
      const sinc = x === 0 ? 1 : Math.sin(Math.PI * cutoff * x) / (Math.PI * cutoff * x);
      return sinc * (1 + Math.cos((Math.PI * x) / reach));
    });
    const sum = weights.reduce((a, b) => a + b);
    return weights.map((weight) => weight / sum);
  }

  return (samples) => {
    const joined = new Float32Array(held.length + samples.length);
    joined.set(held);
    joined.set(samples, held.length);
    const known = [];
    for (; Math.floor(position / to) + reach < joined.length; position += from) {
      const part = position % to;
      const kernel = kernels.get(part) ?? kernelAt(part);
      kernels.set(part, kernel);
      const first = Math.floor(position / to) + 1 - reach;
      known.push(kernel.reduce((sum, weight, i) => sum + weight * joined[first + i], 0));
    }
    const done = Math.min(Math.max(0, Math.floor(position / to) + 1 - reach), joined.length);
    held = joined.slice(done);
    position -= done * to;
    return known;
  };
}
