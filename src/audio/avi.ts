/**
 * Finds damage in an AVI (Microsoft, AVI RIFF File Reference). An AVI has no clock: the time of a chunk is the sound before
 * it, so what follows a loss would come too early. But the header names how much sound there is. What is missing of it
 * was in the places where no chunk begins, so chunks of silence are put there.
 */
import type { Loss } from './decoder.ts';
import type { Edit } from './edits.ts';
import type { ReadAt } from './sample-chunk.ts';
import type { Container } from './sniff.ts';

/** What of the container is another than in a file without damage. */
export type AviDamage = Pick<Container, 'edits' | 'isDamaged' | 'lost' | 'beyond'>;

/** What the header says of the first track of sound. Its length and its times are in units. */
interface Sound {
  stream: number;
  unitSec: number;
  namedUnits: number;
  /** Bytes of a unit; a chunk has at least one unit where it is `atLeastOne`. */
  unitBytes: number;
  atLeastOne: boolean;
  /** The byte that is silence. */
  silence: number;
}

/** Bytes of the file that are no whole chunks, and the sound before them. */
interface Place {
  at: number;
  end: number;
  units: number;
}

const CHUNK_HEAD = 8;
const LIST_HEAD = 12;
/** More are in no file. */
const MAX_STREAMS = 100;
/** What is read of the content of a chunk; `strh` has 56 bytes and `strf` of sound 18 or more. */
const [CONTENT_BYTES, FORMAT_BYTES] = [48, 16];
const READ_BYTES = 256 * 1024;
/** A larger hole is the end of what is heard. */
const MAX_HOLE_BYTES = 16 * 1024 * 1024;
/**
 * No film has more chunks. A file that is damaged in more places, or has more that looks like a chunk after one of them,
 * is read as far as that.
 */
const [MAX_CHUNKS, MAX_PLACES, MAX_TRIES] = [2_000_000, 32, 1024];
/** How the chunks of a stream begin, such as `01wb`, and those that are among them. */
const MEDIA = /^\d\d\w\w$/;
const BESIDE = /^(?:ix\d\d|JUNK|LIST|RIFF|idx1)$/;
/** The format tags of samples in which silence is not 0: A-law and mu-law. */
const SILENCES = new Map([
  [6, 0xd5],
  [7, 0xff],
]);

/** Null where nothing is missing, or the file has no sound whose length is named. */
export async function findAviDamage(
  readAt: ReadAt,
  fileBytes: number,
  signal: AbortSignal | undefined,
): Promise<AviDamage | null> {
  const { sound, start, end } = await readHeader(readAt, fileBytes);
  if (sound === null || sound.namedUnits === 0) return null;
  const { places, units, isCut } = await walk(readAt, sound, { start, end, fileBytes }, signal);
  const missing = sound.namedUnits - units;
  if (missing <= 0 || (!isCut && places.length === 0)) return null;
  if (!isCut) return filled(places, missing, sound);
  const times = places.map((place) => place.units * sound.unitSec);
  const lost = times.map((sec) => ({ startSec: sec, endSec: sec }));
  return { lost, beyond: units > 0 ? missing / units : 0 };
}

/** Heads of chunks in one large part of the file. There may be millions, so a promise for each would take too long. */
function createHeads(readAt: ReadAt, fileBytes: number) {
  let [from, part] = [0, Buffer.alloc(0) as Buffer];
  return {
    /** True where the head at `at` and its content lie in the part. */
    has: (at: number) =>
      at >= from && Math.min(at + CHUNK_HEAD + CONTENT_BYTES, fileBytes) <= from + part.length,
    async load(at: number) {
      [from, part] = [at, await readAt(at, READ_BYTES)];
    },
    kind: (at: number) => part.toString('latin1', at - from, at - from + 4),
    size: (at: number) => part.readUInt32LE(at - from + 4),
    content: (at: number) => part.subarray(at - from + CHUNK_HEAD, at - from + CHUNK_HEAD + CONTENT_BYTES),
  };
}

/** The chunks before the media, all of which are small. */
async function readHeader(readAt: ReadAt, fileBytes: number) {
  const heads = createHeads(readAt, fileBytes);
  let streams = -1;
  let isSound = false;
  let sound: Sound | null = null;
  for (let at = LIST_HEAD; at + LIST_HEAD <= fileBytes && streams < MAX_STREAMS; ) {
    if (!heads.has(at)) await heads.load(at);
    const [kind, bytes, content] = [heads.kind(at), heads.size(at), heads.content(at)];
    if (kind === 'LIST' && kindOf(content) === 'movi')
      return { sound, start: at + LIST_HEAD, end: at + CHUNK_HEAD + (bytes > 4 ? bytes : fileBytes) };
    if (kind === 'strh') streams += 1;
    if (kind === 'strh' && content.length === CONTENT_BYTES && sound === null) {
      isSound = kindOf(content) === 'auds';
      if (isSound) sound = soundOf(content, streams);
    } else if (kind === 'strf' && isSound && sound !== null && content.length >= FORMAT_BYTES) {
      withFormat(sound, content);
      isSound = false;
    }
    at += kind === 'LIST' ? LIST_HEAD : CHUNK_HEAD + evenly(bytes);
  }
  return { sound: null, start: 0, end: 0 };
}

function soundOf(strh: Buffer, stream: number): Sound | null {
  const [scale, rate] = [strh.readUInt32LE(20), strh.readUInt32LE(24)];
  if (scale === 0 || rate === 0) return null;
  const [namedUnits, unitBytes] = [strh.readUInt32LE(32), strh.readUInt32LE(44)];
  return { stream, unitSec: scale / rate, namedUnits, unitBytes, atLeastOne: unitBytes === 0, silence: 0 };
}

function withFormat(sound: Sound, strf: Buffer): void {
  const [tag, block, bits] = [strf.readUInt16LE(0), strf.readUInt16LE(12), strf.readUInt16LE(14)];
  if (sound.atLeastOne) sound.unitBytes = block;
  sound.silence = tag === 1 && bits === 8 ? 0x80 : (SILENCES.get(tag) ?? 0);
}

/** Goes from chunk to chunk to the end of the media, and over the places where none begins. */
async function walk(
  readAt: ReadAt,
  sound: Sound,
  { start, end, fileBytes }: { start: number; end: number; fileBytes: number },
  signal: AbortSignal | undefined,
) {
  const heads = createHeads(readAt, fileBytes);
  const places: Place[] = [];
  let units = 0;
  let last = { at: start, units: 0 };
  let isOver = false;
  for (let [i, at] = [0, start]; i < MAX_CHUNKS && at + CHUNK_HEAD <= fileBytes; i += 1) {
    signal?.throwIfAborted();
    if (!heads.has(at)) await heads.load(at);
    const kind = heads.kind(at);
    if (kind === 'idx1') isOver = true;
    if (!MEDIA.test(kind) && !BESIDE.test(kind)) {
      if (isOver || at >= end) break;
      const next = places.length < MAX_PLACES ? await findChunk(readAt, last.at + 1, fileBytes) : null;
      if (next === null) return { places, units, isCut: true };
      // The damage is in the last chunk if that reaches into the next one, or if no chunk has room between them.
      const isInLast = next < at + CHUNK_HEAD;
      if (isInLast) units -= last.units;
      places.push({ at: isInLast ? last.at : at, end: next, units });
      last = { at: next, units: 0 };
      at = next;
      continue;
    }
    const bytes = heads.size(at);
    const isList = kind === 'LIST' || kind === 'RIFF';
    const held = isSoundOf(kind, sound) ? unitsOf(Math.min(bytes, fileBytes - at - CHUNK_HEAD), sound) : 0;
    last = { at, units: held };
    units += held;
    at += isList ? LIST_HEAD : CHUNK_HEAD + evenly(bytes);
    isOver ||= at >= end && at <= fileBytes;
  }
  return { places, units, isCut: !isOver };
}

const isSoundOf = (kind: string, { stream }: Sound) =>
  kind.endsWith('wb') && Number(kind.slice(0, 2)) === stream;

function unitsOf(bytes: number, { unitBytes, atLeastOne }: Sound): number {
  if (unitBytes === 0) return 1;
  return atLeastOne ? Math.ceil(bytes / unitBytes) : bytes / unitBytes;
}

/** Where a chunk begins behind which another one does; null where none is near. */
async function findChunk(readAt: ReadAt, from: number, fileBytes: number): Promise<number | null> {
  const isHead = async (at: number) => {
    const kind = kindOf(await readAt(at, CHUNK_HEAD));
    return MEDIA.test(kind) || BESIDE.test(kind);
  };
  const to = Math.min(fileBytes, from + MAX_HOLE_BYTES);
  let tries = 0;
  for (let at = from; at < to; at += READ_BYTES / 2) {
    const part = await readAt(at, READ_BYTES / 2 + CHUNK_HEAD);
    for (let i = 0; i + CHUNK_HEAD <= part.length; i += 1) {
      if (!mayEndName(part, i)) continue;
      const kind = part.toString('latin1', i, i + 4);
      if (kind === 'idx1') return at + i;
      const next = at + i + CHUNK_HEAD + evenly(part.readUInt32LE(i + 4));
      if (!MEDIA.test(kind) || next > fileBytes) continue;
      if (await isHead(next)) return at + i;
      tries += 1;
      if (tries === MAX_TRIES) return null;
    }
  }
  return null;
}

/** True for the end of `wb`, `dc`, `db` and `idx1`; what else there is comes with them. This is done for every byte. */
function mayEndName(part: Buffer, at: number): boolean {
  const end = part.readUInt16BE(at + 2);
  return end === 0x7762 || end === 0x6463 || end === 0x6462 || end === 0x7831;
}

/** What is missing was in the places, in each as much as its bytes are a part of all. */
function filled(places: readonly Place[], missing: number, sound: Sound): AviDamage {
  const holes = places.reduce((sum, { at, end }) => sum + end - at, 0);
  let before = 0;
  const edits: Edit[] = [];
  const lost: Loss[] = [];
  for (const { at, end, units } of places) {
    const own = Math.round((missing * (end - at)) / holes);
    const startSec = (units + before) * sound.unitSec;
    before += own;
    lost.push({ startSec, endSec: startSec + own * sound.unitSec });
    const bytes = own * sound.unitBytes;
    if (bytes > MAX_HOLE_BYTES) continue;
    edits.push({ at, remove: end - at, insert: silentChunk(bytes, sound) });
  }
  return edits.length === 0 ? { lost } : { lost, edits, isDamaged: true };
}

function silentChunk(bytes: number, { stream, silence }: Sound): Buffer {
  const chunk = Buffer.alloc(CHUNK_HEAD + evenly(bytes), silence);
  chunk.write(`${String(stream).padStart(2, '0')}wb`, 0);
  chunk.writeUInt32LE(bytes, 4);
  return chunk;
}

/** Chunks begin at even places. */
const evenly = (bytes: number) => bytes + (bytes % 2);

const kindOf = (bytes: Buffer) => bytes.toString('latin1', 0, 4);
