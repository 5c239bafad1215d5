/**
 * Which of several audio tracks is heard, where the request names none: the default one of the file, unless it is in
 * another language than the one that was asked for, cannot be decoded or is silent, and another is better.
 */
import { invalidValue } from '../errors.ts';

/** A track as ffmpeg lists it. */
export interface Track {
  isDecodable: boolean;
  isDefault: boolean;
  isComment: boolean;
  /** The tag of its language, as the file has it; undefined where it has none. */
  language: string | undefined;
  /** ffmpeg's name of its channels, such as `stereo`. */
  layout: string;
}

/** Below this everything is silent, -80 dB: codecs make less of digital silence, and nobody speaks as softly. */
const SILENT = 1e-4;

/** @throws GatewayError `invalid_value` where the file has no such track */
export function requireTrack(track: number | undefined, tracks: number): void {
  if (track === undefined || track < tracks) return;
  const last = tracks === 1 ? 'only track 0' : `the tracks 0 to ${tracks - 1}`;
  throw invalidValue('track', track, `Expected an audio track of the file, which has ${last}`);
}

/**
 * The numbers of the tracks that can be decoded, the best one first.
 * @param isLanguage true for the tag of the language that was asked for; undefined where none was
 */
export function bestTracks(
  tracks: readonly Track[],
  isLanguage: ((tag: string) => boolean) | undefined,
): number[] {
  /** The smaller, the better; what is decided first stands first. */
  const ranks = tracks.map(({ isDefault, isComment, language }) => {
    const isTagged = language !== undefined && language !== 'und';
    const isMeant = isLanguage === undefined || !isTagged ? null : isLanguage(language);
    return [isMeant === false, isComment, !isDefault, isMeant !== true].map(Number);
  });
  const before = (a: number, b: number) =>
    (ranks[a] ?? []).map((rank, i) => rank - (ranks[b]?.[i] ?? 0)).find((difference) => difference !== 0) ??
    a - b;
  return tracks.flatMap(({ isDecodable }, i) => (isDecodable ? [i] : [])).sort(before);
}

export const isSilent = (block: Float32Array) => block.every((sample) => Math.abs(sample) <= SILENT);
