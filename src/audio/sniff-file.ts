/**
 * Looks at the parts of a file that show what it is, where it is damaged and whether another file was joined to it. What
 * is read grows with the file for Ogg Vorbis and for the formats of which only their end shows that a file follows.
 */
import { open } from 'node:fs/promises';
import { findAviDamage } from './avi.ts';
import { asfSeconds, isFollowed } from './file-end.ts';
import { joinsOf } from './matroska-joins.ts';
import { sniffPages } from './ogg-pages.ts';
import { findSlips, lossesOf } from './pcm-slips.ts';
import { refuseAudio, refuseDecoding } from './refusal.ts';
import { type ReadAt, readSampleChunk } from './sample-chunk.ts';
import {
  type Container,
  HEAD_BYTES,
  isLaterChunk,
  sniffAfterTag,
  sniffContainer,
  tagLength,
  VORBIS,
} from './sniff.ts';

const MAX_TAGS = 8;
/** Decoders pass over so many zeros before the first frame. */
const PASSED_ZEROS = 64 * 1024;
/** More zeros before the first frame are not looked through: a file that was lost has nothing else. */
const MAX_ZEROS = 16 * 1024 * 1024;
const UNKNOWN_CONTENT =
  'the content is not audio or video in a known format (its name and declared type do not count)';
const LATER_CHUNK =
  'it begins in the middle of a WebM or MP4 recording. Is it a later chunk of a MediaRecorder? Only the first chunk ' +
  'has the head of the file, so send the recording whole, from its first chunk';

/** @throws GatewayError for what is no audio or video */
export async function sniffFile(path: string, signal: AbortSignal | undefined): Promise<Container> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    if (size === 0) throw refuseAudio('empty_file');
    const readAt = async (position: number, length: number): Promise<Buffer> => {
      if (position >= size) return Buffer.alloc(0); // beyond 2^53 Node would read from the start
      const { bytesRead, buffer } = await file.read(Buffer.alloc(length), 0, length, position);
      return buffer.subarray(0, bytesRead);
    };
    const zeros = await countZeros(readAt);
    const found = await sniffBehind(readAt, zeros);
    if (found === VORBIS) return await sniffPages(readAt, signal);
    const avi = found.demuxer === 'avi' ? await findAviDamage(readAt, size, signal) : null;
    if (avi !== null) return { ...found, ...avi };
    const chunk = await readSampleChunk(readAt, size);
    const { beyond = 0, isJoined = await isFollowed(found.demuxer, readAt, signal) } = chunk ?? {};
    const namedSec = found.demuxer === 'asf' ? asfSeconds(await readAt(0, HEAD_BYTES)) : null;
    const whole = { ...found, beyond, isJoined, namedSec };
    const slips = chunk?.layout ? await findSlips(readAt, chunk.layout) : [];
    const joins = found.demuxer === 'matroska' ? await joinsOf(readAt) : [];
    const edits = [...(chunk?.edits ?? []), ...slips, ...joins];
    if (zeros > PASSED_ZEROS) edits.push({ at: 0, remove: zeros, insert: new Uint8Array(0) });
    return edits.length === 0 ? whole : { ...whole, native: null, edits, lost: lossesOf(slips) };
  } finally {
    await file.close();
  }
}

/** The zeros with which a file begins, if they are more than a head; else 0, because some formats begin with a few. */
async function countZeros(readAt: ReadAt): Promise<number> {
  for (let [at, length] = [0, HEAD_BYTES]; at < MAX_ZEROS; at += length, length = PASSED_ZEROS) {
    const bytes = await readAt(at, length);
    if (bytes.equals(Buffer.alloc(length))) continue;
    const first = bytes.findIndex((byte) => byte !== 0);
    return at === 0 || first < 0 ? 0 : at + first;
  }
  return 0;
}

/** What the file is, by its bytes from `offset` on, behind which tags may stand. */
async function sniffBehind(readAt: ReadAt, offset: number): Promise<Container> {
  let head = await readAt(offset, HEAD_BYTES);
  let at = offset;
  let isTagged = false;
  for (let tags = 0; tags < MAX_TAGS && tagLength(head) > 0; tags += 1) {
    at += tagLength(head);
    head = await readAt(at, HEAD_BYTES);
    isTagged = true;
  }
  if (isLaterChunk(head)) throw refuseDecoding('unsupported_format', LATER_CHUNK);
  const found = isTagged ? sniffAfterTag(head) : sniffContainer(head);
  if (found === null) throw refuseDecoding('unsupported_format', UNKNOWN_CONTENT);
  return found;
}
