/**
 * Where the text of a chunk is said in it. An alignment shows speech that has no words of the text, at a fraction of what
 * it costs to decode the speech again.
 */
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import { type DecodedSegment, type Lane, NativeError } from '../../engine/types.ts';
import { contextFor } from '../decoding.ts';
import { GREEDY } from '../recognizer.ts';
import { beginsUnspaced, textOf, type Word } from '../segment.ts';
import { type Chunk, splitChunk, withSilences } from '../speech/chunks.ts';
import { isFarTooShort } from '../speech/speech-rate.ts';
import { toWords } from '../text/words.ts';
import { cutAtPauses } from './language-changes.ts';
import { audibleSec } from './pauses.ts';

/** Shorter speech may be a sound, or a word that is aligned with its neighbor. */
const LEAST_WITHOUT_TEXT_SEC = 1;
/** Words in another language than the one that was spoken have a lower mean log probability than this. */
const DOUBTFUL_LOGPROB = -0.5;
/** So many tokens in a row, about three words, are enough to doubt a text. */
const DOUBTFUL_TOKENS = 6;

/** A text that is said in a chunk. */
export interface SaidText {
  text: string;
  language: string;
  translate: boolean;
  signal: AbortSignal;
}

/** The words of the text with their times, or `too long` for a text with more tokens than the model takes at once. */
export async function alignedWords(lane: Lane, chunk: Chunk, said: SaidText): Promise<Word[] | 'too long'> {
  const { language, translate, signal } = said;
  const text = said.text.trimStart();
  const audioContext = contextFor(chunk.samples.length / SAMPLE_RATE, lane.info.audioContext);
  // The model was trained on texts with a space before the first word, too.
  const spaced = beginsUnspaced(text) ? text : ` ${text}`;
  const options = { ...GREEDY, times: false, language, translate, again: true, audioContext, text: spaced };
  const segments = await lane.transcribe(chunk.samples, options, { signal }).catch((error) => {
    if (error instanceof NativeError && error.code === 'text_too_long') return null;
    throw error;
  });
  if (segments === null) return 'too long';
  return toWords(withSilences(segments, chunk), language, chunk.startSec, chunk.speech);
}

/** True where hardly any of the text is said in parts of the chunk that can be heard for a second or more together. */
export async function lackText(lane: Lane, chunk: Chunk, parts: Chunk[], said: SaidText): Promise<boolean> {
  if (said.text === '') return true;
  const words = await alignedWords(lane, chunk, said);
  if (words === 'too long') return true; // a text with broken characters has more tokens than the model wrote for it
  const without = parts.filter((part) => hasHardlyWords(part, words));
  const sec = without.reduce((sum, { samples }) => sum + audibleSec(samples), 0);
  return sec >= LEAST_WITHOUT_TEXT_SEC;
}

/** True where some words of a text are improbable. It takes no alignment. */
export function hasDoubtfulWords(segments: DecodedSegment[]): boolean {
  const tokens = segments.flatMap(({ tokens }) => tokens).filter(({ bytes }) => bytes.length > 0);
  const sumFrom = (at: number) =>
    tokens.slice(at, at + DOUBTFUL_TOKENS).reduce((sum, { logprob }) => sum + logprob, 0);
  return tokens.slice(DOUBTFUL_TOKENS - 1).some((_, at) => sumFrom(at) < DOUBTFUL_TOKENS * DOUBTFUL_LOGPROB);
}

/** Speech of the chunk without any word of its text, where that is long enough for a word. */
export async function speechLeftOut(lane: Lane, whole: Chunk, said: SaidText): Promise<Chunk[]> {
  const chunk = cutAtPauses(whole);
  if (chunk.speech.length < 2 || said.text === '') return [];
  const words = await alignedWords(lane, whole, said);
  if (words === 'too long') return [];
  const spans = splitChunk(chunk, [...chunk.speech.keys()].slice(1));
  const isLeftOut = spans.map((span) => hasHardlyWords(span, words));
  const starts = [...isLeftOut.keys()].filter((at) => at > 0 && isLeftOut[at] !== isLeftOut[at - 1]);
  // With no change, the text is in all of the speech, or nowhere.
  const runs = starts.length === 0 ? [] : splitChunk(chunk, starts);
  return runs.filter(
    ({ samples }, i) =>
      isLeftOut[[0, ...starts][i] as number] && audibleSec(samples) >= LEAST_WITHOUT_TEXT_SEC,
  );
}

const isSaidIn = ({ start, end }: Word, { startSec, endSec }: Chunk): boolean =>
  start + end >= 2 * startSec && start + end < 2 * endSec;

/** True where the part of a chunk has fewer words than anyone says in the time in which it can be heard. */
function hasHardlyWords(part: Chunk, words: Word[]): boolean {
  const inPart = words.filter((word) => isSaidIn(word, part));
  return isFarTooShort(textOf(inPart), audibleSec(part.samples));
}
