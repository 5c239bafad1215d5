/**
 * Writes Smart Turn v3.2 (https://github.com/pipecat-ai/smart-turn) into a GGUF file, from its ONNX file for CPUs to the
 * names of native/turns/. The weights of that file are 8-bit integers with a scale for each output. They are written as
 * floats; the scales of the values between the layers, which the file has as well, are not needed then.
 */
import { notImportable } from './failure.ts';
import { type GgufTensor, writeGguf } from './gguf-writer.ts';
import type { WrittenFile } from './hashed-file.ts';
import { FFT_BINS, melFilters } from './mel-filters.ts';
import { type OnnxTensors, readOnnxTensors, type Values } from './onnx-tensors.ts';
import { countOf } from './tensor-values.ts';

const TEXTS = {
  'general.architecture': 'voxgate-turn-detection',
  'general.name': 'Smart Turn v3.2',
  'general.license': 'BSD-2-Clause',
};
const BANDS = 80;
const POSITIONS = 400;
const STATE = 384;
const INNER = 4 * STATE;
const TAPS = 3;
const POOL = 256;
const CLASSIFIER = 64;

/** The names that the exporter gave to the weights of each block, which it had transposed. */
const BLOCKS = [
  { query: 'val_17', key: 'val_25', value: 'val_32', out: 'val_75', up: 'val_79', down: 'val_88' },
  { query: 'val_92', key: 'val_100', value: 'val_107', out: 'val_148', up: 'val_152', down: 'val_161' },
  { query: 'val_165', key: 'val_173', value: 'val_180', out: 'val_221', up: 'val_225', down: 'val_234' },
  { query: 'val_238', key: 'val_246', value: 'val_253', out: 'val_294', up: 'val_298', down: 'val_307' },
] as const;
const POOL_WEIGHTS = ['val_311', 'val_313'] as const;

/** @throws GatewayError `not_importable` unless the file holds exactly this network */
export async function writeTurnDetection(onnx: string, target: string): Promise<WrittenFile> {
  return writeGguf(target, TEXTS, turnTensors(await readOnnxTensors(onnx)));
}

function turnTensors(source: OnnxTensors): GgufTensor[] {
  const tensors: GgufTensor[] = [
    { name: 'mel_filters', shape: [BANDS, FFT_BINS], values: melFilters(BANDS) },
  ];
  const add = (name: string, shape: readonly number[], values: Float32Array) =>
    tensors.push({ name, shape, values });
  const copy = (name: string, from: string, shape: readonly number[]) =>
    add(name, shape, Float32Array.from(source.values(`inner.${from}`, 'float32', shape)));
  const norm = (name: string, from: string, width: number) => {
    for (const part of ['weight', 'bias']) copy(`${name}.${part}`, `${from}.${part}`, [width]);
  };
  /** A layer whose weights lie as torch has them. */
  const layer = (name: string, from: string, shape: readonly [number, ...number[]]) => {
    add(`${name}.weight`, shape, weights(source, `inner.${from}.weight`, shape, 'outputs first'));
    add(`${name}.bias`, [shape[0]], biases(source, `inner.${from}.bias`, shape[0]));
  };
  const transposed = (name: string, from: string, shape: readonly [outputs: number, inputs: number]) =>
    add(`${name}.weight`, shape, weights(source, from, shape, 'inputs first'));

  layer('conv1', 'encoder.conv1', [STATE, BANDS, TAPS]);
  layer('conv2', 'encoder.conv2', [STATE, STATE, TAPS]);
  copy('positions', 'encoder.embed_positions.weight', [POSITIONS, STATE]);
  for (const [index, names] of BLOCKS.entries()) {
    const [name, from] = [`block.${index}`, `encoder.layers.${index}`];
    norm(`${name}.attention_norm`, `${from}.self_attn_layer_norm`, STATE);
    norm(`${name}.mlp_norm`, `${from}.final_layer_norm`, STATE);
    for (const part of ['query', 'key', 'value', 'out'] as const)
      transposed(`${name}.${part}`, names[part], [STATE, STATE]);
    copy(`${name}.query.bias`, `${from}.self_attn.q_proj.bias`, [STATE]);
    copy(`${name}.value.bias`, `${from}.self_attn.v_proj.bias`, [STATE]);
    copy(`${name}.out.bias`, `${from}.self_attn.out_proj.bias`, [STATE]);
    transposed(`${name}.up`, names.up, [INNER, STATE]);
    transposed(`${name}.down`, names.down, [STATE, INNER]);
    copy(`${name}.up.bias`, `${from}.fc1.bias`, [INNER]);
    copy(`${name}.down.bias`, `${from}.fc2.bias`, [STATE]);
  }
  norm('norm', 'encoder.layer_norm', STATE);
  transposed('pool.0', POOL_WEIGHTS[0], [POOL, STATE]);
  copy('pool.0.bias', 'pool_attention.0.bias', [POOL]);
  transposed('pool.1', POOL_WEIGHTS[1], [1, POOL]);
  copy('pool.1.bias', 'pool_attention.2.bias', [1]);
  layer('classifier.0', 'classifier.0', [POOL, STATE]);
  norm('classifier.norm', 'classifier.1', POOL);
  layer('classifier.1', 'classifier.4', [CLASSIFIER, POOL]);
  layer('classifier.2', 'classifier.6', [1, CLASSIFIER]);
  return tensors;
}

/** The floats of integer weights, outputs first. `order` says how they lie in the file. */
function weights(
  source: OnnxTensors,
  name: string,
  shape: readonly [number, ...number[]],
  order: 'outputs first' | 'inputs first',
): Float32Array {
  const [outputs, ...rest] = shape;
  const depth = countOf(rest);
  const ints = source.values(
    `${name}_quantized`,
    'int8',
    order === 'outputs first' ? shape : [depth, outputs],
  );
  const scales = source.values(`${name}_scale`, 'float32', [outputs]);
  requireZeros(source.values(`${name}_zero_point`, 'int8', [outputs]), name);
  const at = (output: number, k: number) =>
    order === 'outputs first' ? output * depth + k : k * outputs + output;
  return Float32Array.from({ length: outputs * depth }, (_, i) => {
    const output = Math.floor(i / depth);
    return (ints[at(output, i % depth)] ?? 0) * (scales[output] ?? 0);
  });
}

function biases(source: OnnxTensors, name: string, outputs: number): Float32Array {
  const ints = source.values(`${name}_quantized`, 'int32', [outputs]);
  const scales = source.values(`${name}_quantized_scale`, 'float32', [outputs]);
  const zeros = outputs === 1 ? [] : [outputs];
  requireZeros(source.values(`${name}_quantized_zero_point`, 'int32', zeros), name);
  return Float32Array.from(ints, (value, i) => value * (scales[i] ?? 0));
}

function requireZeros(zeroPoints: Values, name: string): void {
  if (zeroPoints.some((value) => value !== 0)) throw notImportable(`The zero point of ${name} is not 0.`);
}
