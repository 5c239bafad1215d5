/**
 * Reads where the samples lie in a file that has them in one chunk (wav, Wave64, AIFF, AU or CAF), how they lie there if
 * they are uncompressed, and what is not as the header says.
 */
import { readWaveFormat, WAVE_FLOAT } from './wav-header.ts';

export type ReadAt = (position: number, length: number) => Promise<Buffer>;

interface Samples {
  /** Bytes of a sample, 2 to 4. */
  width: number;
  channels: number;
  rate: number;
  isBigEndian: boolean;
  isFloat: boolean;
}

export interface PcmLayout extends Samples {
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
  /** Another file of the kind begins behind them, which no decoder reads. */
  isJoined: boolean;
}

/** How a format divides a file into chunks: each has a name, a size and what it holds. */
interface Chunks {
  /** Where the first one begins. */
  first: number;
  /** Bytes of the name and the size. */
  head: number;
  sizeOf(head: Buffer): number;
  /** The next chunk begins at a multiple of so many bytes behind what this one holds. */
  align: number;
  /** The names of the chunks that hold the format, and the samples behind some bytes. */
  names: [format: string, samples: string, skipped: number];
  formatOf(bytes: Buffer): Samples;
  /** Writers that do not know the size name this or more, or nothing. */
  unknown: number;
  /** The bytes that are the same in all files of the format. */
  marks: [from: number, to: number];
}

/** sox writes a little less than 2^31. */
const UNKNOWN_32 = 0x7fff0000;
const UNKNOWN_64 = 2 ** 60;
const WAVE: Pick<Chunks, 'names' | 'formatOf'> = { names: ['fmt ', 'data', 0], formatOf: waveFormat };
const RIFF: Chunks = {
  ...WAVE,
  first: 12,
  head: 8,
  align: 2,
  sizeOf: (head) => head.readUInt32LE(4),
  unknown: UNKNOWN_32,
  marks: [8, 11],
};
const RF64: Chunks = { ...RIFF, unknown: UNKNOWN_64 };
const CHUNKS: Readonly<Record<string, Chunks>> = {
  RIFF,
  RF64,
  BW64: RF64,
  riff: {
    ...WAVE,
    first: 40,
    head: 24,
    align: 8,
    sizeOf: (head) => Number(head.readBigInt64LE(16)) - 24,
    unknown: UNKNOWN_64,
    marks: [4, 16],
  },
  FORM: {
    ...RIFF,
    sizeOf: (head) => head.readUInt32BE(4),
    names: ['COMM', 'SSND', 8],
    formatOf: aiffFormat,
  },
  caff: {
    first: 8,
    head: 12,
    align: 1,
    sizeOf: (head) => Number(head.readBigInt64BE(4)),
    names: ['desc', 'data', 4],
    formatOf: cafFormat,
    unknown: UNKNOWN_64,
    marks: [4, 6],
  },
};
/** More stand before the samples, or behind them, in no file. */
const MAX_CHUNKS = 64;
/** What is read of a chunk; no format has more. */
const CHUNK_BYTES = 64;

/** Null where the file has no such chunk. */
export async function readSampleChunk(readAt: ReadAt, fileBytes: number): Promise<SampleChunk | null> {
  const file = await readAt(0, CHUNK_BYTES);
  if (file.length < CHUNK_BYTES) return null;
  const mark = file.toString('latin1', 0, 4);
  if (mark === '.snd') {
    const layout = layoutOf(auFormat(file), file.readUInt32BE(4), fileBytes);
    return { layout, beyond: 0, isJoined: false };
  }
  const chunks = CHUNKS[mark];
  if (chunks === undefined) return null;
  const [formatName, samplesName, skipped] = chunks.names;
  let format: Samples | null = null;
  for (let [i, at] = [0, chunks.first]; i < MAX_CHUNKS; i += 1) {
    const bytes = await readAt(at, CHUNK_BYTES);
    if (bytes.length < CHUNK_BYTES) return null;
    const size = chunks.sizeOf(bytes);
    const name = bytes.toString('latin1', 0, 4);
    if (name === samplesName && format !== null) {
      const start = at + chunks.head + skipped;
      const named = (hasSizeApart(file, size) ? Number(file.readBigUInt64LE(DS64_DATA_AT)) : size) - skipped;
      const held = fileBytes - start;
      const isKnown = named > 0 && named < chunks.unknown;
      return {
        layout: layoutOf(format, start, fileBytes, named),
        beyond: isKnown && held > 0 ? Math.max(0, (named - held) / held) : 0,
        isJoined: isKnown && (await isFollowed(readAt, start + named, file, chunks)),
      };
    }
    if (name === formatName) format = chunks.formatOf(bytes.subarray(chunks.head));
    if (size < 0) return null;
    at += chunks.head + Math.ceil(size / chunks.align) * chunks.align;
  }
  return null;
}

const DS64_DATA_AT = 28;

/** An RF64 has its size in a chunk of its own, which is the first one (EBU Tech 3306). */
const hasSizeApart = (file: Buffer, size: number) =>
  size === 0xffffffff && file.toString('latin1', 12, 16) === 'ds64';

/** True where a file like this one begins behind the samples, or behind the chunks that follow them. */
async function isFollowed(readAt: ReadAt, end: number, file: Buffer, chunks: Chunks): Promise<boolean> {
  const aligned = (place: number) => Math.ceil(place / chunks.align) * chunks.align;
  const [from, to] = chunks.marks;
  const isFile = (bytes: Buffer) =>
    bytes.toString('latin1', 0, 4) in CHUNKS && bytes.subarray(from, to).equals(file.subarray(from, to));
  for (let [i, at] = [0, aligned(end)]; i < MAX_CHUNKS; i += 1) {
    // A file of samples without a pad byte may be followed at once.
    if (i === 0 && at !== end && isFile(await readAt(end, CHUNK_BYTES))) return true;
    const bytes = await readAt(at, CHUNK_BYTES);
    if (bytes.length < chunks.head || bytes.length < to) return false;
    if (isFile(bytes)) return true;
    const size = chunks.sizeOf(bytes);
    if (!(size >= 0)) return false;
    at += chunks.head + aligned(size);
  }
  return false;
}

/** @param named the bytes of samples that the header names; 0, less or too many where the writer did not know */
function layoutOf(format: Samples, start: number, fileBytes: number, named = 0): PcmLayout | null {
  const { width, channels, rate, isFloat } = format;
  const isUsual = isFloat ? width === 4 : width === 2 || width === 3 || width === 4;
  if (!isUsual || channels < 1 || channels > 32 || !(rate > 0)) return null;
  const bytes = fileBytes - start;
  return { ...format, start, bytes: named > 0 ? Math.min(named, bytes) : bytes };
}

const NONE: Samples = { width: 0, channels: 0, rate: 0, isBigEndian: false, isFloat: false };
function waveFormat(bytes: Buffer): Samples {
  const format = readWaveFormat(bytes);
  return format === null ? NONE : { ...format, isBigEndian: false, isFloat: format.code === WAVE_FLOAT };
}

function aiffFormat(bytes: Buffer): Samples {
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

function auFormat(bytes: Buffer): Samples {
  const coding = bytes.readUInt32BE(12);
  return {
    width: AU_WIDTHS[coding] ?? 0,
    channels: bytes.readUInt32BE(20),
    rate: bytes.readUInt32BE(16),
    isBigEndian: true,
    isFloat: coding === AU_FLOAT,
  };
}

function cafFormat(bytes: Buffer): Samples {
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
