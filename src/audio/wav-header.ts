/** The head of a wav file, for samples that come without one (RIFF: Microsoft and IBM, 1991, chunks `fmt ` and `data`). */

export interface PcmFormat {
  /** Samples in a second. */
  rate: number;
  /** Bytes of a sample: 1 (unsigned), or 2 to 4 (signed, little-endian). */
  width: number;
  channels: number;
}

/** What writers put there that do not know the length yet; readers then read to the end of the file. */
const UNKNOWN_BYTES = 0xffffffff;
const PCM = 1;

export function wavHeader({ rate, width, channels }: PcmFormat): Buffer {
  const header = Buffer.alloc(44);
  header.write('RIFF', 0);
  header.writeUInt32LE(UNKNOWN_BYTES, 4);
  header.write('WAVEfmt ', 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(PCM, 20);
  header.writeUInt16LE(channels, 22);
  header.writeUInt32LE(rate, 24);
  header.writeUInt32LE(rate * channels * width, 28);
  header.writeUInt16LE(channels * width, 32);
  header.writeUInt16LE(width * 8, 34);
  header.write('data', 36);
  header.writeUInt32LE(UNKNOWN_BYTES, 40);
  return header;
}
