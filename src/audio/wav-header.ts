/**
 * The head of a wav file, written for samples that come without one, and read where samples follow as they are made
 * (RIFF: Microsoft and IBM, 1991, chunks `fmt ` and `data`).
 */

export interface PcmFormat {
  /** Samples in a second. */
  rate: number;
  /** Bytes of a sample: 1 (unsigned), or 2 to 4 (signed, little-endian). */
  width: number;
  /** Interleaved. */
  channels: number;
}

/** What writers put there that do not know the length yet; readers then read to the end of the file. */
const UNKNOWN_BYTES = 0xffffffff;
/** Some write the largest signed number instead, less the bytes of the head. No sentence is that long. */
const LEAST_UNKNOWN = 0x7fff0000;
const WAVE_PCM = 1;
export const WAVE_FLOAT = 3;
/** The code of the format then stands in the GUID behind it. */
const EXTENSIBLE = 0xfffe;
const FMT_BYTES = 16;
const FMT_CODE_AT = 24;

export function wavHeader({ rate, width, channels }: PcmFormat): Buffer {
  const header = Buffer.alloc(44);
  header.write('RIFF', 0);
  header.writeUInt32LE(UNKNOWN_BYTES, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(WAVE_PCM, 20);
  header.writeUInt16LE(channels, 22);
  header.writeUInt32LE(rate, 24);
  header.writeUInt32LE(rate * channels * width, 28);
  header.writeUInt16LE(channels * width, 32);
  header.writeUInt16LE(width * 8, 34);
  header.write('data', 36);
  header.writeUInt32LE(UNKNOWN_BYTES, 40);
  return header;
}

export interface WavHead {
  format: PcmFormat;
  /** Where the samples begin. */
  start: number;
  /** Their length; infinite where the writer did not know it. */
  bytes: number;
}

/**
 * The head with which these bytes begin; null while it is not complete.
 * @throws Error a sentence without a subject, for what is no wav file of PCM
 */
export function readWavHead(bytes: Buffer): WavHead | null {
  const text = (at: number) => bytes.toString('latin1', at, at + 4);
  if (!'RIFF'.startsWith(text(0).slice(0, bytes.length))) throw new Error('is no wav file');
  if (bytes.length < 12) return null;
  if (text(8) !== 'WAVE') throw new Error('is no wav file');
  let format: PcmFormat | null = null;
  let at = 12;
  while (at + 8 <= bytes.length) {
    const size = bytes.readUInt32LE(at + 4);
    const start = at + 8;
    if (text(at) === 'data') {
      if (format === null) throw new Error('is a wav file without a format');
      return { format, start, bytes: size === 0 || size >= LEAST_UNKNOWN ? Number.POSITIVE_INFINITY : size };
    }
    if (text(at) === 'fmt ') {
      if (bytes.length < start + size) return null;
      format = pcmFormat(bytes.subarray(start, start + size));
    }
    at = start + size + (size % 2);
  }
  return null;
}

function pcmFormat(fmt: Buffer): PcmFormat {
  const format = readWaveFormat(fmt);
  if (format?.code !== WAVE_PCM) throw new Error('is a wav file whose samples are no PCM');
  const { channels, rate, width } = format;
  if (channels === 0 || rate === 0 || ![1, 2, 3, 4].includes(width))
    throw new Error(`is a wav file of ${channels} channels, ${rate} Hz and ${width * 8} bits`);
  return { rate, width, channels };
}

/** What a chunk `fmt ` says; null where its samples are neither PCM nor floats. */
export function readWaveFormat(fmt: Buffer): (PcmFormat & { code: number }) | null {
  if (fmt.length < FMT_BYTES) return null;
  const tag = fmt.readUInt16LE(0);
  const isApart = tag === EXTENSIBLE && fmt.length > FMT_CODE_AT + 1;
  const code = isApart ? fmt.readUInt16LE(FMT_CODE_AT) : tag;
  if (code !== WAVE_PCM && code !== WAVE_FLOAT) return null;
  return {
    code,
    channels: fmt.readUInt16LE(2),
    rate: fmt.readUInt32LE(4),
    width: fmt.readUInt16LE(14) / 8,
  };
}
