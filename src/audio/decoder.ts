/** What every decoder of a file hands out: blocks of 16 kHz mono. The rest of the gateway sees only these. */

export const SAMPLE_RATE = 16_000;

/**
 * 16 s, 1 MB. A multiple of the 512 samples of a voice activity window, so that blocks can be scored as they come,
 * and large enough that the hop to a decoder thread or process is nothing beside the decoding.
 */
export const BLOCK_SAMPLES = 500 * 512;

/** One file being decoded to 16 kHz mono. Not shared: one `read` at a time. */
export interface Decoder {
  /** As the header says, not as decoding would find; null when the header says nothing (credible). */
  readonly durationSec: number | null;
  /**
   * The next block, shorter only at the end of the audio, then null. A damaged file gives what can be decoded;
   * it rejects with a GatewayError when that is nothing, and with `signal.reason` once aborted.
   */
  read(): Promise<Float32Array | null>;
  /** Resolves when the file is closed and the process, if there is one, is gone. Idempotent. */
  close(): Promise<void>;
}

export interface DecoderLimits {
  maxAudioSec: number;
  blockSamples: number;
  signal?: AbortSignal | undefined;
}

/** Never the quiet end of a stream: half of the audio must not pass for all of it. */
export function closedWhileRead(): Error {
  return new Error('The audio was closed while it was being read');
}
