/**
 * Finds the samples of a file that has them in one chunk (wav, Wave64, AIFF or CAF; AU has them at its end), and what is
 * not as the header says: their size, or another file that follows.
 */
import type { Edit } from './edits.ts';
import { readWaveFormat, WAVE_FLOAT } from './wav-header.ts';

export type ReadAt = (position: number, length: number) => Promise<Buffer>;

interface SampleFormat {
  /** Bytes of a sample; 0 where the samples are compressed. */
  width: number;
  channels: number;
  rate: number;
  isBigEndian: boolean;
  isFloat: boolean;
}

export interface PcmLayout extends SampleFormat {
  /** Where the samples begin, and how many bytes they have. */
  start: number;
  bytes: number;
}

/** The samples of a file, and what its header says about them. */
export interface SampleChunk {
  /** Null where they are compressed, or not of 16 to 32 bits. */
  layout: PcmLayout | null;
  /** The bytes that the header names beyond the end of the file, over those that are there. */
  beyond: number;
  /** Another file of the same format follows, which no decoder reads. */
  isJoined: boolean;
  /** Writes the right size where the header names none, or less than there is. */
  edits: readonly Edit[];
}

interface SizeField {
  at: number;
  bytes: 4 | 8;
  isBigEndian: boolean;
}

/** How a format divides a file into chunks: each has a name, a size and its content. */
interface Chunks {
  /** Where the first one begins. */
  first: number;
  /** Bytes of the name and the size. */
  head: number;
  size: SizeField;
  /** The bytes of the head that the size includes. */
  counted: number;
  /** The next chunk begins at a multiple of so many bytes after the content. */
  align: number;
  /** The names of the chunks that hold the format, and the samples after some bytes. */
  names: [format: string, samples: string, skipped: number];
  formatOf(content: Buffer): SampleFormat;
  /** Writers that do not know the size write this or more, or nothing. */
  unknown: number;
  /** The bytes that are the same in all files of the format. */
  marks: [from: number, to: number];
}

/** Null where the samples are compressed, or not of 16 to 32 bits. */
function layoutOf(format: SampleFormat, start: number, bytes: number): PcmLayout | null {
  const { width, channels, rate, isFloat } = format;
  const isUsual = isFloat ? width === 4 : width === 2 || width === 3 || width === 4;
  if (!isUsual || channels < 1 || channels > 32 || !(rate > 0)) return null;
  return { ...format, start, bytes };
}

const NONE: SampleFormat = { width: 0, channels: 0, rate: 0, isBigEndian: false, isFloat: false };

function waveFormat(bytes: Buffer): SampleFormat {
  const format = readWaveFormat(bytes);
  return format === null ? NONE : { ...format, isBigEndian: false, isFloat: format.code === WAVE_FLOAT };
}

function aiffFormat(bytes: Buffer): SampleFormat {
  const coding = bytes.toString('latin1', 18, 22); // of AIFC; the next chunk in an AIFF
  const isFloat = coding.toLowerCase() === 'fl32';
  const isPacked = /^(?:ima4|[au]law|[AU]LAW|fl64|FL64|G72|MAC|QDM|Qclp)/.test(coding);
  if (isPacked) return NONE;
  return {
    width: Math.ceil(bytes.readUInt16BE(6) / 8),
    channels: bytes.readUInt16BE(0),
    rate: bytes.readUInt32BE(10) * 2 ** (bytes.readUInt16BE(8) - 16_383 - 31), // IEEE 754 of 80 bits
    isBigEndian: coding !== 'sowt',
    isFloat,
  };
}

const AU_WIDTHS = [0, 0, 0, 2, 3, 4, 4];
const AU_FLOAT = 6;

function auFormat(bytes: Buffer): SampleFormat {
  const coding = bytes.readUInt32BE(12);
  return {
    width: AU_WIDTHS[coding] ?? 0,
    channels: bytes.readUInt32BE(20),
    rate: bytes.readUInt32BE(16),
    isBigEndian: true,
    isFloat: coding === AU_FLOAT,
  };
}

function cafFormat(bytes: Buffer): SampleFormat {
  if (bytes.toString('latin1', 8, 12) !== 'lpcm') return NONE;
  const flags = bytes.readUInt32BE(12);
  return {
    width: bytes.readUInt32BE(28) / 8,
    channels: bytes.readUInt32BE(24),
    rate: bytes.readDoubleBE(0),
    isBigEndian: (flags & 2) === 0,
    isFloat: (flags & 1) !== 0,
  };
}

/** sox writes a little less than 2^31. */
const UNKNOWN_32 = 0x7fff0000;
const UNKNOWN_64 = 2 ** 60;
const RIFF: Chunks = {
  first: 12,
  head: 8,
  size: { at: 4, bytes: 4, isBigEndian: false },
  counted: 0,
  align: 2,
  names: ['fmt ', 'data', 0],
  formatOf: waveFormat,
  unknown: UNKNOWN_32,
  marks: [8, 11],
};
const RF64: Chunks = { ...RIFF, unknown: UNKNOWN_64 };
const CHUNKS: Readonly<Record<string, Chunks>> = {
  RIFF,
  RF64,
  BW64: RF64,
  riff: {
    ...RIFF,
    first: 40,
    head: 24,
    size: { at: 16, bytes: 8, isBigEndian: false },
    counted: 24,
    align: 8,
    unknown: UNKNOWN_64,
    marks: [4, 16],
  },
  FORM: {
    ...RIFF,
    size: { at: 4, bytes: 4, isBigEndian: true },
    names: ['COMM', 'SSND', 8],
    formatOf: aiffFormat,
  },
  caff: {
    first: 8,
    head: 12,
    size: { at: 4, bytes: 8, isBigEndian: true },
    counted: 0,
    align: 1,
    names: ['desc', 'data', 4],
    formatOf: cafFormat,
    unknown: UNKNOWN_64,
    marks: [4, 6],
  },
};
/** An RF64 has its size in a chunk of its own, which is the first one (EBU Tech 3306). */
const DS64_SIZE: SizeField = { at: 28, bytes: 8, isBigEndian: false };
const IN_DS64 = 0xffffffff;

/** More stand before the samples, or after them, in no file. */
const MAX_CHUNKS = 64;
/** What is read of a chunk; no format has more. */
const CHUNK_BYTES = 64;

/** Null where the file has no such chunk. */
export async function readSampleChunk(readAt: ReadAt, fileBytes: number): Promise<SampleChunk | null> {
  const file = await readAt(0, CHUNK_BYTES);
  if (file.length < CHUNK_BYTES) return null;
  const mark = file.toString('latin1', 0, 4);
  if (mark === '.snd') {
    const start = file.readUInt32BE(4);
    const layout = layoutOf(auFormat(file), start, fileBytes - start);
    return { layout, beyond: 0, isJoined: false, edits: [] };
  }
  const chunks = CHUNKS[mark];
  if (chunks === undefined) return null;
  const [formatName, samplesName] = chunks.names;
  let format: SampleFormat | null = null;
  for (let [i, at] = [0, chunks.first]; i < MAX_CHUNKS; i += 1) {
    const bytes = await readAt(at, CHUNK_BYTES);
    if (bytes.length < CHUNK_BYTES) return null;
    const size = sizeOf(bytes, chunks);
    const name = bytes.toString('latin1', 0, 4);
    if (name === samplesName && format !== null)
      return inspectSamples(readAt, { file, fileBytes, chunks, format, at, size });
    if (name === formatName) format = chunks.formatOf(bytes.subarray(chunks.head));
    if (size < 0) return null;
    at += chunks.head + aligned(size, chunks);
  }
  return null;
}

/** A file up to the head of its samples, which is at `at` and names `size` bytes. */
interface Found {
  file: Buffer;
  fileBytes: number;
  chunks: Chunks;
  format: SampleFormat;
  at: number;
  size: number;
}

async function inspectSamples(readAt: ReadAt, found: Found): Promise<SampleChunk> {
  const { file, fileBytes, chunks, format, at } = found;
  const skipped = chunks.names[2];
  const start = at + chunks.head + skipped;
  const held = fileBytes - start;
  const isApart = found.size === IN_DS64 && file.toString('latin1', 12, 16) === 'ds64';
  const size = isApart ? readInteger(file, DS64_SIZE) : found.size;
  const named = size - skipped;
  const isKnown = named > 0 && named < chunks.unknown;
  const isJoined = isKnown && (await isFollowed(readAt, start + named, file, chunks));
  const isOpen = size >= 0 && named <= 0 && held > 0;
  const isShort = isKnown && !isJoined && (await goesOn(readAt, start + named, fileBytes));
  const field = isApart ? DS64_SIZE : { ...chunks.size, at: at + chunks.size.at };
  return {
    layout: layoutOf(format, start, named > 0 && !isShort ? Math.min(named, held) : held),
    beyond: isKnown && held > 0 ? Math.max(0, (named - held) / held) : 0,
    isJoined,
    edits: isOpen || isShort ? [editOf(field, skipped + held + (isApart ? 0 : chunks.counted))] : [],
  };
}

const aligned = (size: number, { align }: Chunks) => Math.ceil(size / align) * align;

const sizeOf = (head: Buffer, { size, counted }: Chunks) => readInteger(head, size) - counted;

function readInteger(from: Buffer, { at, bytes, isBigEndian }: SizeField): number {
  if (bytes === 4) return isBigEndian ? from.readUInt32BE(at) : from.readUInt32LE(at);
  return Number(isBigEndian ? from.readBigInt64BE(at) : from.readBigInt64LE(at));
}

/** Writes a size; what needs more bytes than there are is the largest, which readers take for unknown. */
function editOf({ at, bytes, isBigEndian }: SizeField, size: number): Edit {
  const insert = Buffer.alloc(8);
  insert.writeBigUInt64BE(BigInt(bytes === 4 ? Math.min(size, 2 ** 32 - 1) : size));
  const big = insert.subarray(8 - bytes);
  return { at, remove: bytes, insert: isBigEndian ? big : big.reverse() };
}

/** True where a file like this one follows the samples, or the chunks after them. */
async function isFollowed(readAt: ReadAt, end: number, file: Buffer, chunks: Chunks): Promise<boolean> {
  const [from, to] = chunks.marks;
  const isFile = (bytes: Buffer) =>
    bytes.toString('latin1', 0, 4) in CHUNKS && bytes.subarray(from, to).equals(file.subarray(from, to));
  for (let [i, at] = [0, aligned(end, chunks)]; i < MAX_CHUNKS; i += 1) {
    // After samples without a pad byte a file may follow at once.
    if (i === 0 && at !== end && isFile(await readAt(end, CHUNK_BYTES))) return true;
    const bytes = await readAt(at, CHUNK_BYTES);
    if (bytes.length < chunks.head || bytes.length < to) return false;
    if (isFile(bytes)) return true;
    const size = sizeOf(bytes, chunks);
    if (size < 0) return false;
    at += chunks.head + aligned(size, chunks);
  }
  return false;
}

/** Less may be a tag or padding. */
const LEAST_REST = 32 * 1024;
/** The rest is looked at in so many places, because some recorders fill up their files with zeros. */
const REST_PLACES = 16;

/**
 * True where samples go on after the size that the header names, as when a recorder was stopped before it wrote the size
 * again. What begins with the name of a chunk or of a tag is something else.
 */
async function goesOn(readAt: ReadAt, end: number, fileBytes: number): Promise<boolean> {
  const rest = fileBytes - end;
  if (rest < LEAST_REST) return false;
  for (const at of [end, end + 1]) {
    const name = (await readAt(at, 4)).toString('latin1');
    if (/^(?:[ -~]{4}|ID3)/.test(name)) return false;
  }
  for (let i = 0; i < REST_PLACES; i += 1) {
    const bytes = await readAt(end + Math.floor((rest * i) / REST_PLACES), CHUNK_BYTES);
    if (bytes.some((byte) => byte !== 0)) return true;
  }
  return false;
}
