/**
 * Reads the constant tensors of an ONNX model (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto), without its
 * runtime. The graph of the model is not looked at, so nothing of it can be executed. The file is one with a pinned hash
 * (package-recipes.ts), so that its parts fit together.
 */
import { readFile, stat } from 'node:fs/promises';
import { BUDGETS } from '../../limits/budgets.ts';
import { notImportable } from './failure.ts';
import { alignedBytes, countOf, isSameShape } from './tensor-values.ts';

/** Numbers of fields. */
const MODEL_GRAPH = 7;
const GRAPH_INITIALIZER = 5;
const TENSOR = { dims: 1, type: 2, floats: 4, ints: 5, name: 8, raw: 9 } as const;

/** The types of values that are read, with their numbers. */
const TYPES = { float32: 1, int8: 3, int32: 6 } as const;
type ValueType = keyof typeof TYPES;

export type Values = Float32Array | Int8Array | Int32Array;

interface Tensor {
  name: string;
  type: number;
  shape: number[];
  /** As little-endian bytes. */
  raw: Buffer;
  /** The values of a small tensor, as fields. */
  floats: Buffer;
  ints: number[];
}

export type OnnxTensors = Awaited<ReturnType<typeof readOnnxTensors>>;

/** @throws GatewayError `not_importable` */
export async function readOnnxTensors(path: string) {
  const refuse = (why: string) => notImportable(`${path} cannot be imported: ${why}.`);
  const { maxEntries, maxOnnxBytes } = BUDGETS.checkpoint;
  if ((await stat(path)).size > maxOnnxBytes) throw refuse('it is too large');
  const found = messagesIn(messagesIn([await readFile(path)], MODEL_GRAPH), GRAPH_INITIALIZER);
  if (found.length > maxEntries) throw refuse('it has too many tensors');
  const tensors = new Map(found.map(readTensor).map((tensor) => [tensor.name, tensor]));
  return {
    /**
     * The values of a tensor of this type, row by row.
     * @throws GatewayError `not_importable` unless it has exactly this shape
     */
    values(name: string, type: ValueType, shape: readonly number[]): Values {
      const tensor = tensors.get(name);
      if (tensor === undefined) throw refuse(`it has no tensor ${name}`);
      if (tensor.type !== TYPES[type]) throw refuse(`the values of ${name} are not of type ${type}`);
      if (!isSameShape(tensor.shape, shape))
        throw refuse(`${name} has the shape ${tensor.shape.join(' x ')}, expected ${shape.join(' x ')}`);
      const values = valuesOf(tensor, type);
      const count = countOf(shape);
      if (values.length !== count) throw refuse(`${name} does not have its ${count} values`);
      return values;
    },
  };
}

function valuesOf({ raw, floats, ints }: Tensor, type: ValueType): Values {
  if (type === 'float32') return new Float32Array(alignedBytes(raw.length > 0 ? raw : floats));
  if (ints.length > 0) return Int32Array.from(ints);
  return type === 'int8' ? new Int8Array(alignedBytes(raw)) : new Int32Array(alignedBytes(raw));
}

function readTensor(message: Buffer): Tensor {
  const none = Buffer.alloc(0);
  const tensor: Tensor = { name: '', type: 0, shape: [], raw: none, floats: none, ints: [] };
  for (const { number, value } of fieldsOf(message)) {
    if (typeof value === 'bigint') {
      if (number === TENSOR.dims) tensor.shape.push(Number(value));
      if (number === TENSOR.type) tensor.type = Number(value);
    } else if (number === TENSOR.name) tensor.name = value.toString('utf8');
    else if (number === TENSOR.raw) tensor.raw = value;
    else if (number === TENSOR.floats) tensor.floats = value;
    else if (number === TENSOR.ints)
      tensor.ints = varintsIn(value).map((int) => Number(BigInt.asIntN(32, int)));
  }
  return tensor;
}

/** The messages that a field of some messages holds. */
function messagesIn(messages: readonly Buffer[], wanted: number): Buffer[] {
  return messages.flatMap((message) =>
    [...fieldsOf(message)].flatMap(({ number, value }) =>
      number === wanted && typeof value !== 'bigint' ? [value] : [],
    ),
  );
}

/**
 * The fields of a message in the wire format of Protocol Buffers, without its schema
 * (https://protobuf.dev/programming-guides/encoding/): a varint, or the bytes of anything else.
 */
function* fieldsOf(message: Buffer): Generator<{ number: number; value: bigint | Buffer }> {
  for (let at = 0; at < message.length; ) {
    const [tag, start] = varintAt(message, at);
    const number = Number(tag >> 3n);
    const wireType = Number(tag & 7n);
    const [first, next] = wireType === 1 || wireType === 5 ? [0n, start] : varintAt(message, start);
    const length = { 0: 0, 1: 8, 2: Number(first), 5: 4 }[wireType];
    if (length === undefined || next + length > message.length)
      throw notImportable('A model of ONNX is damaged.');
    at = next + length;
    yield { number, value: wireType === 0 ? first : message.subarray(next, at) };
  }
}

/** The varints of a packed field. */
function varintsIn(bytes: Buffer): bigint[] {
  const values: bigint[] = [];
  for (let at = 0; at < bytes.length; ) {
    const [value, next] = varintAt(bytes, at);
    values.push(value);
    at = next;
  }
  return values;
}

/** The number at this place, and the place after it. */
function varintAt(bytes: Buffer, start: number): [value: bigint, next: number] {
  let value = 0n;
  for (let at = start; ; at++) {
    const byte = bytes.readUInt8(at);
    value |= BigInt(byte & 0x7f) << BigInt(7 * (at - start));
    if (byte < 0x80) return [value, at + 1];
  }
}
