/**
 * Turns an uploaded file into blocks of 16 kHz mono float32. The content of the file decides how: the addon decodes
 * the formats that it reads, and ffmpeg, where there is one, decodes the others and the rare encodings in a known
 * container.
 */
import type { NativeEngine, NativeFormat } from '../engine/types.ts';
import {
  BLOCK_SAMPLES,
  type DecoderLimits,
  LENGTH_SLACK_SEC,
  type Loss,
  type Opened,
  readFirst,
  SAMPLE_RATE,
} from './decoder.ts';
import { isBadAudio, openNativeDecoder } from './native-decoder.ts';
import { type FfmpegOptions, openWithFfmpeg } from './open-with-ffmpeg.ts';
import { refuseLength } from './refusal.ts';
import type { Container } from './sniff.ts';
import { sniffFile } from './sniff-file.ts';
import { requireTrack } from './tracks.ts';

export interface OpenAudioOptions extends Omit<FfmpegOptions, 'blockSamples'> {
  engine: Pick<NativeEngine, 'openAudio'>;
  /** Samples in a block, a multiple of 512; tests use small blocks. */
  blockSamples?: number;
}

export interface AudioSource extends AsyncDisposable {
  /** The duration that the header gives, in seconds; null when only decoding would show it. */
  readonly durationSec: number | null;
  /** The number of the audio track, from 0, where the file has several; absent where it has one. */
  readonly track?: number | undefined;
  /** What of the blocks so far was lost to damage; absent for what is no file. */
  readonly lost?: readonly Loss[];
  /** Half the difference of two channels at each sample of the last block; absent or null where they are not two. */
  readonly sides?: Float32Array | null | undefined;
  /**
   * All of the audio, in blocks of `blockSamples`; the last one may be shorter. Each block belongs to the consumer.
   * The source decodes at most one block ahead, and closes when the consumer leaves the loop. The iteration throws
   * GatewayError `audio_too_long` past the longest length allowed. The blocks can be read only once.
   */
  blocks(): AsyncIterable<Float32Array>;
  close(): Promise<void>;
}

/**
 * Opens a file and decodes its first block, so that a file which cannot be transcribed is refused (GatewayError, 400)
 * before the request takes the slot. The caller has to close the source.
 */
export async function openAudio(path: string, options: OpenAudioOptions): Promise<AudioSource> {
  const limits = { blockSamples: BLOCK_SAMPLES, ...options };
  options.signal?.throwIfAborted();
  const container = await sniffFile(path, options.signal);
  const opened =
    (container.native && (await openNatively(path, container.native, options.engine, limits))) ??
    (await openWithFfmpeg(path, container, limits));
  try {
    return createSource(container, opened, limits);
  } catch (error) {
    await opened.decoder.close();
    throw error;
  }
}

/** Null when the addon cannot decode the encoding, or when the header says that there is no audio. */
async function openNatively(
  path: string,
  format: NativeFormat,
  engine: OpenAudioOptions['engine'],
  limits: DecoderLimits,
): Promise<Opened | null> {
  try {
    const decoder = await openNativeDecoder(path, format, engine, limits);
    if (limits.track) await decoder.close();
    requireTrack(limits.track, 1);
    return await readFirst(decoder);
  } catch (error) {
    if (isBadAudio(error)) return null;
    throw error;
  }
}

function createSource(
  container: Container,
  { decoder, first, track }: Opened,
  limits: DecoderLimits,
): AudioSource {
  const { maxAudioSec, signal } = limits;
  const maxSamples = (maxAudioSec + LENGTH_SLACK_SEC) * SAMPLE_RATE;
  if ((decoder.durationSec ?? 0) * SAMPLE_RATE > maxSamples || first.length > maxSamples)
    throw refuseLength(maxAudioSec);

  let next: Float32Array | null = first;
  let started = false;
  let unheard: readonly Loss[] = [];

  async function* decodeBlocks(): AsyncGenerator<Float32Array, void, void> {
    let samples = 0;
    try {
      while (next !== null) {
        signal?.throwIfAborted();
        const block = next;
        next = null; // the block belongs to the consumer, so nothing here keeps it in memory
        samples += block.length;
        if (samples > maxSamples) throw refuseLength(maxAudioSec);
        yield withinFullScale(block);
        next = await decoder.read();
      }
      unheard = unheardBehind(samples / SAMPLE_RATE, container, decoder.lost);
    } finally {
      await decoder.close();
    }
  }

  return {
    track,
    get durationSec() {
      return decoder.durationSec;
    },
    get lost() {
      return [...decoder.lost, ...unheard];
    },
    get sides() {
      return decoder.sides;
    },
    blocks() {
      if (started) throw new Error('The blocks of an audio source can be read only once');
      started = true;
      return decodeBlocks();
    },
    close: () => decoder.close(),
    [Symbol.asyncDispose]: () => decoder.close(),
  };
}

/** What the file has, or its header names, behind the last sound, unless the decoder has told of it. */
function unheardBehind(heardSec: number, { beyond = 0, isJoined }: Container, told: readonly Loss[]): Loss[] {
  const missingSec = heardSec * beyond;
  if (isJoined) return [{ startSec: heardSec, endSec: heardSec }];
  const isTold = (told.at(-1)?.endSec ?? 0) > heardSec;
  return missingSec > LENGTH_SLACK_SEC && !isTold
    ? [{ startSec: heardSec, endSec: heardSec + missingSec }]
    : [];
}

/**
 * A float file may hold any value. One NaN would spoil a whole window of the model, and beside one click far above full
 * scale all speech would be silence.
 */
function withinFullScale(block: Float32Array): Float32Array {
  for (let i = 0; i < block.length; i += 1) {
    const sample = block[i] as number;
    if (!(Math.abs(sample) <= 1)) block[i] = Number.isFinite(sample) ? Math.sign(sample) : 0;
  }
  return block;
}
