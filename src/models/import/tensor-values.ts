/**
 * What all readers and writers of tensors need: the size of a shape, and values as the bytes of files. Those are
 * little-endian, as every processor is that the engine is compiled for. Pure.
 */

/** How many values a tensor of this shape has. */
export const countOf = (shape: readonly number[]): number =>
  shape.reduce((count, extent) => count * extent, 1);

export const isSameShape = (some: readonly number[], others: readonly number[]): boolean =>
  some.length === others.length && some.every((extent, i) => extent === others[i]);

/** The bytes of values, which are not copied. */
export const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Buffer =>
  Buffer.from(buffer as ArrayBuffer, byteOffset, byteLength);

/** The bytes in memory of their own, which begins where a value of any type may begin. */
export const alignedBytes = (bytes: Uint8Array): ArrayBuffer => new Uint8Array(bytes).buffer;

/** The floats in as many whole groups of four bytes. */
export const floatsIn = (bytes: Uint8Array): Float32Array =>
  new Float32Array(alignedBytes(bytes), 0, Math.floor(bytes.length / 4));
