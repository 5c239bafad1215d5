/** Writes checkpoints as torch does: a zip archive of stored entries, one of which is a pickle. */

const u16 = (value: number) => Buffer.from(Uint16Array.of(value).buffer);
const u32 = (value: number) => Buffer.from(Uint32Array.of(value).buffer);

export type Entries = Record<string, Uint8Array>;

/** A zip archive of entries that are not compressed. `method` is what their headers claim. */
export function storedZip(entries: Entries, method = 0): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, data] of Object.entries(entries)) {
    const padding = (64 - ((offset + 30 + name.length) % 64)) % 64; // torch aligns the data with an extra field
    const common = [u16(0), u16(0x0808), u16(method), u32(0), u32(0), u32(data.length), u32(data.length)];
    const head = [
      u32(0x04034b50),
      ...common,
      u16(name.length),
      u16(padding),
      Buffer.from(name),
      Buffer.alloc(padding),
    ];
    const part = Buffer.concat([...head, data]);
    directory.push(
      u32(0x02014b50),
      u16(0),
      ...common,
      u16(name.length),
      u16(0),
      u16(0),
      u16(0),
      u16(0),
      u32(0),
    );
    directory.push(u32(offset), Buffer.from(name));
    parts.push(part);
    offset += part.length;
  }
  const listing = Buffer.concat(directory);
  const count = u16(Object.keys(entries).length);
  const end = [u32(0x06054b50), u16(0), u16(0), count, count, u32(listing.length), u32(offset), u16(0)];
  return Buffer.concat([...parts, listing, ...end]);
}

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

/** A checkpoint of these tensors, each with a storage of its own. */
export function torchFile(tensors: Record<string, { shape: number[]; values: Float32Array }>): Buffer {
  const entries: Entries = {};
  const items: Record<string, Uint8Array> = {};
  for (const [i, [name, { shape, values }]] of Object.entries(tensors).entries()) {
    entries[`archive/data/${i}`] = new Uint8Array(values.buffer);
    items[name] = op.tensor(op.storage(`${i}`, values.length), 0, shape);
  }
  return storedZip({ 'archive/data.pkl': op.whole(op.dict(items)), ...entries });
}
