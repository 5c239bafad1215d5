/** Opens files as audio with what this machine has: the addon, and ffmpeg with a bound on its processes. */
import type { NativeEngine } from '../engine/types.ts';
import { BUDGETS } from '../limits/budgets.ts';
import { createProcessPlaces } from '../limits/process-places.ts';
import { type FoundFfmpeg, findFfmpeg } from './ffmpeg-process.ts';
import { type AudioSource, type OpenAudioOptions, openAudio } from './open.ts';

/** A search that failed is repeated after this time, because the system may have refused a process for a moment. */
const SEARCH_AGAIN_MS = 10_000;

interface AudioOpenerOptions {
  engine: Pick<NativeEngine, 'openAudio'>;
  /** The folders in which ffmpeg is looked for, as PATH names them. */
  searchPath: string;
  maxAudioSec: number;
  limits?: typeof BUDGETS.ffmpeg;
}

/** Whose file it is, and what of it is decoded. */
export type AudioOptions = Pick<
  OpenAudioOptions,
  'network' | 'channel' | 'channelField' | 'track' | 'isLanguage'
>;

export function createAudioOpener({
  engine,
  searchPath,
  maxAudioSec,
  limits = BUDGETS.ffmpeg,
}: AudioOpenerOptions) {
  const places = createProcessPlaces(limits);
  let search: { result: Promise<FoundFfmpeg>; again: number } | null = null;

  /** The first file that needs it searches, so that neither the start nor other files wait. */
  async function found(): Promise<FoundFfmpeg> {
    if (search === null || performance.now() > search.again) {
      const result = findFfmpeg(searchPath, limits);
      search = { result, again: performance.now() + SEARCH_AGAIN_MS };
    }
    const result = await search.result;
    if (result.ffmpeg !== null) search.again = Number.POSITIVE_INFINITY;
    return result;
  }

  const ffmpeg = async () => (await found()).ffmpeg;

  return {
    open: (path: string, signal: AbortSignal, options?: AudioOptions): Promise<AudioSource> =>
      openAudio(path, { engine, ffmpeg, places, maxAudioSec, signal, ...options }),
    /** Why some formats cannot be read, in words for the operator; null if all of them can. */
    async problem(): Promise<string | null> {
      const { problem } = await found();
      return problem && `m4a, mp4, webm, opus, aac, aiff and other formats are refused, because ${problem}`;
    },
  };
}
