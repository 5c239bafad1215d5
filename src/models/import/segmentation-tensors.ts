/** The tensors of pyannote's segmentation-3.0 (PyanNet), from its checkpoint to the names of native/speakers/. */
import type { GgufTensor } from './gguf-writer.ts';
import type { TorchCheckpoint } from './torch-checkpoint.ts';

const HIDDEN = 128;
const BANDS = 40;
const HALF_KERNEL = 125;
const CHANNELS = [80, 60, 60] as const;
const KERNEL = 5;
const LSTM_LAYERS = 4;
const CLASSES = 7;

/** @throws GatewayError `not_importable` unless the checkpoint holds exactly this network */
export function segmentationTensors(checkpoint: TorchCheckpoint): GgufTensor[] {
  const tensors: GgufTensor[] = [];
  const add = (name: string, shape: number[], values: Float32Array) =>
    tensors.push({ name: `segmentation.${name}`, shape, values });
  const copy = (name: string, source: string, shape: number[]) =>
    add(name, shape, checkpoint.floats(source, shape));

  const filterbank = 'sincnet.conv1d.0.filterbank';
  const filters = sincFilters({
    low: checkpoint.floats(`${filterbank}.low_hz_`, [BANDS, 1]),
    band: checkpoint.floats(`${filterbank}.band_hz_`, [BANDS, 1]),
    window: checkpoint.floats(`${filterbank}.window_`, [HALF_KERNEL]),
    times: checkpoint.floats(`${filterbank}.n_`, [1, HALF_KERNEL]),
  });
  for (const part of ['weight', 'bias']) copy(`wave_norm.${part}`, `sincnet.wav_norm1d.${part}`, [1]);
  add('conv.0.weight', [2 * BANDS, 2 * HALF_KERNEL + 1], filters);
  for (const [layer, channels] of CHANNELS.entries()) {
    const before = CHANNELS[layer - 1];
    if (before !== undefined) {
      copy(`conv.${layer}.weight`, `sincnet.conv1d.${layer}.weight`, [channels, before, KERNEL]);
      copy(`conv.${layer}.bias`, `sincnet.conv1d.${layer}.bias`, [channels]);
    }
    for (const part of ['weight', 'bias'])
      copy(`norm.${layer}.${part}`, `sincnet.norm1d.${layer}.${part}`, [channels]);
  }
  for (let layer = 0; layer < LSTM_LAYERS; layer++) {
    const inputs = layer === 0 ? CHANNELS[2] : 2 * HIDDEN;
    for (const [direction, suffix] of [
      ['forward', ''],
      ['backward', '_reverse'],
    ] as const) {
      const [name, source] = [`lstm.${layer}.${direction}`, `l${layer}${suffix}`];
      copy(`${name}.input.weight`, `lstm.weight_ih_${source}`, [4 * HIDDEN, inputs]);
      copy(`${name}.recurrent.weight`, `lstm.weight_hh_${source}`, [4 * HIDDEN, HIDDEN]);
      copy(`${name}.input.bias`, `lstm.bias_ih_${source}`, [4 * HIDDEN]);
      copy(`${name}.recurrent.bias`, `lstm.bias_hh_${source}`, [4 * HIDDEN]);
    }
  }
  for (const [name, source, outputs, inputs] of [
    ['linear.0', 'linear.0', HIDDEN, 2 * HIDDEN],
    ['linear.1', 'linear.1', HIDDEN, HIDDEN],
    ['classifier', 'classifier', CLASSES, HIDDEN],
  ] as const) {
    copy(`${name}.weight`, `${source}.weight`, [outputs, inputs]);
    copy(`${name}.bias`, `${source}.bias`, [outputs]);
  }
  return tensors;
}

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
