/** Reads CTranslate2's model.bin (binary versions 4 to 6). It reads the index first, and values only on request. */
import { BoundedFile, FieldReader } from './bounded-file.ts';
import { notImportable } from './failure.ts';
import { fromBrain, fromHalf } from './half.ts';
import { alignedBytes, countOf } from './tensor-values.ts';

const DTYPES = ['float32', 'int8', 'int16', 'int32', 'float16', 'bfloat16'] as const;
type Dtype = (typeof DTYPES)[number];
const WIDTH: Record<Dtype, number> = { float32: 4, int8: 1, int16: 2, int32: 4, float16: 2, bfloat16: 2 };

export interface Variable {
  name: string;
  shape: number[];
  dtype: Dtype;
  offset: number;
  count: number;
}

export interface Checkpoint extends AsyncDisposable {
  spec: string;
  get(name: string): Variable | undefined;
  /** `count` values starting at index `from`, as raw little-endian bytes of the variable's type. */
  raw(variable: Variable, from: number, count: number): Promise<Buffer>;
  /** The same values as float32; integers are not scaled. */
  floats(variable: Variable, from: number, count: number): Promise<Float32Array>;
}

const MAX_VARIABLES = 100_000;
const MAX_RANK = 8;

/** @throws GatewayError `not_importable` when the file is damaged or of another version */
export async function openCheckpoint(path: string): Promise<Checkpoint> {
  const file = await BoundedFile.open(path);
  try {
    const { spec, variables } = await readIndex(file);
    return {
      spec,
      get: (name) => variables.get(name),
      raw: (variable, from, count) => readRaw(file, variable, from, count),
      floats: async (variable, from, count) =>
        DECODE[variable.dtype](alignedBytes(await readRaw(file, variable, from, count))),
      [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
    };
  } catch (error) {
    await file[Symbol.asyncDispose]();
    throw error;
  }
}

async function readIndex(file: BoundedFile): Promise<{ spec: string; variables: Map<string, Variable> }> {
  const fields = new FieldReader(file);
  const version = await fields.u32();
  if (version < 4 || version > 6) {
    throw notImportable(
      `${file.path} is not a CTranslate2 model that this program reads: format version ${version}, expected 4 to 6.`,
    );
  }
  const spec = await readString(fields);
  await fields.u32(); // the spec's revision
  const count = await fields.u32();
  if (count > MAX_VARIABLES) throw notImportable(`${file.path} is damaged: it claims ${count} variables.`);

  const variables = new Map<string, Variable>();
  for (let i = 0; i < count; i++) {
    const variable = await readVariable(file, fields);
    variables.set(variable.name, variable);
  }
  const aliases = await fields.u32();
  if (aliases > MAX_VARIABLES) throw notImportable(`${file.path} is damaged: it claims ${aliases} aliases.`);
  for (let i = 0; i < aliases; i++) {
    const alias = await readString(fields);
    const target = variables.get(await readString(fields));
    if (!target)
      throw notImportable(`${file.path} is damaged: the target of alias ${printable(alias)} is missing.`);
    variables.set(alias, target);
  }
  return { spec, variables };
}

async function readVariable(file: BoundedFile, fields: FieldReader): Promise<Variable> {
  const name = await readString(fields);
  const rank = await fields.u8();
  if (rank > MAX_RANK)
    throw notImportable(`${file.path} is damaged: ${printable(name)} has ${rank} dimensions.`);
  const shape: number[] = [];
  for (let d = 0; d < rank; d++) shape.push(await fields.u32());
  const dtype = DTYPES[await fields.u8()];
  if (!dtype) throw notImportable(`${file.path} is damaged: ${printable(name)} has an unknown type.`);
  const bytes = await fields.u32();
  // The product is a float, so it cannot overflow silently: an absurd shape just differs from a 32-bit byte count.
  const count = countOf(shape);
  if (count * WIDTH[dtype] !== bytes) {
    throw notImportable(
      `${file.path} is damaged: ${printable(name)} of shape [${shape.join(', ')}] holds ${bytes} bytes.`,
    );
  }
  const offset = fields.offset;
  fields.skip(bytes);
  return { name, shape, dtype, offset, count };
}

/** Reads a string: its length, which counts the NUL at its end, then its bytes. */
async function readString(fields: FieldReader): Promise<string> {
  const length = await fields.u16();
  return (await fields.bytes(length)).toString('latin1').replace(/\0$/, '');
}

function printable(name: string): string {
  return JSON.stringify(name.slice(0, 80));
}

function readRaw(file: BoundedFile, variable: Variable, from: number, count: number): Promise<Buffer> {
  if (from < 0 || count < 0 || from + count > variable.count) {
    throw notImportable(`${file.path}: values ${from} to ${from + count} are not in ${variable.name}.`);
  }
  const width = WIDTH[variable.dtype];
  return file.read(variable.offset + from * width, count * width);
}

const DECODE: Record<Dtype, (values: ArrayBuffer) => Float32Array> = {
  float32: (values) => new Float32Array(values),
  float16: (values) => Float32Array.from(new Uint16Array(values), fromHalf),
  bfloat16: (values) => Float32Array.from(new Uint16Array(values), fromBrain),
  int8: (values) => Float32Array.from(new Int8Array(values)),
  int16: (values) => Float32Array.from(new Int16Array(values)),
  int32: (values) => Float32Array.from(new Int32Array(values)),
};
