/**
 * Checks the pages of an Ogg Vorbis file (RFC 3533, section 6). The addon can read a single stream without damage.
 * ffmpeg reads the others: it resumes at the next page after damage, and knows chained and multiplexed streams.
 */
import { setImmediate } from 'node:timers/promises';
import { type Container, OGG, VORBIS } from './sniff.ts';

const HEADER_BYTES = 27;
const [FLAGS_AT, STREAM_AT, CHECKSUM_AT, SEGMENTS_AT] = [5, 14, 22, 26];
const [FIRST_PAGE, LAST_PAGE] = [2, 4];
/** More than the largest page, and checked within a millisecond. */
const READ_BYTES = 4 * 65_536;
const POLYNOMIAL = 0x04c11db7;

/** The checksum of each byte when 0 to 3 others follow, so that four bytes are looked up at once. */
const TABLES = [0, 1, 2, 3].map((after) =>
  Uint32Array.from({ length: 256 }, (_, byte) => {
    let sum = byte << 24;
    for (let bit = 0; bit < 8 * (after + 1); bit += 1) sum = (sum << 1) ^ (sum < 0 ? POLYNOMIAL : 0);
    return sum >>> 0;
  }),
);
const [T0, T1, T2, T3] = TABLES as [Uint32Array, Uint32Array, Uint32Array, Uint32Array];

function checksum(bytes: Uint8Array, from: number, to: number, before: number): number {
  let sum = before;
  let at = from;
  for (; at + 4 <= to; at += 4) {
    const word =
      sum ^
      (((bytes[at] as number) << 24) |
        ((bytes[at + 1] as number) << 16) |
        ((bytes[at + 2] as number) << 8) |
        (bytes[at + 3] as number));
    sum =
      (T3[word >>> 24] as number) ^
      (T2[(word >>> 16) & 255] as number) ^
      (T1[(word >>> 8) & 255] as number) ^
      (T0[word & 255] as number);
  }
  for (; at < to; at += 1) sum = (sum << 8) ^ (T0[((sum >>> 24) ^ (bytes[at] as number)) & 255] as number);
  return sum;
}

const CHAINED: Container = { ...OGG, isChained: true };
const DAMAGED: Container = { ...OGG, isDamaged: true };
const NO_CHECKSUM = new Uint8Array(4);

/** The length of the page at `at`; null if it is not all in `bytes`, 0 if it is damaged or no page. */
function pageLength(bytes: Buffer, at: number): number | null {
  if (bytes.length - at < HEADER_BYTES) return null;
  if (bytes.toString('latin1', at, at + 4) !== 'OggS') return 0;
  const body = at + HEADER_BYTES + (bytes[at + SEGMENTS_AT] as number);
  if (body > bytes.length) return null;
  let end = body;
  for (let i = at + HEADER_BYTES; i < body; i += 1) end += bytes[i] as number;
  if (end > bytes.length) return null;
  let sum = checksum(bytes, at, at + CHECKSUM_AT, 0);
  sum = checksum(NO_CHECKSUM, 0, NO_CHECKSUM.length, sum);
  sum = checksum(bytes, at + CHECKSUM_AT + NO_CHECKSUM.length, end, sum);
  return sum >>> 0 === bytes.readUInt32LE(at + CHECKSUM_AT) ? end - at : 0;
}

/** @param readAt returns fewer bytes only at the end of the file */
export async function sniffPages(
  readAt: (position: number, length: number) => Promise<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<Container> {
  let stream: number | null = null;
  let hasSound = false; // all multiplexed streams begin before the first sound
  let isOver = false; // what follows the last page is no audio
  for (let position = 0; ; ) {
    signal?.throwIfAborted();
    const read = await readAt(position, READ_BYTES);
    const bytes = Buffer.from(read.buffer, read.byteOffset, read.byteLength);
    let at = 0;
    for (;;) {
      const length = pageLength(bytes, at);
      if (length === null) break;
      // ffmpeg reads nothing without the first pages. The addon ignores their checksums.
      if (length === 0) return isOver || !hasSound ? VORBIS : DAMAGED;
      const own = bytes.readUInt32LE(at + STREAM_AT);
      stream ??= own;
      const isFirst = ((bytes[at + FLAGS_AT] as number) & FIRST_PAGE) !== 0;
      if (isFirst && hasSound) return CHAINED;
      if (own !== stream) return OGG;
      hasSound ||= !isFirst;
      isOver = ((bytes[at + FLAGS_AT] as number) & LAST_PAGE) !== 0;
      at += length;
    }
    // An incomplete last page is that of a recording that was stopped. If another page follows, it is damage.
    if (read.byteLength < READ_BYTES) return bytes.includes('OggS', at + 1) && !isOver ? DAMAGED : VORBIS;
    position += at;
    await setImmediate();
  }
}
