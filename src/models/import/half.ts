/** Converts IEEE half precision by hand, because Node 20 has no Float16Array. */

const word = new DataView(new ArrayBuffer(4));

/** The bits of the nearest half, with ties to even, as numpy's astype(float16) rounds. */
export function toHalf(value: number): number {
  word.setFloat32(0, value);
  const bits = word.getUint32(0);
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00; // NaN
  if (magnitude >= 0x477ff000) return sign | 0x7c00; // rounds beyond 65504
  if (magnitude < 0x38800000) {
    // The result is subnormal. Adding 0.5 aligns the mantissa so that the addition does the rounding.
    word.setUint32(0, magnitude);
    word.setFloat32(0, word.getFloat32(0) + 0.5);
    return sign | (word.getUint32(0) - 0x3f000000);
  }
  const odd = (magnitude >>> 13) & 1;
  return sign | ((magnitude - 0x38000000 + 0xfff + odd) >>> 13);
}

/** The value of a half from its bits. */
export function fromHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >>> 10) & 0x1f;
  const mantissa = bits & 0x3ff;
  if (exponent === 0) return sign * mantissa * 2 ** -24;
  if (exponent === 31) return mantissa ? Number.NaN : sign * Number.POSITIVE_INFINITY;
  return sign * (1 + mantissa / 1024) * 2 ** (exponent - 15);
}

/** The value of a bfloat16 from its bits. */
export function fromBrain(bits: number): number {
  word.setUint32(0, bits << 16);
  return word.getFloat32(0);
}
