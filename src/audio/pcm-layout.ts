/** Reads how samples lie in a file that has them uncompressed: wav, Wave64, AIFF, AU or CAF. */

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
}

const WAVE: Pick<Chunks, 'names' | 'formatOf'> = { names: ['fmt ', 'data', 0], formatOf: waveFormat };
const RIFF: Chunks = { ...WAVE, first: 12, head: 8, align: 2, sizeOf: (head) => head.readUInt32LE(4) };
const sizeOfBigEndian = (head: Buffer) => head.readUInt32BE(4);
const CHUNKS: Readonly<Record<string, Chunks>> = {
  RIFF,
  RF64: RIFF,
  BW64: RIFF,
  riff: { ...WAVE, first: 40, head: 24, align: 8, sizeOf: (head) => Number(head.readBigInt64LE(16)) - 24 },
  FORM: { ...RIFF, sizeOf: sizeOfBigEndian, names: ['COMM', 'SSND', 8], formatOf: aiffFormat },
  caff: {
    ...{ first: 8, head: 12, align: 1, sizeOf: (head: Buffer) => Number(head.readBigInt64BE(4)) },
    ...{ names: ['desc', 'data', 4], formatOf: cafFormat },
  },
};
/** More stand before the samples in no file. */
const MAX_CHUNKS = 64;
/** What is read of a chunk; no format has more. */
const CHUNK_BYTES = 64;

/** Null where the file has no uncompressed samples of 16 to 32 bits. */
export async function readPcmLayout(readAt: ReadAt, fileBytes: number): Promise<PcmLayout | null> {
  const file = await readAt(0, CHUNK_BYTES);
  if (file.length < CHUNK_BYTES) return null;
  const mark = file.toString('latin1', 0, 4);
  if (mark === '.snd') return layoutOf(auFormat(file), file.readUInt32BE(4), fileBytes);
  const chunks = CHUNKS[mark];
  if (chunks === undefined) return null;
  const [formatName, samplesName, skipped] = chunks.names;
  let format: Samples | null = null;
  for (let [i, at] = [0, chunks.first]; i < MAX_CHUNKS; i += 1) {
    const bytes = await readAt(at, CHUNK_BYTES);
    if (bytes.length < CHUNK_BYTES) return null;
    const size = chunks.sizeOf(bytes);
    const name = bytes.toString('latin1', 0, 4);
    if (name === samplesName && format !== null)
      return layoutOf(format, at + chunks.head + skipped, fileBytes, size - skipped);
    if (name === formatName) format = chunks.formatOf(bytes.subarray(chunks.head));
    if (size < 0) return null;
    at += chunks.head + Math.ceil(size / chunks.align) * chunks.align;
  }
  return null;
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
const [WAVE_PCM, WAVE_FLOAT, WAVE_EXTENSIBLE] = [1, 3, 0xfffe];

function waveFormat(bytes: Buffer): Samples {
  const code = bytes.readUInt16LE(0) === WAVE_EXTENSIBLE ? bytes.readUInt16LE(24) : bytes.readUInt16LE(0);
  if (code !== WAVE_PCM && code !== WAVE_FLOAT) return NONE;
  return {
    width: bytes.readUInt16LE(14) / 8,
    channels: bytes.readUInt16LE(2),
    rate: bytes.readUInt32LE(4),
    isBigEndian: false,
    isFloat: code === WAVE_FLOAT,
  };
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
