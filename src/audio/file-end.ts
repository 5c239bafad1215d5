/**
 * What the headers of a few formats say about the end of the file: how long the sound is, and whether another file
 * follows, as `cat` joins them. Decoders read the first one alone.
 */
import type { ReadAt } from './sample-chunk.ts';

/** How many bytes at the start are the same in all files of a format that somebody would join. */
const MARK_BYTES: Readonly<Record<string, number>> = { asf: 16, flv: 13, tta: 14, voc: 20 };
const READ_BYTES = 256 * 1024;

/** True if another file of the same format follows. All of the file is read for it, but of an MP4 only its boxes. */
export async function isFollowed(
  demuxer: string,
  readAt: ReadAt,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  if (demuxer === 'mov') return isFollowedMp4(readAt);
  const markBytes = MARK_BYTES[demuxer];
  if (markBytes === undefined) return false;
  const mark = await readAt(0, markBytes);
  for (let at = markBytes; ; at += READ_BYTES - markBytes) {
    signal?.throwIfAborted();
    const bytes = await readAt(at, READ_BYTES);
    if (bytes.includes(mark)) return true;
    if (bytes.length < READ_BYTES) return false;
  }
}

const BOX_HEADER_BYTES = 16;
/** A file that is recorded in fragments has two boxes for each, and no second file behind so many. */
const MAX_BOXES = 1000;

/** The boxes of ISO/IEC 14496-12, section 4.2. A second file begins behind the index of the first one. */
async function isFollowedMp4(readAt: ReadAt): Promise<boolean> {
  let hasIndex = false;
  for (let [i, at] = [0, 0]; i < MAX_BOXES; i += 1) {
    const box = await readAt(at, BOX_HEADER_BYTES);
    if (box.length < BOX_HEADER_BYTES) return false;
    const kind = box.toString('latin1', 4, 8);
    if (hasIndex && kind === 'ftyp') return true;
    hasIndex ||= kind === 'moov';
    const size = box.readUInt32BE(0);
    if (size !== 1 && size < 8) return false;
    at += size === 1 ? Number(box.readBigUInt64BE(8)) : size;
  }
  return false;
}

/** The File Properties Object of ASF (Microsoft, 2004, section 3.2), and where its fields are. */
const ASF_PROPERTIES = Buffer.from('a1dcab8c47a9cf118ee400c00c205365', 'hex');
const [PLAY_DURATION_AT, PREROLL_AT, ASF_FLAGS_AT] = [64, 80, 88];
const ASF_BROADCAST = 1;

/** The length in the header of an ASF; null if it has none. ffmpeg ignores it in a file that was cut. */
export function asfSeconds(head: Buffer): number | null {
  const at = head.indexOf(ASF_PROPERTIES);
  if (at < 0 || at + ASF_FLAGS_AT + 4 > head.length) return null;
  if ((head.readUInt32LE(at + ASF_FLAGS_AT) & ASF_BROADCAST) !== 0) return null;
  return (
    Number(head.readBigUInt64LE(at + PLAY_DURATION_AT)) / 1e7 -
    Number(head.readBigUInt64LE(at + PREROLL_AT)) / 1e3
  );
}
