/**
 * Checks the pages of an Ogg Vorbis file (RFC 3533, section 6). The addon can read a single stream without damage.
 * ffmpeg reads the others: it resumes at the next page after damage, and knows chained and multiplexed streams.
 */
import { setImmediate } from 'node:timers/promises';
import type { ReadAt } from './sample-chunk.ts';
import { type Container, OGG, VORBIS } from './sniff.ts';

const HEADER_BYTES = 27;
const [FLAGS_AT, STREAM_AT, CHECKSUM_AT, SEGMENTS_AT] = [5, 14, 22, 26];
const [FIRST_PAGE, LAST_PAGE] = [2, 4];
/** More than the largest page, and checked within a millisecond. */
const READ_BYTES = 4 * 65_536;
const POLYNOMIAL = 0x04c11db7;

/** The checksum of each byte alone. */
const CHECKSUMS = Int32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte << 24;
  for (let bit = 0; bit < 8; bit += 1) sum = (sum << 1) ^ (sum < 0 ? POLYNOMIAL : 0);
  return sum;
});

function checksum(bytes: Uint8Array, before: number): number {
  let sum = before;
  for (let at = 0; at < bytes.length; at += 1)
    sum = (sum << 8) ^ (CHECKSUMS[(sum >>> 24) ^ (bytes[at] as number)] as number);
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
  let sum = checksum(bytes.subarray(at, at + CHECKSUM_AT), 0);
  sum = checksum(NO_CHECKSUM, sum);
  sum = checksum(bytes.subarray(at + CHECKSUM_AT + NO_CHECKSUM.length, end), sum);
  return sum >>> 0 === bytes.readUInt32LE(at + CHECKSUM_AT) ? end - at : 0;
}

/** @param readAt returns fewer bytes only at the end of the file */
export async function sniffPages(readAt: ReadAt, signal: AbortSignal | undefined): Promise<Container> {
  let stream: number | null = null;
  let hasSound = false; // all multiplexed streams begin before the first sound
  let isOver = false; // what follows the last page is no audio
  for (let position = 0; ; ) {
    signal?.throwIfAborted();
    const bytes = await readAt(position, READ_BYTES);
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
    if (bytes.length < READ_BYTES) return bytes.includes('OggS', at + 1) && !isOver ? DAMAGED : VORBIS;
    position += at;
    await setImmediate();
  }
}
