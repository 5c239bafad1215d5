/** What a bad file is, what the gateway may answer to it, and the tools that put its bytes together. */
import { deflateSync } from 'node:zlib';

/** `speech` and `silence` are answers with and without text, and the others are the codes of refusals. */
export type Outcome =
  | 'speech'
  | 'silence'
  | 'invalid_form'
  | 'missing_file'
  | 'empty_file'
  | 'unsupported_format'
  | 'undecodable_audio'
  | 'no_audio_stream'
  | 'empty_audio'
  | 'audio_too_long';

export interface BadFile {
  /** What is bad about it. */
  name: string;
  bytes: Buffer;
  /** The one outcome, or those that are acceptable; `outcomes.json` says which of them it is. */
  expected: Outcome | readonly Outcome[];
  /** The length of the audio is this at most, in seconds. */
  maxSec?: number;
  /** The name that the form gives to the file. */
  sentAs?: string;
}

export const REFUSED: readonly Outcome[] = [
  'unsupported_format',
  'undecodable_audio',
  'no_audio_stream',
  'empty_audio',
  'audio_too_long',
];
export const ANY: readonly Outcome[] = ['speech', 'silence', ...REFUSED];

type Piece = Uint8Array | string | number[];

/** Joins bytes; text is latin1. */
export function join(...pieces: Piece[]): Buffer {
  return Buffer.concat(
    pieces.map((piece) => (typeof piece === 'string' ? Buffer.from(piece, 'latin1') : new Uint8Array(piece))),
  );
}

export function repeat(count: number, piece: Piece): Buffer {
  const once = join(piece);
  return Buffer.alloc(count * once.length, once);
}

/** 64 MiB of zeros in 64 kB of zlib. */
export const BOMB = deflateSync(Buffer.alloc(64 << 20));

/** An unsigned integer of `bytes` bytes, the lowest first; -1 is the largest. */
export function little(value: number, bytes: number): Buffer {
  return big(value, bytes).reverse();
}

/** An unsigned integer of `bytes` bytes, the highest first; -1 is the largest. */
export function big(value: number, bytes: number): Buffer {
  const written = BigInt.asUintN(8 * bytes, BigInt(value));
  return Buffer.from(written.toString(16).padStart(2 * bytes, '0'), 'hex');
}

/** A copy with other bytes at `offset` from the first occurrence of `mark`, which is latin1 text. */
export function patch(file: Buffer, mark: string, offset: number, bytes: Uint8Array): Buffer {
  const at = file.indexOf(mark, 0, 'latin1');
  if (at < 0) throw new Error(`The file has no ${JSON.stringify(mark)}`);
  const patched = Buffer.from(file);
  patched.set(bytes, at + offset);
  return patched;
}

/** Random bytes that are the same for the same seed (mulberry32). */
export function randomBytes(seed: number, count: number): Buffer {
  let state = seed;
  return Buffer.from(
    Array.from({ length: count }, () => {
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) & 0xff;
    }),
  );
}

/** 440 Hz at half level, as 16-bit samples at 16 kHz. */
export function tone(seconds: number): Buffer {
  const samples = Int16Array.from({ length: 16_000 * seconds }, (_, i) =>
    Math.round(16_000 * Math.sin((2 * Math.PI * 440 * i) / 16_000)),
  );
  return Buffer.from(samples.buffer);
}
