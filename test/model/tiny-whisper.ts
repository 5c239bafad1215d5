/** Generates CTranslate2 Whisper folders of any size, and reads ggml files back, both written from the formats alone. */
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { toHalf } from '../../src/models/import/half.ts';

export type WeightType = 'float32' | 'float16' | 'bfloat16' | 'int8';
const TYPE_ID: Record<WeightType | 'int16', number> = {
  float32: 0,
  int8: 1,
  int16: 2,
  float16: 4,
  bfloat16: 5,
};

export interface TinyShape {
  state: number;
  heads: number;
  audioLayers: number;
  textLayers: number;
  mels: number;
  vocab: number;
  audioContext: number;
  textContext: number;
}

export const TINY: TinyShape = {
  state: 32,
  heads: 2,
  audioLayers: 2,
  textLayers: 1,
  mels: 80,
  vocab: 300,
  audioContext: 10,
  textContext: 8,
};

interface Variable {
  name: string;
  shape: number[];
  type: WeightType | 'int16';
  data: Buffer;
}

/** The values are multiples of 1/8 below 8, which are exact in every type, and as integers of scale 8 or 16. */
export function valueAt(name: string, index: number): number {
  let hash = 2166136261;
  for (const byte of Buffer.from(`${name}#${index}`)) hash = Math.imul(hash ^ byte, 16777619) >>> 0;
  return ((hash % 127) - 63) / 8;
}

function variableShapes(shape: TinyShape): [name: string, shape: number[]][] {
  const { state, vocab } = shape;
  const norm = (name: string): [string, number[]][] => [
    [`${name}/beta`, [state]],
    [`${name}/gamma`, [state]],
  ];
  const linear = (name: string, out: number, input: number): [string, number[]][] => [
    [`${name}/bias`, [out]],
    [`${name}/weight`, [out, input]],
  ];
  const layer = (name: string): [string, number[]][] => [
    ...norm(`${name}/self_attention/layer_norm`),
    ...linear(`${name}/self_attention/linear_0`, 3 * state, state),
    ...linear(`${name}/self_attention/linear_1`, state, state),
    ...norm(`${name}/ffn/layer_norm`),
    ...linear(`${name}/ffn/linear_0`, 4 * state, state),
    ...linear(`${name}/ffn/linear_1`, state, 4 * state),
  ];
  const list: [string, number[]][] = [
    ['encoder/conv1/weight', [state, shape.mels, 3]],
    ['encoder/conv1/bias', [state]],
    ['encoder/conv2/weight', [state, state, 3]],
    ['encoder/conv2/bias', [state]],
    ['encoder/position_encodings/encodings', [shape.audioContext, state]],
    ...norm('encoder/layer_norm'),
    ['decoder/embeddings/weight', [vocab, state]],
    ['decoder/position_encodings/encodings', [shape.textContext, state]],
    ...norm('decoder/layer_norm'),
  ];
  for (let i = 0; i < shape.audioLayers; i++) list.push(...layer(`encoder/layer_${i}`));
  for (let i = 0; i < shape.textLayers; i++) {
    const cross = `decoder/layer_${i}/attention`;
    list.push(...layer(`decoder/layer_${i}`), ...norm(`${cross}/layer_norm`));
    list.push(...linear(`${cross}/linear_0`, state, state), ...linear(`${cross}/linear_1`, 2 * state, state));
    list.push(...linear(`${cross}/linear_2`, state, state));
  }
  return list;
}

export interface Changes {
  spec?: string;
  version?: number;
  zeros?: boolean;
  change?: (variables: Variable[]) => Variable[];
}

export async function writeTinyWhisper(
  dir: string,
  shape: TinyShape = TINY,
  type: WeightType = 'float16',
  changes: Changes = {},
): Promise<void> {
  let variables = variableShapes(shape).flatMap(([name, dims]) =>
    makeVariable(name, dims, type, changes.zeros),
  );
  for (const side of ['encoder', 'decoder']) {
    const data = Buffer.from([shape.heads, 0]);
    variables.push({ name: `${side}/num_heads`, shape: [], type: 'int16', data });
  }
  variables = changes.change?.(variables) ?? variables;
  const file = await open(join(dir, 'model.bin'), 'w');
  try {
    const head = [
      u32(changes.version ?? 6),
      text(changes.spec ?? 'WhisperSpec'),
      u32(3),
      u32(variables.length),
    ];
    await file.writeFile(Buffer.concat(head));
    for (const { name, shape: dims, type: dtype, data } of variables) {
      const fields = [
        text(name),
        Buffer.from([dims.length]),
        ...dims.map(u32),
        Buffer.from([TYPE_ID[dtype]]),
      ];
      await file.writeFile(Buffer.concat([...fields, u32(data.length)]));
      await file.writeFile(data);
    }
    const alias = [text('decoder/projection/weight'), text('decoder/embeddings/weight')];
    await file.writeFile(Buffer.concat([u32(1), ...alias]));
    await (await open(join(dir, 'vocabulary.txt'), 'w')).close();
  } finally {
    await file.close();
  }
}

/** Makes `count` text tokens, then the special ones. */
export function tinyVocabulary(count: number): string[] {
  const tokens = Array.from({ length: count }, (_, i) =>
    i === 1 ? 'Ġthe' : 'abcdefgh'.charAt(i % 8).repeat(1 + (i % 5)),
  );
  return [...tokens, '<|endoftext|>', '<|startoftranscript|>'];
}

function makeVariable(name: string, shape: number[], type: WeightType, zeros = false): Variable[] {
  const count = shape.reduce((product, dim) => product * dim, 1);
  const quantized = type === 'int8' && /linear_\d\/weight$|embeddings\/weight$/.test(name);
  const dtype = type === 'int8' && !quantized ? 'float32' : type;
  const width = { float32: 4, float16: 2, bfloat16: 2, int8: 1 }[dtype];
  const data = Buffer.alloc(count * width);
  for (let i = 0; i < count && !zeros; i++) {
    const value = valueAt(name, i);
    if (dtype === 'float32') data.writeFloatLE(value, i * 4);
    if (dtype === 'float16') data.writeUInt16LE(toHalf(value), i * 2);
    if (dtype === 'bfloat16')
      data.writeUInt16LE((new Uint32Array(Float32Array.of(value).buffer)[0] ?? 0) >>> 16, i * 2);
    if (dtype === 'int8') data.writeInt8(value * scaleOf(Math.floor(i / (shape[1] ?? 1))), i);
  }
  const variable: Variable = { name, shape, type: dtype, data };
  if (!quantized) return [variable];
  const [rows = 1] = shape;
  const scales = Buffer.alloc(rows * 4);
  for (let row = 0; row < rows; row++) scales.writeFloatLE(scaleOf(row), row * 4);
  return [variable, { name: `${name}_scale`, shape: [rows], type: 'float32', data: scales }];
}

function scaleOf(row: number): number {
  return row % 2 === 0 ? 16 : 8;
}

function u32(value: number): Buffer {
  const out = Buffer.alloc(4);
  out.writeUInt32LE(value);
  return out;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(`${value}\0`);
  return Buffer.concat([Buffer.from([bytes.length & 255, bytes.length >> 8]), bytes]);
}

export interface GgmlFile {
  hparams: number[];
  filters: { rows: number; columns: number; values: number[] };
  tokens: Buffer[];
  tensors: Map<string, { type: number; shape: number[]; values: number[] }>;
}

export async function readGgml(path: string): Promise<GgmlFile> {
  const data = await readFile(path);
  let at = 0;
  const int = () => {
    at += 4;
    return data.readInt32LE(at - 4);
  };
  const floats = (count: number, half: boolean) =>
    Array.from({ length: count }, () => {
      at += half ? 2 : 4;
      return half ? halfToNumber(data.readUInt16LE(at - 2)) : data.readFloatLE(at - 4);
    });
  const hparams = Array.from({ length: 12 }, int);
  const rows = int();
  const columns = int();
  const filters = { rows, columns, values: floats(rows * columns, false) };
  const tokens = Array.from({ length: int() }, () => {
    const length = int();
    at += length;
    return data.subarray(at - length, at);
  });
  const tensors: GgmlFile['tensors'] = new Map();
  while (at < data.length) {
    const [rank, length, type] = [int(), int(), int()];
    const shape = Array.from({ length: rank }, int).reverse();
    at += length;
    const name = data.toString('utf8', at - length, at);
    tensors.set(name, {
      type,
      shape,
      values: floats(
        shape.reduce((a, b) => a * b, 1),
        type === 1,
      ),
    });
  }
  return { hparams, filters, tokens, tensors };
}

function halfToNumber(bits: number): number {
  const exponent = (bits & 0x7c00) >> 10;
  const fraction = bits & 0x3ff;
  const size = exponent === 0 ? fraction / 2 ** 24 : (1 + fraction / 1024) * 2 ** (exponent - 15);
  return bits & 0x8000 ? -size : size;
}
