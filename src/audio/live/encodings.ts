/** Decodes audio that arrives as raw bytes: PCM, and the two laws of telephony (ITU-T G.711). */
import { createResampler } from './resampler.ts';

export type LiveEncoding = 'pcm16' | 'mulaw' | 'alaw';

export interface LiveFormat {
  encoding: LiveEncoding;
  /** Samples in a second of one channel, one of `LIVE_RATES`. */
  rate: number;
}

/** Hz. Each has a small ratio to 16 kHz, so that the filter of the resampler stays small. */
export const LIVE_RATES = [8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000] as const;

/** Integers, little-endian and signed; those of one byte are unsigned, as in wav. */
export interface PcmFormat {
  /** As in `LiveFormat`. */
  rate: number;
  /** The bytes of a sample, 1 to 4. */
  width: number;
  /** The samples of a moment, of which the average is heard. */
  channels: number;
}

/** Decodes bytes as they come to 16 kHz mono float32. It throws nothing: every byte sequence is a sound. */
export interface LiveDecoder {
  /** A sample may be spread over two pieces. */
  take(bytes: Uint8Array): Float32Array;
  /** Returns the last samples, and drops half of one. The next bytes begin something new. */
  end(): Float32Array;
}

export function liveDecoder(format: LiveFormat): LiveDecoder {
  if (format.encoding === 'pcm16') return pcmDecoder({ rate: format.rate, width: 2, channels: 1 });
  const { take, end } = createResampler(format.rate);
  const table = format.encoding === 'mulaw' ? MU_LAW : A_LAW;
  return { take: (bytes) => take(Float32Array.from(bytes, (byte) => table[byte] as number)), end };
}

/** As `liveDecoder`, for PCM of every width and number of channels. */
export function pcmDecoder({ rate, width, channels }: PcmFormat): LiveDecoder {
  const resampler = createResampler(rate);
  const frame = width * channels;
  const scale = channels * 2 ** (8 * width - 1);
  let odd = new Uint8Array(0);
  return {
    take(bytes) {
      const all = Buffer.concat([odd, bytes]);
      const frames = Math.floor(all.length / frame);
      odd = new Uint8Array(all.subarray(frames * frame));
      const read = (at: number) => (width === 1 ? all.readUInt8(at) - 128 : all.readIntLE(at, width));
      const mono = Float32Array.from({ length: frames }, (_, i) => {
        let sum = 0;
        for (let at = i * frame; at < (i + 1) * frame; at += width) sum += read(at);
        return sum / scale;
      });
      return resampler.take(mono);
    },
    end() {
      odd = new Uint8Array(0);
      return resampler.end();
    },
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
