/** Hundreds of sounds without speech, as clips of 1 to 60 s: from formulas, and from Debian packages. */
import { wav } from '../../test/wav.ts';
import { type Clip, storedClip } from '../clips/clips.ts';
import { hashOf, isTuning } from '../clips/prompts.ts';
import { seededRandom } from '../common/random.ts';
import { BYTES_A_SECOND, HEADER_BYTES, samplesOf } from '../common/samples.ts';
import { CREATURES } from './creatures.ts';
import { MUSIC } from './music.ts';
import { NOISES } from './noises.ts';
import { type PackageSound, packageSounds } from './package-sounds.ts';
import { SIGNALS } from './signals.ts';
import type { Sound, Sounds } from './synthesis.ts';

export interface SoundClip extends Clip {
  /** `music`, or the package that it is from. */
  kind: string;
  /** True for the half on which rules may be tuned, as with prompts. */
  tuning: boolean;
}

const FORMULAS: Readonly<Record<string, Sounds>> = {
  signals: SIGNALS,
  noises: NOISES,
  music: MUSIC,
  creatures: CREATURES,
};
const LENGTHS_SEC = [1, 2, 3, 5, 8, 13, 20, 30, 45, 60];
/** Of each formula, each with another seed and length. */
const VARIANTS = 5;

/** A sound from a formula. */
export interface GeneratedSound {
  /** That of its formula, and its number. */
  name: string;
  kind: string;
  /** Gives it at 16 kHz, in -1..1. */
  samples(): Float32Array;
}

/** Those of some kinds, or all of them, always in the same order and with the same samples. */
export function soundClips(kinds?: readonly string[]): SoundClip[] {
  const isWanted = ({ kind }: { kind: string }) => kinds?.includes(kind) !== false;
  const generated = generatedSounds()
    .filter(isWanted)
    .map(({ kind, name, samples }) => named(kind, name, () => wav(samples()).subarray(HEADER_BYTES)));
  // The packages are hundreds of megabytes.
  const packages = kinds?.every((kind) => kind in FORMULAS) ? [] : packageSounds();
  return [...generated, ...packages.filter(isWanted).map(packageClip)];
}

export function generatedSounds(): GeneratedSound[] {
  return Object.entries(FORMULAS).flatMap(([kind, sounds]) =>
    Object.entries(sounds).flatMap(([formula, sound]) =>
      Array.from({ length: VARIANTS }, (_, variant) => {
        const name = `${formula} ${variant + 1}`;
        return { kind, name, samples: () => samplesFrom(sound, seedOf(kind, name)) };
      }),
    ),
  );
}

function samplesFrom(sound: Sound, seed: number): Float32Array {
  const random = seededRandom(seed);
  random(); // the first value of this generator is near its seed
  return sound(LENGTHS_SEC[Math.floor(random() * LENGTHS_SEC.length)] ?? 1, random);
}

/** A piece of a long recording: of 10 to 60 s, from somewhere in it. */
function packageClip({ kind, name, path }: PackageSound): SoundClip {
  const seed = seedOf(kind, name);
  return named(kind, name, () => {
    const samples = samplesOf(path);
    const most = BYTES_A_SECOND * (10 + (seed % 51));
    const from =
      samples.length > most ? 2 * Math.floor(((samples.length - most) / 2) * ((seed % 97) / 97)) : 0;
    return samples.subarray(from, from + most);
  });
}

function named(kind: string, name: string, samples: () => Buffer): SoundClip {
  const clip = storedClip(`sound-${kind}-${name.replaceAll(/\W+/g, '-')}`, samples, '');
  return { ...clip, name, kind, tuning: isTuning(hashOf(kind, name)) };
}

const seedOf = (kind: string, name: string) => Number.parseInt(hashOf(kind, name).slice(0, 8), 16);
