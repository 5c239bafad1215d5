/**
 * Writes a GGUF file, version 3, whose tensors are float32
 * (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md). The values of all tensors are in memory.
 */
import { createHashedFile, type WrittenFile } from './hashed-file.ts';
import { bytesOf } from './tensor-values.ts';

const VERSION = 3;
const ALIGNMENT = 32;
const STRING = 8;
const F32 = 0;

export interface GgufTensor {
  name: string;
  /** Outermost first, as in PyTorch. */
  shape: readonly number[];
  values: Float32Array;
}

export async function writeGguf(
  path: string,
  texts: Readonly<Record<string, string>>,
  tensors: readonly GgufTensor[],
): Promise<WrittenFile> {
  await using file = await createHashedFile(path);
  await file.write(padded(header(texts, tensors)));
  for (const { values } of tensors) await file.write(padded(bytesOf(values)));
  return await file.finish();
}

function header(texts: Readonly<Record<string, string>>, tensors: readonly GgufTensor[]): Buffer {
  const pairs = Object.entries(texts);
  const head = [Buffer.from('GGUF'), u32(VERSION), u64(tensors.length), u64(pairs.length)];
  for (const [key, text] of pairs) head.push(string(key), u32(STRING), string(text));
  let offset = 0;
  for (const { name, shape, values } of tensors) {
    head.push(string(name), u32(shape.length), ...shape.toReversed().map(u64), u32(F32), u64(offset));
    offset += paddedSize(values.length * 4);
  }
  return Buffer.concat(head);
}

const paddedSize = (bytes: number) => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes], paddedSize(bytes.length));
}

const u32 = (value: number) => bytesOf(Uint32Array.of(value));
const u64 = (value: number) => bytesOf(BigUint64Array.of(BigInt(value)));

function string(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([u64(bytes.length), bytes]);
}
