/**
 * Turns an uploaded file into blocks of 16 kHz mono float32. The content of the file decides how: the addon decodes
 * the formats that it reads, and ffmpeg, where there is one, decodes the others and the rare encodings in a known
 * container.
 */

import type { NativeEngine } from '../engine/types.ts';
import { GatewayError } from '../errors.ts';
import type { ProcessPlaces } from '../limits/process-places.ts';
import {
  BLOCK_SAMPLES,
  type Channel,
  type Decoder,
  type DecoderLimits,
  type Loss,
  SAMPLE_RATE,
} from './decoder.ts';
import { openFfmpegDecoder } from './ffmpeg.ts';
import type { Ffmpeg } from './find-ffmpeg.ts';
import { isBadAudio, openNativeDecoder } from './native-decoder.ts';
import { refuseAudio, refuseDecoding, refuseLength } from './refusal.ts';
import { withoutRepeats } from './repeated-bytes.ts';
import type { Container } from './sniff.ts';
import { sniffFile } from './sniff-file.ts';
import { bestTracks, isSilent, requireTrack, type Track, type TrackWish } from './tracks.ts';

/** Encoders pad to whole frames, and a file of exactly the longest length allowed must pass. */
const LENGTH_SLACK_SEC = 1;

export interface OpenAudioOptions extends TrackWish {
  engine: Pick<NativeEngine, 'openAudio'>;
  /**
   * The result of `findFfmpeg`; null on a machine without an ffmpeg that can be used. A function is called only for
   * audio that the addon does not decode, because to look for ffmpeg takes longer than to decode most files.
   */
  ffmpeg: Ffmpeg | null | (() => Promise<Ffmpeg | null>);
  /** Bounds the processes of ffmpeg; absent where one caller opens one file at a time. */
  places?: ProcessPlaces;
  maxAudioSec: number;
  /** The channel of a stereo file that the source has; absent for the average of all channels. */
  channel?: Channel | undefined;
  channelField?: DecoderLimits['channelField'];
  signal?: AbortSignal | undefined;
  /** The client, as `networkOf` names it. Clients share the processes of ffmpeg. */
  network?: string | undefined;
  /** Samples in a block, a multiple of 512; tests use small blocks. */
  blockSamples?: number;
}

export interface AudioSource extends AsyncDisposable {
  /** The container format of the content, such as `wav` or `mp4`. */
  readonly format: string;
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

type Opened = { decoder: Decoder; first: Float32Array; track?: number | undefined };

/**
 * Opens a file and decodes its first block, so that a file which cannot be transcribed is refused (GatewayError, 400)
 * before the request takes the slot. The caller has to close the source.
 */
export async function openAudio(path: string, options: OpenAudioOptions): Promise<AudioSource> {
  const { maxAudioSec, channel, channelField, track, signal, blockSamples = BLOCK_SAMPLES } = options;
  signal?.throwIfAborted();
  const container = await sniffFile(path, signal);
  const limits: DecoderLimits = { maxAudioSec, blockSamples, channel, channelField, track, signal };
  const opened =
    (container.native ? await openNatively(path, options, limits) : null) ??
    (await openExternally(path, container, options, limits));
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
  { engine }: OpenAudioOptions,
  limits: DecoderLimits,
): Promise<Opened | null> {
  try {
    const decoder = await openNativeDecoder(path, engine, limits);
    if (limits.track) await decoder.close();
    requireTrack(limits.track, 1);
    return await readFirst(decoder);
  } catch (error) {
    if (isBadAudio(error)) return null;
    throw error;
  }
}

async function openExternally(
  path: string,
  container: Container,
  options: OpenAudioOptions,
  limits: DecoderLimits,
): Promise<Opened> {
  const { ffmpeg: given, places, network = '' } = options;
  const ffmpeg = typeof given === 'function' ? await given() : given;
  if (ffmpeg === null) throw refuseWithoutFfmpeg(container);
  const place = await places?.take(network, limits.signal);
  const ends = [limits.signal, place?.signal].filter((signal) => signal !== undefined);
  const own = { ...limits, signal: AbortSignal.any(ends) };
  try {
    const attempt = (track: number | undefined, more?: Partial<DecoderLimits>) =>
      attemptTrack(path, container, ffmpeg, { ...own, track, ...more });
    const { decoder, ...opened } = await openTrack(attempt, options);
    return { ...opened, decoder: holding(decoder, place) };
  } catch (error) {
    place?.[Symbol.dispose]();
    throw error;
  }
}

/** A track that was tried: it is open at its first block, or there is an error. */
interface Attempt {
  /** All audio tracks of the file. */
  tracks: readonly Track[];
  opened: Opened | null;
  error?: unknown;
}
type AttemptTrack = (track: number | undefined, more?: Partial<DecoderLimits>) => Promise<Attempt>;

async function attemptTrack(
  path: string,
  container: Container,
  ffmpeg: Ffmpeg,
  limits: DecoderLimits,
): Promise<Attempt> {
  const decoder = await openFfmpegDecoder(path, container, ffmpeg, limits);
  try {
    const opened = await readFirst(withoutRepeats(decoder, path, container, ffmpeg, limits));
    if (opened === null) throw refuseAudio('empty_audio');
    return { tracks: await decoder.tracks(), opened };
  } catch (error) {
    return { tracks: await decoder.tracks(), opened: null, error };
  }
}

/** Opens the track that the request names, or the best one of several. */
async function openTrack(attempt: AttemptTrack, { track: named, isLanguage }: TrackWish): Promise<Opened> {
  const start = await attempt(named);
  const { tracks } = start;
  if (tracks.length > 0) requireTrack(named, tracks.length);
  if (tracks.length < 2) return openedOf(start);
  if (named !== undefined) return { ...openedOf(start), track: named };
  await start.opened?.decoder.close();
  const best = bestTracks(tracks, isLanguage);
  const track = (await firstWithSound(attempt, best)) ?? best[0] ?? 0;
  return { ...openedOf(await attempt(track)), track };
}

/** The first of the tracks that is not silent throughout. Each is heard by a process of its own, to its first sound. */
async function firstWithSound(attempt: AttemptTrack, tracks: readonly number[]): Promise<number | undefined> {
  for (const track of tracks) {
    const { opened, error } = await attempt(track, { channel: undefined });
    if (opened === null && !isAboutFile(error)) throw error;
    if (opened !== null && (await hasSound(opened))) return track;
  }
  return undefined;
}

/** Ends at the first sound, and closes the decoder. */
async function hasSound({ decoder, first }: Opened): Promise<boolean> {
  try {
    for (let block: Float32Array | null = first; block !== null; block = await decoder.read())
      if (!isSilent(block)) return true;
    return false;
  } catch (error) {
    if (isAboutFile(error)) return false;
    throw error;
  } finally {
    await decoder.close();
  }
}

const isAboutFile = (error: unknown) => error instanceof GatewayError && error.param === 'file';

function openedOf({ opened, error }: Attempt): Opened {
  if (opened === null) throw error;
  return opened;
}
/** A decoder that frees the place of its process when it is closed. */
function holding(decoder: Decoder, place: Disposable | undefined): Decoder {
  return {
    get durationSec() {
      return decoder.durationSec;
    },
    get lost() {
      return decoder.lost;
    },
    get sides() {
      return decoder.sides;
    },
    read: () => decoder.read(),
    async close() {
      try {
        await decoder.close();
      } finally {
        place?.[Symbol.dispose]();
      }
    },
  };
}

function refuseWithoutFfmpeg({ name, native, edits }: Container): Error {
  const remedy = 'ffmpeg, which this server does not have or may not use (on Debian: apt-get install ffmpeg)';
  if (edits !== undefined)
    return refuseDecoding('undecodable_audio', `the ${name} is damaged; to read it all needs ${remedy}`);
  if (!native) return refuseDecoding('unsupported_format', `decoding ${name} needs ${remedy}`);
  return refuseDecoding(
    'undecodable_audio',
    `the file looks like ${name} but holds no audio that can be decoded here; its rarer encodings need ${remedy}`,
  );
}

async function readFirst(decoder: Decoder): Promise<Opened | null> {
  let first: Float32Array | null = null;
  try {
    first = await decoder.read();
  } finally {
    if (first === null) await decoder.close();
  }
  return first === null ? null : { decoder, first };
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
    format: container.name,
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
