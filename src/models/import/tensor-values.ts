/** What all readers and writers of tensors need: the size of a shape, and floats as little-endian bytes. Pure. */

/** How many values a tensor of this shape has. */
export const countOf = (shape: readonly number[]): number =>
  shape.reduce((count, extent) => count * extent, 1);

export const isSameShape = (some: readonly number[], others: readonly number[]): boolean =>
  some.length === others.length && some.every((extent, i) => extent === others[i]);

export function floatBytes(floats: Float32Array): Buffer {
  const out = Buffer.allocUnsafe(floats.length * 4);
  for (let i = 0; i < floats.length; i++) out.writeFloatLE(floats[i] ?? 0, i * 4);
  return out;
}

/** The floats in as many whole groups of four bytes. */
export function floatsIn(bytes: Buffer): Float32Array {
  const out = new Float32Array(Math.floor(bytes.length / 4));
  for (let i = 0; i < out.length; i++) out[i] = bytes.readFloatLE(i * 4);
  return out;
}
