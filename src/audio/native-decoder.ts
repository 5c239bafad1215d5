/** Audio decoded by the addon, on a thread of its own. */
import { stat } from 'node:fs/promises';
import { type AudioFileInfo, type NativeEngine, NativeError } from '../engine/types.ts';
import { closedWhileRead, type Decoder, type DecoderLimits } from './decoder.ts';

/**
 * Decodes in the addon. Rejects with NativeError `bad_audio` for what it cannot read; whether another decoder is
 * tried is for the caller to say.
 */
export async function openNativeDecoder(
  path: string,
  engine: Pick<NativeEngine, 'openAudio'>,
  { blockSamples, signal }: DecoderLimits,
): Promise<Decoder> {
  const { size } = await stat(path);
  const file = await engine.openAudio(path, { signal });
  let pending: Promise<unknown> = Promise.resolve();
  let closed = false;

  async function readBlock(): Promise<Float32Array | null> {
    try {
      return await file.read(blockSamples, { signal });
    } catch (error) {
      // Damage in the middle of a file ends it; what came before is transcribed.
      if (isBadAudio(error)) return null;
      throw error;
    }
  }

  return {
    durationSec: credibleDuration(file.info, size),
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
      // A block takes milliseconds, and after an abort less: waiting for the one on its way is simpler than closing
      // under it.
      await pending;
      file.close();
    },
  };
}

export function isBadAudio(error: unknown): boolean {
  return error instanceof NativeError && error.code === 'bad_audio';
}

/** Programs that write wav to a pipe leave a placeholder of hours as its size. No encoding is under 4 bits a sample. */
function credibleDuration(info: AudioFileInfo, fileBytes: number): number | null {
  const { durationSec, format, sampleRate, channels } = info;
  if (durationSec === null || format !== 'wav') return durationSec;
  return durationSec <= (fileBytes * 2) / (sampleRate * channels) ? durationSec : null;
}
