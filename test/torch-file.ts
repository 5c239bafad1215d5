/** Writes checkpoints as torch does: a zip archive of stored entries, one of which is a pickle. */
import { zipSync } from 'fflate';

const u32 = (value: number) => Buffer.from(Uint32Array.of(value).buffer);

export type Entries = Record<string, Uint8Array>;

/** A zip archive of entries that are not compressed. */
export const storedZip = (entries: Entries): Buffer => Buffer.from(zipSync(entries, { level: 0 }));

/** The instructions of a pickle, as bytes. */
export const op = {
  text: (value: string) =>
    Buffer.concat([Buffer.from('X'), u32(Buffer.byteLength(value)), Buffer.from(value)]),
  name: (module: string, name: string) => Buffer.from(`c${module}\n${name}\n`),
  int: (value: number) => Buffer.concat([Buffer.from('J'), u32(value)]),
  tuple: (...items: Uint8Array[]) => Buffer.concat([Buffer.from('('), ...items, Buffer.from('t')]),
  call: (callable: Uint8Array, args: Uint8Array) => Buffer.concat([callable, args, Buffer.from('R')]),
  dict: (items: Record<string, Uint8Array>) =>
    Buffer.concat([
      Buffer.from('}('),
      ...Object.entries(items).flatMap(([key, value]) => [op.text(key), value]),
      Buffer.from('u'),
    ]),
  storage: (key: string, elements: number, type = 'FloatStorage') =>
    Buffer.concat([
      op.tuple(op.text('storage'), op.name('torch', type), op.text(key), op.text('cpu'), op.int(elements)),
      Buffer.from('Q'),
    ]),
  tensor: (storage: Uint8Array, offset: number, shape: number[], strides = rowByRow(shape)) =>
    op.call(
      op.name('torch._utils', '_rebuild_tensor_v2'),
      op.tuple(
        storage,
        op.int(offset),
        op.tuple(...shape.map(op.int)),
        op.tuple(...strides.map(op.int)),
        Buffer.from([0x89]),
        op.call(op.name('collections', 'OrderedDict'), Buffer.from(')')),
      ),
    ),
  whole: (value: Uint8Array) => Buffer.concat([Buffer.from([0x80, 2]), value, Buffer.from('.')]),
};

function rowByRow(shape: number[]): number[] {
  return shape.map((_, i) => shape.slice(i + 1).reduce((total, extent) => total * extent, 1));
}
