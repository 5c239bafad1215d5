/**
 * Reads the constant tensors of an ONNX model (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto), without its
 * runtime. The graph of the model is not looked at, so nothing of it can be executed.
 */
import { BUDGETS } from '../../limits/budgets.ts';
import { BoundedFile } from './bounded-file.ts';
import { notImportable } from './failure.ts';
import { readFields, readVarints } from './protobuf.ts';
import { countOf, floatsIn, isSameShape } from './tensor-values.ts';

/** Numbers of fields. */
const MODEL_GRAPH = 7;
const GRAPH_INITIALIZER = 5;
const TENSOR = { dims: 1, type: 2, floats: 4, ints: 5, name: 8, raw: 9, external: 13, location: 14 } as const;

/** The types of values that are read, by their numbers. */
const TYPES = { 1: 'float32', 3: 'int8', 6: 'int32' } as const;
type ValueType = (typeof TYPES)[keyof typeof TYPES];
const BYTES: Readonly<Record<ValueType, number>> = { float32: 4, int8: 1, int32: 4 };

const MAX_NAME_BYTES = 256;
const MAX_DIMS = 8;

interface Place {
  type: ValueType | undefined;
  shape: number[];
  /** The values as they lie in memory, little-endian. */
  raw: Buffer | null;
  /** The values of a small tensor, as fields. */
  listed: number[];
}

export interface OnnxTensors {
  /**
   * The values of a tensor of this type, row by row.
   * @throws GatewayError `not_importable` unless it has exactly this shape
   */
  values(name: string, type: ValueType, shape: readonly number[]): Float64Array;
}

/** @throws GatewayError `not_importable` */
export async function readOnnxTensors(path: string): Promise<OnnxTensors> {
  const refuse = (why: string, cause?: unknown) =>
    notImportable(`${path} cannot be imported: ${why}.`, cause);
  const tensors = new Map<string, Place>();
  try {
    for (const tensor of initializers(await readWhole(path))) {
      const { name, ...place } = readTensor(tensor);
      if (tensors.has(name)) throw new Error('two of its tensors have one name');
      if (tensors.size === BUDGETS.checkpoint.maxEntries) throw new Error('it has too many tensors');
      tensors.set(name, place);
    }
  } catch (error) {
    throw refuse((error as Error).message, error);
  }
  return {
    values(name, type, shape) {
      const place = tensors.get(name);
      if (place === undefined) throw refuse(`it has no tensor ${name}`);
      if (place.type !== type) throw refuse(`the values of ${name} are not of type ${type}`);
      if (!isSameShape(place.shape, shape))
        throw refuse(`${name} has the shape ${place.shape.join(' x ')}, expected ${shape.join(' x ')}`);
      const count = countOf(shape);
      const values = valuesOf(place, type, count);
      if (values === null) throw refuse(`${name} does not have its ${count} values`);
      return values;
    },
  };
}

async function readWhole(path: string): Promise<Buffer> {
  await using file = await BoundedFile.open(path);
  if (file.size > BUDGETS.checkpoint.maxOnnxBytes) throw new Error('it is too large');
  return await file.read(0, file.size);
}

function* initializers(model: Buffer): Generator<Buffer> {
  for (const graph of readFields(model)) {
    if (graph.number !== MODEL_GRAPH || graph.type !== 'bytes') continue;
    for (const field of readFields(graph.value))
      if (field.number === GRAPH_INITIALIZER && field.type === 'bytes') yield field.value;
  }
}

function readTensor(tensor: Buffer): Place & { name: string } {
  const result: Place & { name: string } = { name: '', type: undefined, shape: [], raw: null, listed: [] };
  for (const { number, type, value } of readFields(tensor)) {
    if (number === TENSOR.dims)
      result.shape.push(...numbersOf(type === 'varint' ? [value] : readVarints(value)));
    else if (number === TENSOR.type && type === 'varint')
      result.type = TYPES[Number(value) as keyof typeof TYPES];
    else if (number === TENSOR.floats && type !== 'varint') result.listed.push(...readFloats(value));
    else if (number === TENSOR.ints) {
      for (const int of type === 'varint' ? [value] : readVarints(value))
        result.listed.push(Number(BigInt.asIntN(32, int)));
    } else if (number === TENSOR.name && type === 'bytes') {
      if (value.length > MAX_NAME_BYTES) throw new Error('the name of a tensor is too long');
      result.name = value.toString('utf8');
    } else if (number === TENSOR.raw && type === 'bytes') result.raw = value;
    else if (number === TENSOR.external || (number === TENSOR.location && value !== 0n))
      throw new Error('values of it are in another file');
    if (result.shape.length > MAX_DIMS) throw new Error('a tensor has too many dimensions');
  }
  return result;
}

const numbersOf = (values: Iterable<bigint>) => [...values].map(Number);

/** A field of one float, or of several that are packed. */
function readFloats(bytes: Buffer): Float32Array {
  if (bytes.length % 4 !== 0) throw new Error('a number in it is cut short');
  return floatsIn(bytes);
}

/** The values; null when there are more or fewer of them. */
function valuesOf({ raw, listed }: Place, type: ValueType, count: number): Float64Array | null {
  if (raw === null) return listed.length === count ? Float64Array.from(listed) : null;
  if (raw.length !== count * BYTES[type]) return null;
  const read = {
    float32: (i: number) => raw.readFloatLE(4 * i),
    int8: (i: number) => raw.readInt8(i),
    int32: (i: number) => raw.readInt32LE(4 * i),
  }[type];
  return Float64Array.from({ length: count }, (_, i) => read(i));
}
