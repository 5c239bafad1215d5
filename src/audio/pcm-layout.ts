/** How uncompressed samples lie in a file, as the header of a wav, Wave64, AIFF, AU or CAF file describes them. Pure. */
import { readWaveFormat, WAVE_FLOAT } from './wav-header.ts';

export interface SampleFormat {
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

/** Null where the samples are compressed, or not of 16 to 32 bits. */
export function layoutOf(format: SampleFormat, start: number, bytes: number): PcmLayout | null {
  const { width, channels, rate, isFloat } = format;
  const isUsual = isFloat ? width === 4 : width === 2 || width === 3 || width === 4;
  if (!isUsual || channels < 1 || channels > 32 || !(rate > 0)) return null;
  return { ...format, start, bytes };
}

const NONE: SampleFormat = { width: 0, channels: 0, rate: 0, isBigEndian: false, isFloat: false };

export function waveFormat(bytes: Buffer): SampleFormat {
  const format = readWaveFormat(bytes);
  return format === null ? NONE : { ...format, isBigEndian: false, isFloat: format.code === WAVE_FLOAT };
}

export function aiffFormat(bytes: Buffer): SampleFormat {
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

export function auFormat(bytes: Buffer): SampleFormat {
  const coding = bytes.readUInt32BE(12);
  return {
    width: AU_WIDTHS[coding] ?? 0,
    channels: bytes.readUInt32BE(20),
    rate: bytes.readUInt32BE(16),
    isBigEndian: true,
    isFloat: coding === AU_FLOAT,
  };
}

export function cafFormat(bytes: Buffer): SampleFormat {
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
