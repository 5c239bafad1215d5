/** The tensors of pyannote's segmentation-3.0 (PyanNet), from its checkpoint to the names of native/speakers/. */
import type { GgufTensor } from './gguf-writer.ts';
import { sincFilters } from './sinc-filters.ts';
import type { TorchCheckpoint } from './torch-checkpoint.ts';

const HIDDEN = 128;
const BANDS = 40;
const HALF_KERNEL = 125;
const CHANNELS = [80, 60, 60] as const;
const KERNEL = 5;
const LSTM_LAYERS = 4;
const CLASSES = 7;

/** @throws GatewayError `not_importable` unless the checkpoint holds exactly this network */
export async function segmentationTensors(checkpoint: TorchCheckpoint): Promise<GgufTensor[]> {
  const tensors: GgufTensor[] = [];
  const add = (name: string, shape: number[], values: Float32Array) =>
    tensors.push({ name: `segmentation.${name}`, shape, values });
  const copy = async (name: string, source: string, shape: number[]) =>
    add(name, shape, await checkpoint.floats(source, shape));

  const filterbank = 'sincnet.conv1d.0.filterbank';
  const filters = sincFilters({
    low: await checkpoint.floats(`${filterbank}.low_hz_`, [BANDS, 1]),
    band: await checkpoint.floats(`${filterbank}.band_hz_`, [BANDS, 1]),
    window: await checkpoint.floats(`${filterbank}.window_`, [HALF_KERNEL]),
    times: await checkpoint.floats(`${filterbank}.n_`, [1, HALF_KERNEL]),
  });
  for (const part of ['weight', 'bias']) await copy(`wave_norm.${part}`, `sincnet.wav_norm1d.${part}`, [1]);
  add('conv.0.weight', [2 * BANDS, 2 * HALF_KERNEL + 1], filters);
  for (const [layer, channels] of CHANNELS.entries()) {
    const before = CHANNELS[layer - 1];
    if (before !== undefined) {
      await copy(`conv.${layer}.weight`, `sincnet.conv1d.${layer}.weight`, [channels, before, KERNEL]);
      await copy(`conv.${layer}.bias`, `sincnet.conv1d.${layer}.bias`, [channels]);
    }
    for (const part of ['weight', 'bias'])
      await copy(`norm.${layer}.${part}`, `sincnet.norm1d.${layer}.${part}`, [channels]);
  }
  for (let layer = 0; layer < LSTM_LAYERS; layer++) {
    const inputs = layer === 0 ? CHANNELS[2] : 2 * HIDDEN;
    for (const [direction, suffix] of [
      ['forward', ''],
      ['backward', '_reverse'],
    ] as const) {
      const [name, source] = [`lstm.${layer}.${direction}`, `l${layer}${suffix}`];
      await copy(`${name}.input.weight`, `lstm.weight_ih_${source}`, [4 * HIDDEN, inputs]);
      await copy(`${name}.recurrent.weight`, `lstm.weight_hh_${source}`, [4 * HIDDEN, HIDDEN]);
      await copy(`${name}.input.bias`, `lstm.bias_ih_${source}`, [4 * HIDDEN]);
      await copy(`${name}.recurrent.bias`, `lstm.bias_hh_${source}`, [4 * HIDDEN]);
    }
  }
  for (const [name, source, outputs, inputs] of [
    ['linear.0', 'linear.0', HIDDEN, 2 * HIDDEN],
    ['linear.1', 'linear.1', HIDDEN, HIDDEN],
    ['classifier', 'classifier', CLASSES, HIDDEN],
  ] as const) {
    await copy(`${name}.weight`, `${source}.weight`, [outputs, inputs]);
    await copy(`${name}.bias`, `${source}.bias`, [outputs]);
  }
  return tensors;
}
