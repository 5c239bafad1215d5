/** Raw bytes of audio, decoded and encoded: PCM, and the two laws of telephony (ITU-T G.711). */
import { SAMPLE_RATE } from '../decoder.ts';
import { slipOf } from '../pcm-slips.ts';
import type { PcmFormat } from '../wav-header.ts';
import { createResampler } from './resampler.ts';

export type LiveEncoding = 'pcm16' | 'mulaw' | 'alaw';

export interface LiveFormat {
  encoding: LiveEncoding;
  /** Samples in a second of one channel, one of `LIVE_RATES`. */
  rate: number;
}

/** Hz. Each has a small ratio to 16 kHz, so that the filter of the resampler stays small. */
export const LIVE_RATES = [8000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000] as const;

/** Decodes bytes as they come to mono float32. It throws nothing: every byte sequence is a sound. */
export interface LiveDecoder {
  /** A sample may be spread over two pieces. */
  take(bytes: Uint8Array): Float32Array;
  /** Returns the last samples, and drops half of one. The next bytes begin something new. */
  end(): Float32Array;
}

/** Decodes to 16 kHz. */
export function liveDecoder(format: LiveFormat): LiveDecoder {
  if (format.encoding === 'pcm16') return pcmDecoder({ rate: format.rate, width: 2, channels: 1 });
  const { take, end } = createResampler(format.rate);
  const table = format.encoding === 'mulaw' ? MU_LAW : A_LAW;
  return { take: (bytes) => take(Float32Array.from(bytes, (byte) => table[byte] as number)), end };
}

/** As `liveDecoder`, for PCM of every width, whose channels are averaged. @param to the rate of the samples, Hz */
export function pcmDecoder({ rate, width, channels }: PcmFormat, to: number = SAMPLE_RATE): LiveDecoder {
  const resampler = createResampler(rate, to);
  const frame = width * channels;
  const scale = channels * 2 ** (8 * width - 1);
  const layout = { width, channels, isBigEndian: false, isFloat: false };
  let odd = new Uint8Array(0);
  /** A sample was put together from two pieces, which is wrong where a client lost or added a byte. */
  let isInDoubt = false;
  return {
    take(bytes) {
      isInDoubt ||= odd.length % width > 0;
      let all = Buffer.concat([odd, bytes]);
      const slip = isInDoubt ? slipOf(all, layout) : 0;
      if (slip > 0) {
        all = all.subarray(slip);
        isInDoubt = false;
      }
      const frames = Math.floor(all.length / frame);
      odd = new Uint8Array(all.subarray(frames * frame));
      const read = (at: number) => (width === 1 ? all.readUInt8(at) - 128 : all.readIntLE(at, width));
      const mono = new Float32Array(frames);
      for (let i = 0; i < frames; i += 1) {
        let sum = 0;
        for (let at = i * frame; at < (i + 1) * frame; at += width) sum += read(at);
        mono[i] = sum / scale;
      }
      return resampler.take(mono);
    },
    end() {
      odd = new Uint8Array(0);
      isInDoubt = false;
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

/** Encodes samples, -1..1, at the rate of the format. */
export function liveEncoder({ encoding }: LiveFormat): (samples: Float32Array) => Buffer {
  if (encoding === 'pcm16')
    return (samples) => {
      const bytes = Buffer.allocUnsafe(2 * samples.length);
      for (const [i, sample] of samples.entries()) bytes.writeInt16LE(to16Bits(sample), 2 * i);
      return bytes;
    };
  const codes = codesOf(encoding === 'mulaw' ? MU_LAW : A_LAW);
  return (samples) =>
    Buffer.from(Uint8Array.from(samples, (sample) => codes[to16Bits(sample) + 32_768] as number));
}

const to16Bits = (sample: number) => Math.max(-32_768, Math.min(32_767, Math.round(sample * 32_768)));

/** The code whose value is nearest, for each sample of 16 bits from the lowest up. */
function nearestCodes(table: Float32Array): Uint8Array {
  const valueAt = (code: number | undefined) => (table[code ?? -1] ?? Number.POSITIVE_INFINITY) * 32_768;
  const byValue = [...table.keys()].sort((a, b) => valueAt(a) - valueAt(b));
  let at = 0;
  return Uint8Array.from({ length: 65_536 }, (_, i) => {
    const sample = i - 32_768;
    while (valueAt(byValue[at + 1]) - sample < sample - valueAt(byValue[at])) at += 1;
    return byValue[at] as number;
  });
}

/** Each is made when it is first asked for: the two take 25 ms, which no start should wait for. */
const known = new Map<Float32Array, Uint8Array>();

function codesOf(table: Float32Array): Uint8Array {
  const codes = known.get(table) ?? nearestCodes(table);
  known.set(table, codes);
  return codes;
}
