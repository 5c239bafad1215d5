/** Writes whisper.cpp's legacy file format. It is little-endian, and a tensor consists of header, name and data. */
import { toHalf } from './half.ts';
import { createHashedFile } from './hashed-file.ts';
import { bytesOf } from './tensor-values.ts';

export type TensorType = 'f32' | 'f16';
const TYPE_ID: Record<TensorType, number> = { f32: 0, f16: 1 };
/** The number that a file begins with: the ASCII codes of "ggml". */
export const GGML_MAGIC = 0x67676d6c;

export type GgmlWriter = Awaited<ReturnType<typeof createGgmlWriter>>;

export async function createGgmlWriter(path: string) {
  const file = await createHashedFile(path);
  const { write } = file;
  return {
    ...file,
    ints: (...values: number[]) => write(bytesOf(Int32Array.from(values))),
    /** Writes the header of a tensor. `shape` is outermost first, as in PyTorch. Then write its data. */
    async tensor(name: string, type: TensorType, shape: readonly number[]): Promise<void> {
      const label = Buffer.from(name);
      await write(bytesOf(Int32Array.of(shape.length, label.length, TYPE_ID[type], ...shape.toReversed())));
      await write(label);
    },
    values: (type: TensorType, floats: Float32Array) =>
      write(bytesOf(type === 'f16' ? Uint16Array.from(floats, toHalf) : floats)),
  };
}
