/** Detects the language of a written text, for a model that knows many languages and does not say which. Pure. */
import { eld } from 'eld/extrasmall';
import type { DetectedLanguage } from '../language/tally.ts';

/**
 * A language with a lower probability is not reported. In a test with 5510 runs of words from 120 sentences, 98 of 100
 * languages that reached it were right.
 */
const SURE = 0.8;
/** The detector reads only this many bytes of a text. */
const MAX_BYTES = 350;
/**
 * With a lead of 1 in the mean score, every further `BYTES_OF_DOUBT` bytes make a wrong answer e times less likely. The
 * number is fitted to the same runs.
 */
const BYTES_OF_DOUBT = 6;
/** The detector does not know Maltese, but only Maltese among the model's languages has these letters. */
const MALTESE_LETTER = /[ħġċ]/giu;
/** At least one letter in this many must be Maltese, so that a single name does not count. */
const MALTESE_SHARE = 70;

/**
 * The language of a text, with a probability from 0.8 to 1.
 * @param among the ISO 639 codes to choose among
 * @returns undefined when the text is too short, or could be in several of the languages
 */
export function languageOfText(text: string, among: readonly string[]): DetectedLanguage | undefined {
  const told = maltese(text, among) ?? likeliest(text, among);
  return told !== undefined && told.probability >= SURE ? told : undefined;
}

function likeliest(text: string, among: readonly string[]): DetectedLanguage | undefined {
  const scores = Object.entries(eld.detect(text).getScores()).filter(([code]) => among.includes(code));
  scores.sort(([, a], [, b]) => b - a);
  const [first, second] = scores;
  if (first === undefined) return undefined;
  // A score is x / (1 + x), where x is a mean over the text. A lead in x means more in a longer text.
  const mean = (score: number) => score / (1 - score);
  const lead = mean(first[1]) - mean(second?.[1] ?? 0);
  const bytes = Math.min(MAX_BYTES, Buffer.byteLength(text));
  return { language: first[0], probability: 1 - Math.exp((-lead * bytes) / BYTES_OF_DOUBT) };
}

function maltese(text: string, among: readonly string[]): DetectedLanguage | undefined {
  const found = text.match(MALTESE_LETTER)?.length ?? 0;
  const letters = text.match(/\p{L}/gu)?.length ?? 0;
  if (!among.includes('mt') || found === 0 || found * MALTESE_SHARE < letters) return undefined;
  return { language: 'mt', probability: 1 - 0.2 ** found };
}
