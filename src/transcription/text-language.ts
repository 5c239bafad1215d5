/** The language of a written text, for a model that hears many languages and does not say which. Pure. */
import { eld } from 'eld/extrasmall';
import type { DetectedLanguage } from './recognizers/recognizer.ts';

/** Below this nothing is said. Of what reached it, 98 of 100 were right: 5510 runs of words from 120 sentences. */
const SURE = 0.8;
/** The detector looks at no more of a text. */
const MAX_BYTES = 350;
/** Bytes over which a lead of 1 in the mean score makes a wrong answer e times less likely; fitted to the same runs. */
const BYTES_OF_DOUBT = 6;
/** The detector has no Maltese, but no other of the languages has these letters. */
const MALTESE_LETTER = /[ħġċ]/giu;
/** One in so many of Maltese letters, at least: a name alone is not enough. */
const MALTESE_SHARE = 70;

/**
 * @param among ISO 639 codes to choose among
 * @returns undefined where the text is too short, or could be in several of them; else how sure it is, 0.8 to 1
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
  // A score is x / (1 + x) of a mean over the text: the longer the text, the more a lead in x says.
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
