/** Opens a file with ffmpeg, within the places that bound its processes, and chooses which of several tracks is heard. */
import { GatewayError } from '../errors.ts';
import type { ProcessPlaces } from '../limits/process-places.ts';
import { type Decoder, type DecoderLimits, type Opened, readFirst, withOverrides } from './decoder.ts';
import { openFfmpegDecoder } from './ffmpeg.ts';
import type { Ffmpeg } from './ffmpeg-process.ts';
import { refuseAudio, refuseDecoding } from './refusal.ts';
import { withoutRepeats } from './repeated-bytes.ts';
import type { Container } from './sniff.ts';
import { bestTracks, isSilent, requireTrack, type Track } from './tracks.ts';

export interface FfmpegOptions extends DecoderLimits {
  /**
   * The result of `findFfmpeg`; null on a machine without an ffmpeg that can be used. A function is called only for
   * audio that the addon does not decode, because to look for ffmpeg takes longer than to decode most files.
   */
  ffmpeg: Ffmpeg | null | (() => Promise<Ffmpeg | null>);
  /** Bounds the processes of ffmpeg; absent where one caller opens one file at a time. */
  places?: ProcessPlaces;
  /** The client, as `networkOf` names it. Clients share the processes of ffmpeg. */
  network?: string | undefined;
  /** True for the tag of the language that was asked for; absent where none was. */
  isLanguage?: ((tag: string) => boolean) | undefined;
}

/** Opens a file with ffmpeg, at the first block of the track that is heard. */
export async function openWithFfmpeg(
  path: string,
  container: Container,
  options: FfmpegOptions,
): Promise<Opened> {
  const { ffmpeg: given, places, network = '', signal } = options;
  const ffmpeg = typeof given === 'function' ? await given() : given;
  if (ffmpeg === null) throw refuseWithoutFfmpeg(container);
  const place = await places?.take(network, signal);
  const ends = [signal, place?.signal].filter((end) => end !== undefined);
  const own = { ...options, signal: AbortSignal.any(ends) };
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
async function openTrack(
  attempt: AttemptTrack,
  { track: named, isLanguage }: Pick<FfmpegOptions, 'track' | 'isLanguage'>,
): Promise<Opened> {
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
const holding = (decoder: Decoder, place: Disposable | undefined) =>
  withOverrides(decoder, {
    async close() {
      try {
        await decoder.close();
      } finally {
        place?.[Symbol.dispose]();
      }
    },
  });

function refuseWithoutFfmpeg({ name, native, edits }: Container): Error {
  const remedy = 'ffmpeg, which this server does not have or may not use (on Debian: apt-get install ffmpeg)';
  if (edits !== undefined)
    return refuseDecoding(
      'undecodable_audio',
      `the ${name} is damaged or several files; to read it all needs ${remedy}`,
    );
  if (!native) return refuseDecoding('unsupported_format', `decoding ${name} needs ${remedy}`);
  return refuseDecoding(
    'undecodable_audio',
    `the file looks like ${name} but holds no audio that can be decoded here; its rarer encodings need ${remedy}`,
  );
}
