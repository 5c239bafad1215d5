/**
 * Speech that is hard to hear, in five languages: over the telephone, from the far end of a room, in noise, slowly, and
 * as words without a sentence. All of it comes from the half of the prompts on which nothing is tuned.
 */
import type { Clip } from './clips.ts';
import { fromFarAway, overTelephone, slower, withWhiteNoise } from './degraded-clips.ts';
import { longClip } from './long-clips.ts';
import {
  isSentence,
  isSpoken,
  PROMPT_LANGUAGES,
  type Prompt,
  promptFiles,
  prompts,
  promptsFrom,
} from './prompts.ts';

const SNR_DB = 5;
/** Two thirds of the usual speed. */
export const SLOW_TEMPO = 2 / 3;
const WAYS = [
  overTelephone,
  fromFarAway,
  (prompt: Prompt) => withWhiteNoise(prompt, SNR_DB),
  (prompt: Prompt) => slower(prompt, SLOW_TEMPO),
];
/** Single words: how long a clip of them is, and the pause behind each. */
export const WORDS = { seconds: 6, pauseSec: 0.6 };

/** Clips of 2 to 15 s: of each language one in each way, and one of single words. Every clip names its language. */
export function hardClips(): Clip[] {
  return PROMPT_LANGUAGES.flatMap((language) => {
    const sentences = judging(prompts(language)).filter(({ seconds }) => seconds >= 3 && seconds <= 9);
    const words = longClip(`words-${language}`, judging(singleWords(language)), WORDS);
    const heard: Clip[] = [...WAYS.flatMap((way, i) => sentences.slice(i, i + 1).map(way)), ...words];
    return heard.map((clip) => ({ ...clip, language }));
  });
}

/** English sentences, each made harder in the next way. */
export function hardSentences(): Clip[] {
  return judging(prompts('en'))
    .slice(0, 80)
    .map((prompt, i) => WAYS[i % WAYS.length]?.(prompt) ?? prompt);
}

/** Words such as the names of numbers, which are too short to be prompts. */
export function singleWords(language: string): Prompt[] {
  const words = promptFiles(language).filter(({ text }) => isSpoken(text) && !isSentence(text));
  return promptsFrom('word', language, words).filter(({ seconds }) => seconds >= 0.4 && seconds <= 2);
}

const judging = (all: Prompt[]) => all.filter(({ tuning }) => !tuning);
