/** Decodes audio with the addon, on threads of the addon. */
import { type NativeEngine, NativeError, type NativeFormat } from '../engine/types.ts';
import { closedWhileRead, type Decoder, type DecoderLimits, type Loss, SAMPLE_RATE } from './decoder.ts';
import { refuseChannels } from './refusal.ts';

/**
 * Opens a decoder of the addon. Rejects with NativeError `bad_audio` for a file that it cannot read; the caller
 * decides whether to try another decoder.
 */
export async function openNativeDecoder(
  path: string,
  format: NativeFormat,
  engine: Pick<NativeEngine, 'openAudio'>,
  limits: DecoderLimits,
): Promise<Decoder> {
  const { blockSamples, channel, signal } = limits;
  const file = await engine.openAudio(path, format, { signal, channel });
  if (channel !== undefined && file.info.channels !== 2) {
    file.close();
    throw refuseChannels(file.info.channels, limits);
  }
  let pending: Promise<unknown> = Promise.resolve();
  let closed = false;
  let samples = 0;
  const unread: Loss[] = [];

  async function readBlock(): Promise<Float32Array | null> {
    try {
      const block = await file.read(blockSamples, { signal });
      samples += block?.length ?? 0;
      return block;
    } catch (error) {
      if (!isBadAudio(error)) throw error;
      // Damage that the decoder cannot pass ends the audio, and the part before it is transcribed.
      const endSec = samples / SAMPLE_RATE;
      unread.push({ startSec: endSec, endSec });
      return null;
    }
  }

  return {
    durationSec: file.info.durationSec,
    get lost() {
      return [...file.lost, ...unread];
    },
    get sides() {
      return file.sides;
    },
    async read() {
      signal?.throwIfAborted();
      if (closed) throw closedWhileRead();
      const block = readBlock();
      pending = block.catch(() => {});
      const samples = await block;
      signal?.throwIfAborted();
      if (closed) throw closedWhileRead();
      return samples;
    },
    async close() {
      if (closed) return;
      closed = true;
      // A block takes milliseconds, and less after an abort, so waiting for the current read is simpler than closing
      // the file during it.
      await pending;
      file.close();
    },
  };
}

/** True for the error of the addon about a file that it cannot decode. */
export function isBadAudio(error: unknown): boolean {
  return error instanceof NativeError && error.code === 'bad_audio';
}
