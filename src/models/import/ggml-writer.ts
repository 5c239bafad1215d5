/** Writes whisper.cpp's legacy file format. It is little-endian, and a tensor consists of header, name and data. */
import { toHalf } from './half.ts';
import { createHashedFile, type HashedFile } from './hashed-file.ts';
import { floatBytes } from './tensor-values.ts';

export type TensorType = 'f32' | 'f16';
const TYPE_ID: Record<TensorType, number> = { f32: 0, f16: 1 };
/** The number that a file begins with: the ASCII codes of "ggml". */
export const GGML_MAGIC = 0x67676d6c;

export interface GgmlWriter extends HashedFile {
  ints(...values: number[]): Promise<void>;
  /** Writes the header of a tensor. `shape` is outermost first, as in PyTorch. Then write its data. */
  tensor(name: string, type: TensorType, shape: readonly number[]): Promise<void>;
  values(type: TensorType, floats: Float32Array): Promise<void>;
}

export async function createGgmlWriter(path: string): Promise<GgmlWriter> {
  const file = await createHashedFile(path);
  const { write } = file;
  return {
    ...file,
    ints: (...values) => write(intBytes(values)),
    async tensor(name, type, shape) {
      const label = Buffer.from(name);
      await write(intBytes([shape.length, label.length, TYPE_ID[type], ...[...shape].reverse()]));
      await write(label);
    },
    values: (type, floats) => write(type === 'f16' ? halfBytes(floats) : floatBytes(floats)),
  };
}

function intBytes(values: readonly number[]): Buffer {
  const out = Buffer.alloc(values.length * 4);
  values.forEach((value, i) => {
    out.writeInt32LE(value, i * 4);
  });
  return out;
}

function halfBytes(floats: Float32Array): Buffer {
  const out = Buffer.allocUnsafe(floats.length * 2);
  for (let i = 0; i < floats.length; i++) out.writeUInt16LE(toHalf(floats[i] ?? 0), i * 2);
  return out;
}
