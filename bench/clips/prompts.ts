/**
 * Prompts of telephone exchanges with their texts, by one professional speaker for each language: Debian's
 * asterisk-core-sounds-*, at 16 kHz.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import type { Sentence } from '../accuracy/error-rate.ts';
import { samplesOf } from '../common/samples.ts';
import { type Clip, storedClip } from './clips.ts';
import { debianPackagePath } from './debian-package.ts';

export const PROMPT_LANGUAGES = ['en', 'es', 'fr', 'it', 'ru'] as const;

/** A clip whose words are known, and counted together with those of its group. */
export interface Prompt extends Clip {
  group: string;
  /** ISO 639 code of the language that is heard. */
  spoken: string;
  text: string;
  /** The sentences of a clip in several languages, so that each is counted in the spelling of its own. */
  sentences?: readonly Sentence[];
  /** True for the half on which settings may be tuned; the other half judges them. */
  tuning: boolean;
}

/** Shorter prompts are words without a sentence, such as the names of letters. */
const LEAST_WORDS = 5;
/** Some texts describe a sound in brackets, or have lost a letter of their alphabet. */
const NO_TEXT = /[[\](){}?\ufffd]/;

/** A file with the text of what is said in it. */
export interface Recording {
  name: string;
  file: string;
  text: string;
}

export function prompts(language: string): Prompt[] {
  const sentences = promptFiles(language).filter(({ text }) => isSentence(text));
  return promptsFrom('prompt', language, sentences);
}

/** Clips of recordings in one language. */
export function promptsFrom(kind: string, language: string, recordings: readonly Recording[]): Prompt[] {
  return shuffled(
    recordings.map(({ name, file, text }) => {
      const stored = `${kind}-${language}-${name.replaceAll('/', '-')}`;
      const clip = storedClip(stored, () => samplesOf(file), text);
      return { ...clip, group: language, spoken: language, text, hash: hashOf(language, name) };
    }),
  );
}

/** Every prompt that has a text, also single words and texts that describe a sound. */
export function promptFiles(language: string): Recording[] {
  const texts = `asterisk-core-sounds-${language}`;
  const list = debianPackagePath(texts, `usr/share/doc/${texts}/core-sounds-${language}.txt.gz`);
  // The folder of the sounds may be there without those of this language.
  const documents = debianPackagePath(`${texts}-g722`, `usr/share/doc/${texts}-g722`);
  if (list === null || documents === null) return [];
  const sounds = join(documents, '../../asterisk/sounds');
  const voice = readdirSync(sounds).find((name) => name.startsWith(`${language}_`)) ?? '';
  return textsOf(list)
    .map(({ name, text }) => ({ name, text, file: join(sounds, voice, `${name}.g722`) }))
    .filter(({ file }) => existsSync(file));
}

/** True where the text says what is heard. */
export function isSpoken(text: string): boolean {
  return !NO_TEXT.test(text);
}

/** True where the text is a sentence, or enough of one, and says what is heard. */
export function isSentence(text: string): boolean {
  return isSpoken(text) && (text.match(/[\p{L}\p{N}']+/gu)?.length ?? 0) >= LEAST_WORDS;
}

/** The sha256 of language and name, which decides which half a prompt belongs to, in hexadecimal digits. */
export function hashOf(language: string, name: string): string {
  return createHash('sha256').update(`${language}${name}`).digest('hex');
}

/** Orders by hash, so that the first ones are a fair choice among all; an even hash is for tuning. */
export function shuffled(all: (Omit<Prompt, 'tuning'> & { hash: string })[]): Prompt[] {
  return all
    .toSorted((a, b) => (a.hash < b.hash ? -1 : 1))
    .map(({ hash, ...prompt }) => ({ ...prompt, tuning: isTuning(hash) }));
}

export const isTuning = (hash: string) => Number.parseInt(hash.slice(-1), 16) % 2 === 0;

/** Reads lines such as `agent-loginok: Agent logged in.` */
function textsOf(list: string): { name: string; text: string }[] {
  const bytes = gunzipSync(readFileSync(list));
  const lines = bytes.toString('utf8').matchAll(/^([^;:\s][^:\n]*):[ \t]*(.*\S)[ \t]*$/gm);
  return [...lines].map(([, name = '', text = '']) => ({ name: name.trim(), text }));
}
