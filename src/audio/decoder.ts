/** The interface of the decoders. All of them give blocks of 16 kHz mono, the only audio that the gateway handles. */

/** The sample rate of all audio in the gateway, Hz. */
export const SAMPLE_RATE = 16_000;

/**
 * Samples in a block: 16 s, 1 MB. The number is a multiple of the 512 samples of a voice activity window, so that
 * each block can be scored alone. It is large enough that the switch to a decoder thread or process costs little
 * beside the decoding.
 */
export const BLOCK_SAMPLES = 500 * 512;

/**
 * Encoders pad to whole frames, so a header may name a little more than there is, and a file of exactly the longest
 * length allowed must pass. The addon has the same number.
 */
export const LENGTH_SLACK_SEC = 1;

/** The left or the right channel of a stereo file. */
export type Channel = 0 | 1;

/** Audio that the file should have and that cannot be read, in seconds of the decoded audio, which is silent there. */
export interface Loss {
  readonly startSec: number;
  readonly endSec: number;
}

/** Decodes one file to 16 kHz mono float32. It has one user, which makes one `read` at a time. */
export interface Decoder {
  /** The duration that the header gives, in seconds; null if the header gives no credible duration. */
  readonly durationSec: number | null;
  /** What was lost in the blocks so far; after the last one also what the header names beyond them. */
  readonly lost: readonly Loss[];
  /** Half the difference of two channels at each sample of the last block; absent or null where they are not two. */
  readonly sides?: Float32Array | null | undefined;
  /**
   * The next block; the last one may be shorter, and after it comes null. A damaged file gives the part that can be
   * decoded. Rejects with a GatewayError when no part can be decoded, and with `signal.reason` after an abort.
   */
  read(): Promise<Float32Array | null>;
  /** Resolves when the file is closed and the process, if there is one, is gone. Idempotent. */
  close(): Promise<void>;
}

export interface DecoderLimits {
  maxAudioSec: number;
  blockSamples: number;
  /** The channel of a file of two that is decoded, 0 or 1; absent for the average of all channels. */
  channel?: Channel | undefined;
  /** The field of the request that asks for the channel, which a refusal names. */
  channelField?: 'channel' | 'speakers' | undefined;
  /** The audio track of the file, from 0; absent for the first. */
  track?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** A read after `close` fails. If it ended the stream instead, half of the audio would look like all of it. */
export function closedWhileRead(): Error {
  return new Error('The audio was closed while it was being read');
}

/** A decoder at its first block. */
export interface Opened {
  decoder: Decoder;
  first: Float32Array;
  /** The number of the track, where the file has several. */
  track?: number | undefined;
}

/** Closes a decoder without audio, and returns null then. */
export async function readFirst(decoder: Decoder): Promise<Opened | null> {
  let first: Float32Array | null = null;
  try {
    first = await decoder.read();
  } finally {
    if (first === null) await decoder.close();
  }
  return first === null ? null : { decoder, first };
}

/** A decoder with another `read` or `close`; it inherits the rest. */
export const withOverrides = (decoder: Decoder, changes: Partial<Pick<Decoder, 'read' | 'close'>>): Decoder =>
  Object.assign(Object.create(decoder), changes);

/** All of the parts in one; a part alone is not copied. */
export function joined(parts: Float32Array[]): Float32Array {
  const [first] = parts;
  if (parts.length === 1 && first !== undefined) return first;
  const out = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}
