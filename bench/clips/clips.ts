/**
 * Clips of real speech with a known text that anyone can get are kept here as 16 kHz mono wav, below
 * build/bench-clips.
 */
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, parse } from 'node:path';
import { JFK, wavHeader } from '../../test/wav.ts';
import { ROOT } from '../common/machine.ts';
import { BYTES_A_SECOND, HEADER_BYTES, samplesOf } from '../common/samples.ts';
import { debianPackagePath } from './debian-package.ts';

const JFK_TEXT =
  'And so my fellow Americans, ask not what your country can do for you, ask what you can do for your country.';
export const CLIP_FOLDER = join(ROOT, 'build/bench-clips');

const PACKAGE = 'pocketsphinx-testdata';
const PACKAGE_DATA = 'usr/share/pocketsphinx/test/data';
/** numbers.raw is left out because its text is written nowhere. */
const RAW_TEXTS = {
  'goforward.raw': 'go forward ten meters',
  'something.raw': 'go somewhere and do something',
  'tidigits/dhd.2934z.raw': 'two nine three four zero',
};

export interface Clip {
  name: string;
  /** Path of a 16 kHz mono wav. */
  audio: string;
  seconds: number;
  /** The spoken text; null when it is not known. */
  text: string | null;
  /** ISO 639 code that the peers are told, or `auto`; that of the class when absent. */
  language?: string;
}

/**
 * Gives the recording that comes with whisper.cpp's sources, and those of Debian's pocketsphinx-testdata, all in
 * English.
 */
export function publicClips(): Clip[] {
  const jfk = storedClip('jfk', () => samplesOf(JFK), JFK_TEXT);
  const folder = debianPackagePath(PACKAGE, PACKAGE_DATA);
  if (folder === null) return [jfk];
  const raws = Object.entries(RAW_TEXTS).map(([file, text]) =>
    storedClip(parse(file).name, () => readFileSync(join(folder, file)), text),
  );
  return [
    jfk,
    ...raws,
    ...transcribedClips(join(folder, 'librivox'), 'transcription'),
    ...transcribedClips(join(folder, 'cards'), 'cards.transcription'),
  ];
}

/** The file is decoded at every call, because another one may have come under the name. */
export function fileClip(path: string, text: string | null): Clip {
  return writeClip(`given-${parse(path).name}`, samplesOf(path), text);
}

/** The clip is written once. */
export function storedClip(name: string, samples: () => Buffer, text: string): Clip {
  const audio = join(CLIP_FOLDER, `${name}.wav`);
  if (!existsSync(audio)) return writeClip(name, samples(), text);
  return { name, audio, seconds: wavSeconds(audio), text };
}

export const wavSeconds = (audio: string) => (statSync(audio).size - HEADER_BYTES) / BYTES_A_SECOND;

function writeClip(name: string, samples: Buffer, text: string | null): Clip {
  mkdirSync(CLIP_FOLDER, { recursive: true });
  const audio = join(CLIP_FOLDER, `${name}.wav`);
  writeFileSync(audio, Buffer.concat([wavHeader(samples.length), samples]));
  return { name, audio, seconds: samples.length / BYTES_A_SECOND, text };
}

/** Reads lines such as `<s> he was not an ill disposed young man </s> (name)`. */
function transcribedClips(folder: string, file: string): Clip[] {
  const lines = readFileSync(join(folder, file), 'utf8').matchAll(/<s>\s*(.*?)\s*<\/s>\s*\((.*)\)/g);
  return [...lines].map(([, text = '', id = '']) =>
    storedClip(
      `${parse(folder).name}-${id.split('-').at(-1)}`,
      () => samplesOf(join(folder, `${id}.wav`)),
      text,
    ),
  );
}
