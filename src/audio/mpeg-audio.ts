/**
 * Reads the headers of MPEG audio of the layers II and III (ISO 11172-3, section 2.4.1.3; ISO 13818-3 for the lower
 * rates; version 2.5 has rates of a quarter). Pure.
 */

interface Frame {
  /** Bytes of the whole frame. */
  length: number;
  /** Equal for all frames of one stream. */
  kind: string;
  /** Bytes of the header and the side information of layer III, behind which a Xing tag stands. */
  tagAt: number;
}

/** kbit/s, by the index of the header less 1. */
const BITRATES = {
  layer2: [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  layer3: [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  lowRates: [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
};
const RATES = [44_100, 48_000, 32_000];

/** The frame whose header stands at `at`; null where there is none. Layer I and free bit rates are not in use. */
function frameAt(bytes: Buffer, at: number): Frame | null {
  const [sync = 0, kind = 0, rates = 0, mode = 0] = bytes.subarray(at, at + 4);
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
  const isMono = mode >> 6 === 3;
  return {
    length: Math.floor(((samples / 8) * bitrate * 1000) / rate) + padding,
    kind: `${version} ${isLayer3} ${rate}`,
    tagAt: 4 + (isFirst ? (isMono ? 17 : 32) : isMono ? 9 : 17),
  };
}

/** The bytes of the longest frame: layer II of 384 kbit/s at 32 kHz. */
const MAX_FRAME = 1728;
/** Fewer bytes say little of what they are. */
const FEW = 32;

/** True where two frames of one stream follow each other, behind nothing but the rest of another one. */
export function beginsInFrame(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(0xff); at >= 0 && at <= MAX_FRAME; at = bytes.indexOf(0xff, at + 1)) {
    const frame = frameAt(bytes, at);
    if (frame !== null && frameAt(bytes, at + frame.length)?.kind === frame.kind)
      return at < FEW || isPacked(bytes.subarray(0, at));
  }
  return false;
}

/** True for bytes as chance would make them; half of those are no ASCII. A page or a zip before an mp3 is no audio. */
function isPacked(bytes: Buffer): boolean {
  return bytes.filter((byte) => byte >= 0x80).length > bytes.length / 4;
}

/**
 * The length of the audio in bytes by the tag in its first frame, which LAME and Xing write; null without one, and where
 * it was never filled in.
 * @param bytes begin with that frame
 */
export function taggedLength(bytes: Buffer): number | null {
  const tag = frameAt(bytes, 0)?.tagAt;
  if (tag === undefined || bytes.length < tag + 16) return null;
  if (!['Xing', 'Info'].includes(bytes.toString('latin1', tag, tag + 4))) return null;
  const flags = bytes.readUInt32BE(tag + 4);
  const hasLength = (flags & 2) !== 0;
  return hasLength ? bytes.readUInt32BE(tag + ((flags & 1) !== 0 ? 12 : 8)) || null : null;
}
