/**
 * `voxgate models check` transcribes clips of known texts with the weights on disk, and counts the words that are wrong.
 * It exists because no test of this project runs the real weights of every model.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join, parse } from 'node:path';
import { fileURLToPath } from 'node:url';
import { distance } from 'fastest-levenshtein';
import { findModel, VOICE_ACTIVITY } from '../models/catalogue.ts';
import type { ModelStore } from '../models/store.ts';
import type { Transcriber } from './question.ts';

/** Working weights have at most 5 % on the clip of the package; broken ones write other words, or none. */
export const MOST_WORDS_WRONG = 0.2;

/** The clip that comes with the package: a speech of John F. Kennedy, a work of the United States' government. */
const SAMPLE: Clip = {
  path: fileURLToPath(new URL('../../assets/sample.mp3', import.meta.url)),
  language: 'en',
  text: 'And so my fellow Americans, ask not what your country can do for you, ask what you can do for your country.',
};

interface Clip {
  path: string;
  /** ISO 639 code; undefined where the model shall detect it. */
  language: string | undefined;
  text: string;
}

export interface CheckedClip {
  clip: string;
  language: string;
  heard: string;
  /** 0.1 means that one word in ten is wrong; of scripts without spaces, one character. */
  wordErrorRate: number;
  seconds: number;
  tookSec: number;
  realTimeFactor: number;
}

/** @throws Error that says what has to be fetched */
export function assertCheckable(id: string, store: ModelStore): void {
  if (findModel(id) === undefined)
    throw new Error(`${id} does not transcribe; voxgate models verify checks its files`);
  const missing = [id, VOICE_ACTIVITY.id].filter((wanted) => !store.isInstalled(wanted));
  if (missing.length > 0)
    throw new Error(`${store.dir} lacks ${missing.join(' and ')}: fetch it with voxgate models pull ${id}`);
}

/**
 * The clip of the package, or those of a folder: audio files, each with its text beside it in a .txt of the same name.
 * A name that begins as `zh-` tells the language.
 */
export async function clipsOf(folder: string | undefined): Promise<Clip[]> {
  if (folder === undefined) return [SAMPLE];
  const names = (await readdir(folder)).toSorted();
  const spoken = names.filter((name) => !name.endsWith('.txt') && names.includes(`${parse(name).name}.txt`));
  if (spoken.length === 0)
    throw new Error(`${folder} has no audio file with its text beside it, in a .txt of the same name`);
  return await Promise.all(
    spoken.map(async (name) => ({
      path: join(folder, name),
      language: /^([a-z]{2,3})-/.exec(name)?.[1],
      text: await readFile(join(folder, `${parse(name).name}.txt`), 'utf8'),
    })),
  );
}

/** Transcribes one after the other. The first is transcribed twice, because the model is loaded meanwhile. */
export async function* check(
  model: string,
  clips: readonly Clip[],
  transcriber: Transcriber,
  signal: AbortSignal,
): AsyncGenerator<CheckedClip> {
  const transcribe = async ({ path, language }: Clip) => {
    const fields = { model, response_format: 'verbose_json', ...(language !== undefined && { language }) };
    const begin = performance.now();
    const answer = JSON.parse(await transcriber.ask({ audio: path, fields, signal }));
    return { ...answer, tookSec: (performance.now() - begin) / 1000 } as {
      text: string;
      duration: number;
      language_code?: string;
      tookSec: number;
    };
  };
  if (clips[0] !== undefined) await transcribe(clips[0]);
  for (const clip of clips) {
    const { text, duration, tookSec, language_code } = await transcribe(clip);
    yield {
      clip: parse(clip.path).base,
      language: clip.language ?? language_code ?? '',
      heard: text.trim(),
      wordErrorRate: wordErrorRate(clip.text, text),
      seconds: duration,
      tookSec,
      realTimeFactor: tookSec / duration,
    };
  }
}

/** Words that have to be changed, over those that were said. Case and punctuation do not count. */
function wordErrorRate(said: string, heard: string): number {
  const [expected, found] = [wordsOf(said), wordsOf(heard)];
  const known = [...new Set([...expected, ...found])];
  // A letter stands for each word, so that the distance of two strings is that of the texts.
  const letters = (words: string[]) =>
    words.map((word) => String.fromCharCode(1 + known.indexOf(word))).join('');
  return distance(letters(expected), letters(found)) / Math.max(1, expected.length);
}

/** Scripts that are written without spaces have a word for each character. */
const WORD =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}])[\p{L}\p{M}\p{N}])+/gu;

const wordsOf = (text: string): string[] =>
  text.normalize('NFKC').toLowerCase().replace(/['’]/g, '').match(WORD) ?? [];

export function line(checked: CheckedClip): string {
  const { clip, language, heard, wordErrorRate, seconds, tookSec, realTimeFactor } = checked;
  const rate = `${(wordErrorRate * 100).toFixed(1)} % of the words wrong`;
  const time = `${seconds.toFixed(1)} s in ${tookSec.toFixed(2)} s (real-time factor ${realTimeFactor.toFixed(3)})`;
  return `${[clip, language].filter(Boolean).join(', ')}: ${rate}, ${time}\n  ${heard || '(no text)'}\n`;
}
