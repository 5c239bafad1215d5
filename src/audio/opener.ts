/** Opens files as audio with what this machine has: the addon, and ffmpeg with a bound on its processes. */
import { BUDGETS } from '../budgets.ts';
import type { NativeEngine } from '../engine/types.ts';
import { type Ffmpeg, findFfmpeg } from './find-ffmpeg.ts';
import { type AudioSource, openAudio } from './open.ts';
import { createProcessPlaces } from './process-places.ts';

export interface AudioOpenerOptions {
  engine: Pick<NativeEngine, 'openAudio'>;
  /** The folders in which ffmpeg is looked for, as PATH names them. */
  searchPath: string;
  maxAudioSec: number;
  limits?: typeof BUDGETS.ffmpeg;
}

/** @param requestId names the request in the note of a crash */
export type AudioOpener = (path: string, signal: AbortSignal, requestId?: string) => Promise<AudioSource>;

export function createAudioOpener(options: AudioOpenerOptions): AudioOpener {
  const { engine, searchPath, maxAudioSec, limits = BUDGETS.ffmpeg } = options;
  const places = createProcessPlaces(limits);
  // It is found at the first use, so that a slow lookup does not delay the start.
  let found: { ffmpeg: Ffmpeg | null } | null = null;
  return (path, signal, requestId) => {
    found ??= { ffmpeg: findFfmpeg({ searchPath }) };
    return openAudio(path, { engine, ffmpeg: found.ffmpeg, places, maxAudioSec, signal, requestId });
  };
}
