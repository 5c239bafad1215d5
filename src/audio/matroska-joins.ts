/** Finds Matroska and WebM files that were joined, as `cat` joins them. ffmpeg leaves out the third and later ones. */
import type { Edit } from './edits.ts';
import type { ReadAt } from './sample-chunk.ts';

/** RFC 9559, section 5.1, and RFC 8794, section 11.2.1. */
const [FILE_ID, SEGMENT_ID] = [0x1a45dfa3, 0x18538067];
const ID_BYTES = 4;
const SIZE_BYTES = 8;
/** More files are not joined by hand; those behind would be lost. */
const MAX_FILES = 1000;

interface Element {
  isUnknown: boolean;
  sizeBytes: number;
  end: number;
}

/** The element with this id at this place; null for another one. */
async function readElement(readAt: ReadAt, at: number, id: number): Promise<Element | null> {
  const head = await readAt(at, ID_BYTES + SIZE_BYTES);
  const sizeBytes = 1 + Math.clz32((head[ID_BYTES] ?? 0) << 24);
  if (head.length < ID_BYTES + sizeBytes || sizeBytes > SIZE_BYTES || head.readUInt32BE(0) !== id)
    return null;
  const marked = BigInt(`0x${head.toString('hex', ID_BYTES, ID_BYTES + sizeBytes)}`);
  const highest = (1n << BigInt(7 * sizeBytes)) - 1n;
  const size = marked & highest;
  return { isUnknown: size === highest, sizeBytes, end: at + ID_BYTES + sizeBytes + Number(size) };
}

/**
 * The changes with which ffmpeg reads all files: each of them then says that it does not know its length, as a recording
 * does that is written while it goes on. None where the file is alone.
 */
export async function joinsOf(readAt: ReadAt): Promise<Edit[]> {
  const edits: Edit[] = [];
  for (let [at, files] = [0, 0]; files < MAX_FILES; files += 1) {
    const file = await readElement(readAt, at, FILE_ID);
    const segment = file && (await readElement(readAt, file.end, SEGMENT_ID));
    if (file === null || segment === null || segment.isUnknown) break;
    const insert = Buffer.alloc(segment.sizeBytes, 0xff);
    insert[0] = 0xff >> (segment.sizeBytes - 1);
    edits.push({ at: file.end + ID_BYTES, remove: segment.sizeBytes, insert });
    at = segment.end;
  }
  return edits.length > 1 ? edits : [];
}
