/** Decodes audio that arrives as raw bytes: 16-bit PCM, and the two laws of telephony (ITU-T G.711). */
import { createResampler } from './resampler.ts';

export type LiveEncoding = 'pcm16' | 'mulaw' | 'alaw';

export interface LiveFormat {
  encoding: LiveEncoding;
  /** Samples in a second of one channel, one of `LIVE_RATES`. */
  rate: number;
}

/** Hz. Each has a small ratio to 16 kHz, so that the filter of the resampler stays small. */
export const LIVE_RATES = [8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000] as const;

/**
 * Decodes bytes as they come to 16 kHz mono float32. A sample may be spread over two pieces.
 * @throws nothing: every byte sequence is a sound
 */
export function liveDecoder(format: LiveFormat): (bytes: Uint8Array) => Float32Array {
  const resample = createResampler(format.rate);
  if (format.encoding !== 'pcm16') {
    const table = format.encoding === 'mulaw' ? MU_LAW : A_LAW;
    return (bytes) => resample(Float32Array.from(bytes, (byte) => table[byte] as number));
  }
  let odd: Uint8Array = new Uint8Array(0);
  return (bytes) => {
    const all = odd.length === 0 ? bytes : Buffer.concat([odd, bytes]);
    const whole = all.length - (all.length % 2);
    odd = all.slice(whole);
    const view = new DataView(all.buffer, all.byteOffset, whole);
    return resample(Float32Array.from({ length: whole / 2 }, (_, i) => view.getInt16(2 * i, true) / 32_768));
  };
}

/** A sign, 3 bits of exponent and 4 of mantissa, all inverted; the law has 14 bits. */
const MU_LAW = Float32Array.from({ length: 256 }, (_, code) => {
  const bits = ~code & 0xff;
  const magnitude = ((((bits & 0x0f) << 3) + 0x84) << ((bits >> 4) & 7)) - 0x84;
  return (bits & 0x80 ? -magnitude : magnitude) / 32_768;
});

/** As above, with every other bit inverted; the law has 13 bits. */
const A_LAW = Float32Array.from({ length: 256 }, (_, code) => {
  const bits = code ^ 0x55;
  const exponent = (bits >> 4) & 7;
  const mantissa = ((bits & 0x0f) << 4) + 8;
  const magnitude = exponent === 0 ? mantissa : (mantissa + 0x100) << (exponent - 1);
  return (bits & 0x80 ? magnitude : -magnitude) / 32_768;
});
