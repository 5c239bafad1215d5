/**
 * Detects the language of a chunk with Whisper. The sound alone is enough for most chunks. Where it leaves doubt, the
 * languages heard before count too, and at last the text: Whisper is surer of its words in the language that is spoken
 * than in one that sounds like it. bench/results/decoding.md has the figures.
 */
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import { type DetectionOptions, type Lane, type LanguageGuess, NativeError } from '../../engine/types.ts';
import { attemptsFor, isLoop, isSure } from '../decoding.ts';
import type { DetectedLanguage, LanguageTally } from '../language/tally.ts';
import type { ChunkRequest } from '../recognizer.ts';
import type { Chunk } from '../speech/chunks.ts';
import { type AttemptResult, firstAttempt } from './decoding.ts';

/** A language is out of the question when the best one is more than this many times as probable. */
const CLEAR = 50;
/**
 * The most languages whose texts are compared with that of the best one; of a draft, which has less time, it is one.
 */
const MOST_OTHERS = 3;
/**
 * A language in which all speech before was is this many times as probable as one not heard yet. With less than
 * `CLEAR`, two sounds alike would leave a doubt in a recording of one language.
 */
const SAME_LANGUAGE_ODDS = 50;
/**
 * A lead in the mean log probability of the tokens counts this many times, or once a second of speech, if that is more:
 * the longer the text is, the less of its mean is chance.
 */
const LEAST_TEXT_WEIGHT = 10;
/**
 * The best language by its sound is taken where it is this many times as probable as the one that the texts leave, and
 * its own text was left out without being a guess or a loop: someone says a word again and again.
 */
const CLEAR_OF_OTHER_TEXTS = 6;

/** A language, and the first attempt at the chunk in it where that was needed to decide. */
export interface ChunkLanguage {
  detected: DetectedLanguage;
  first?: AttemptResult | NativeError;
}

/** The language of a chunk, and how probable each language is. */
interface ChosenLanguage extends ChunkLanguage {
  languages: readonly DetectedLanguage[];
}

/**
 * The probability of each language by the sound of the chunk, and of each of its `parts`. The engine keeps the encoded
 * audio, so neither the attempts at the text nor the decoding after them encode it again.
 */
export async function languageBySound(
  lane: Lane,
  { samples }: Pick<Chunk, 'samples'>,
  request: ChunkRequest,
  parts: NonNullable<DetectionOptions['parts']> = [],
): Promise<LanguageGuess> {
  const [{ audioContext }] = attemptsFor(samples.length / SAMPLE_RATE, lane.info, request);
  return await lane.detectLanguage(samples, { audioContext, parts }, { signal: request.signal });
}

/** The language of the chunk, among those that the request allows and the model knows. */
export async function chooseLanguage(
  lane: Lane,
  chunk: Chunk,
  request: ChunkRequest,
  { probabilities }: LanguageGuess,
): Promise<ChosenLanguage> {
  const durationSec = chunk.samples.length / SAMPLE_RATE;
  const sound = amongAllowed(probabilities, request.languages);
  if (inDoubt(sound).length === 1) return { detected: sound[0], languages: sound };
  const languages = knowing((await request.before()).languages, sound);
  const [top, ...others] = inDoubt(languages);
  if (others.length === 0) return { detected: top, languages };
  const decodeAs = ({ language }: DetectedLanguage) => firstAttempt(lane, chunk, language, request);
  const first = await decodeAs(top);
  if (first instanceof NativeError || first.verdict === 'silence') return { detected: top, first, languages };
  const texts: Text[] = first.verdict === 'accept' ? [{ detected: top, first }] : [];
  const compared = others.slice(0, request.draft ? 1 : MOST_OTHERS);
  for (const detected of compared) {
    const other = await decodeAs(detected);
    if (!(other instanceof NativeError) && other.verdict === 'accept') texts.push({ detected, first: other });
  }
  if (texts.length === 0) return { detected: top, first, languages };
  const weighed = byText(texts, durationSec);
  const [best] = weighed;
  const { outcome } = first.decoded;
  const isSpoken = first.verdict === 'retry' && isSure(outcome) && !isLoop(outcome, durationSec);
  const isFarBehind = best.detected.probability * CLEAR_OF_OTHER_TEXTS < top.probability;
  if (isSpoken && isFarBehind) return { detected: top, first, languages };
  const without = languages.filter((language) => language !== top && !compared.includes(language));
  return { ...best, languages: ranked([...weighed.map(({ detected }) => detected), ...without]) };
}

interface Text extends ChunkLanguage {
  first: AttemptResult;
}

/** Weighs the texts with their languages, the best one first. Together they are as probable as before. */
function byText(texts: Text[], durationSec: number): [Text, ...Text[]] {
  const textWeight = Math.max(LEAST_TEXT_WEIGHT, durationSec);
  const mean = ({ first }: Text) => first.decoded.outcome.avgLogprob;
  const surest = Math.max(...texts.map(mean));
  const weight = (text: Text) => text.detected.probability * Math.exp((mean(text) - surest) * textWeight);
  const sum = (of: (text: Text) => number) => texts.reduce((total, text) => total + of(text), 0);
  const scale = sum(({ detected }) => detected.probability) / sum(weight);
  const weighed = texts.map((text) => ({
    ...text,
    detected: { ...text.detected, probability: scale * weight(text) },
  }));
  return weighed.sort((a, b) => b.detected.probability - a.detected.probability) as [Text, ...Text[]];
}

type Ranked = [DetectedLanguage, ...DetectedLanguage[]];

/** The most probable first; all that the model knows where the request allows none of them. */
export function amongAllowed(probabilities: Record<string, number>, languages: readonly string[]): Ranked {
  const known = Object.entries(probabilities).map(([language, probability]) => ({ language, probability }));
  const among = known.filter(({ language }) => languages.includes(language));
  return ranked(among.length > 0 ? among : known);
}

/** Weighs the sound with the languages of the speech before. One that is heard often needs less sound to be taken. */
function knowing(before: LanguageTally, sound: Ranked): Ranked {
  return ranked(
    sound.map(({ language, probability }) => ({
      language,
      probability: probability * (1 + (SAME_LANGUAGE_ODDS - 1) * before.share(language)),
    })),
  );
}

/** Sorts, and makes the probabilities add up to 1. */
function ranked(weights: DetectedLanguage[]): Ranked {
  const total = weights.reduce((sum, { probability }) => sum + probability, 0);
  const [top = { language: 'en', probability: 0 }, ...others] = weights
    .map(({ language, probability }) => ({ language, probability: total > 0 ? probability / total : 0 }))
    .sort((a, b) => b.probability - a.probability);
  return [top, ...others];
}

/** The best language, and those that it leaves possible. */
function inDoubt([top, ...others]: Ranked): Ranked {
  return [
    top,
    ...others.filter(({ probability }) => probability > 0 && probability * CLEAR >= top.probability),
  ];
}
