/**
 * Reads the headers of MPEG audio of the layers II and III (ISO 11172-3, section 2.4.1.3; ISO 13818-3 for the lower
 * rates; version 2.5 has rates of a quarter) and of AAC in ADTS (ISO 13818-7, section 6.2). Pure.
 */

export type MpegCodec = 'mp2' | 'mp3' | 'adts';

interface Frame {
  codec: MpegCodec;
  /** Bytes of the whole frame. */
  length: number;
  /** Equal for all frames of one stream. */
  kind: string;
}

/** kbit/s, by the index of the header less 1. */
const BITRATES = {
  layer2: [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  layer3: [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  lowRates: [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
};
const RATES = [44_100, 48_000, 32_000];

/**
 * The frame whose header is at `at`; null where there is none. Layer I and free bit rates are left out, because they
 * are not in use and the byte order mark of UTF-16 text looks like layer I.
 */
function mpegFrameAt(bytes: Buffer, at: number): Frame | null {
  const [sync = 0, kind = 0, rates = 0] = bytes.subarray(at, at + 3);
  const version = (kind >> 3) & 3; // 3 is MPEG-1, 2 is MPEG-2, 0 is 2.5
  const isLayer3 = ((kind >> 1) & 3) === 1;
  const isLayer2 = ((kind >> 1) & 3) === 2;
  if (sync !== 0xff || (kind & 0xe0) !== 0xe0 || version === 1 || !(isLayer2 || isLayer3)) return null;
  const isFirst = version === 3;
  const bitrate = BITRATES[isFirst ? (isLayer3 ? 'layer3' : 'layer2') : 'lowRates'][(rates >> 4) - 1];
  const fullRate = RATES[(rates >> 2) & 3];
  if (bitrate === undefined || fullRate === undefined) return null;
  const rate = fullRate / (isFirst ? 1 : version === 2 ? 2 : 4);
  const samples = isLayer3 && !isFirst ? 576 : 1152;
  const padding = (rates >> 1) & 1;
  return {
    codec: isLayer3 ? 'mp3' : 'mp2',
    length: Math.floor(((samples / 8) * bitrate * 1000) / rate) + padding,
    kind: `${version} ${isLayer3} ${rate}`,
  };
}

/** The ADTS frame whose header is at `at`; null where there is none. */
function adtsFrameAt(bytes: Buffer, at: number): Frame | null {
  if (at + 6 > bytes.length || (bytes.readUInt16BE(at) & 0xfff6) !== 0xfff0) return null;
  const rate = ((bytes[at + 2] as number) >> 2) & 15;
  const length = (bytes.readUIntBE(at + 3, 3) >> 5) & 0x1fff;
  return rate >= ADTS_RATES || length < ADTS_HEADER_BYTES
    ? null
    : { codec: 'adts', length, kind: bytes.toString('hex', at + 1, at + 3) };
}

const ADTS_HEADER_BYTES = 7;
/** The other values of the four bits are reserved. */
const ADTS_RATES = 13;
/** The bytes of the longest MPEG frame: layer II of 384 kbit/s at 32 kHz. */
const MAX_FRAME = 1728;
/** Fewer bytes are too few to tell what they are. */
const FEW = 32;

/** The codec of the frames with which a file begins, after zeros or the rest of an earlier frame; null for none. */
export function mpegCodecOf(bytes: Buffer): MpegCodec | null {
  const start = Math.max(
    0,
    bytes.findIndex((byte) => byte !== 0),
  );
  return (mpegFrameAt(bytes, start) ?? adtsFrameAt(bytes, start))?.codec ?? codecAfterRest(bytes);
}

/** A recording of a stream, and a part that was cut out of a file, begin within a frame. Two whole ones follow it. */
function codecAfterRest(bytes: Buffer): MpegCodec | null {
  for (let at = bytes.indexOf(0xff); at >= 0 && at <= MAX_FRAME; at = bytes.indexOf(0xff, at + 1)) {
    for (const read of [mpegFrameAt, adtsFrameAt]) {
      const frame = read(bytes, at);
      if (frame !== null && read(bytes, at + frame.length)?.kind === frame.kind)
        return at < FEW || isPacked(bytes.subarray(0, at)) ? frame.codec : null;
    }
  }
  return null;
}

/** True for bytes as chance would make them; half of those are no ASCII. A page or a zip before an mp3 is no audio. */
function isPacked(bytes: Buffer): boolean {
  return bytes.filter((byte) => byte >= 0x80).length > bytes.length / 4;
}
