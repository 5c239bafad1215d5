/**
 * Looks at the pages of an Ogg Vorbis file (RFC 3533, section 6). The addon reads one stream without damage; ffmpeg goes
 * on at the next page where one is damaged, and reads what is chained or multiplexed.
 */
import { setImmediate } from 'node:timers/promises';
import { type Container, OGG, VORBIS } from './sniff.ts';

const HEADER_BYTES = 27;
const [FLAGS_AT, STREAM_AT, CHECKSUM_AT, SEGMENTS_AT] = [5, 14, 22, 26];
const [FIRST_PAGE, LAST_PAGE] = [2, 4];
/** A multiple of the largest page, and checked in a millisecond. */
const READ_BYTES = 4 * 65_536;
const POLYNOMIAL = 0x04c11db7;

/** Checksums of each byte that is followed by 0 to 3 others. */
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

/** The length of the page at `at`; null where it is not all there, and 0 where it is damaged or none. */
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

/** @param readAt gives the bytes at a place of the file, fewer only at its end */
export async function sniffPages(
  readAt: (position: number, length: number) => Promise<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<Container> {
  let stream: number | null = null;
  let hasSound = false; // what is multiplexed begins before it
  let isOver = false; // what stands behind the last page is no audio
  for (let position = 0; ; ) {
    signal?.throwIfAborted();
    const read = await readAt(position, READ_BYTES);
    const bytes = Buffer.from(read.buffer, read.byteOffset, read.byteLength);
    let at = 0;
    for (;;) {
      const length = pageLength(bytes, at);
      if (length === null) break;
      // Without the first pages ffmpeg reads nothing. The addon does not ask for their checksums.
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
    // A page that is not complete at the end of the file is cut, as in every recording that was stopped, unless another
    // one follows it.
    if (read.byteLength < READ_BYTES) return bytes.includes('OggS', at + 1) && !isOver ? DAMAGED : VORBIS;
    position += at;
    await setImmediate();
  }
}
