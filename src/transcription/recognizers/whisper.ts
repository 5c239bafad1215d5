/** The Whisper family (Radford et al. 2022, arXiv 2212.04356) turns one chunk of speech into sentences. */
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import { type DecodedSegment, type Lane, NativeError } from '../../engine/types.ts';
import { withoutAnnotations } from '../annotations.ts';
import type { Chunk } from '../chunks.ts';
import {
  type Attempt,
  attemptsFor,
  contextFor,
  furtherLooks,
  isLoop,
  judge,
  type Outcome,
  type Verdict,
} from '../decoding.ts';
import type { UnnumberedSegment } from '../segment.ts';
import { toSegments } from '../segments.ts';
import { toSentences } from '../sentences.ts';
import { toWords } from '../words.ts';
import type { ChunkRequest, DetectedLanguage, Recognizer } from './recognizer.ts';

/** A guess with a lower probability does not replace the language of the chunk before. */
const SURE = 0.5;

export const recognizer: Recognizer = {
  /**
   * Of sentences that are said again and again in one chunk, Whisper writes one. So only short spans share a chunk,
   * where a word alone would be harder to hear. docs/accuracy.md has the figures.
   */
  maxChunkSec: 4,

  async recognize(lane, chunk, request) {
    const detected =
      request.language === undefined
        ? await detectLanguage(lane, chunk, request)
        : { language: request.language, probability: 1 };
    const decoded = await decode(lane, chunk, detected.language, request);
    if (decoded === 'silence') return { detected, sentences: [] };
    if (decoded === 'repetition') return { detected, sentences: [], dropped: decoded };
    return { detected, sentences: sentencesOf(decoded, chunk, detected.language, request) };
  },
};

function sentencesOf(
  decoded: Decoded,
  chunk: Chunk,
  language: string,
  request: ChunkRequest,
): UnnumberedSegment[] {
  const { segments, attempt, outcome } = decoded;
  const written = toWords(segments, request.translate ? 'en' : language, chunk.startSec, chunk.speech);
  const words = withoutAnnotations(written, request.prompt);
  const groups = request.timed ? toSentences(words) : words.length > 0 ? [words] : [];
  const { temperature } = attempt;
  return toSegments(groups, chunk, { temperature, noSpeechProb: outcome.noSpeechProb, language });
}

interface Decoded {
  segments: DecodedSegment[];
  attempt: Attempt;
  outcome: Outcome;
}

/** The first attempt that is accepted, else the one with the highest log probability that is not a loop. */
async function decode(
  lane: Lane,
  chunk: Chunk,
  language: string,
  request: ChunkRequest,
): Promise<Decoded | 'silence' | 'repetition'> {
  const durationSec = chunk.samples.length / SAMPLE_RATE;
  const speechSec = chunk.speech.reduce((sum, { startSec, endSec }) => sum + endSec - startSec, 0);
  const { translate, prompt, signal } = request;
  let again = request.language === undefined; // the language was detected in the same audio
  const hear = async (attempt: Attempt) => {
    const options = { language, translate, prompt, words: request.timed, again, ...attempt };
    again = true;
    const segments = await lane.transcribe(chunk.samples, options, { signal }).catch(ifIncomplete);
    if (segments instanceof NativeError) return segments;
    const outcome = summarize(segments);
    const verdict = outcome.tokens === 0 ? 'silence' : judge(outcome, attempt, { durationSec, speechSec });
    return { verdict, decoded: { segments, attempt, outcome } };
  };
  let best: Decoded | null = null;
  let incomplete: NativeError | null = null;
  for (const attempt of attemptsFor(durationSec, lane.info, request)) {
    const heard = await hear(attempt);
    if (heard instanceof NativeError) {
      incomplete = heard;
      continue;
    }
    const { verdict, decoded } = heard;
    if (verdict === 'silence') return 'silence';
    if (verdict === 'accept') return await surer(decoded, request.beams, hear);
    const better = best === null || decoded.outcome.avgLogprob > best.outcome.avgLogprob;
    if (better && !isLoop(decoded.outcome, durationSec)) best = decoded;
  }
  if (best === null && incomplete !== null) throw incomplete; // a part of the text is not the text
  return best ?? 'repetition';
}

/** Looks again at a text in doubt, until another look agrees with it, and returns the most probable text. */
async function surer(
  first: Decoded,
  beams: number,
  hear: (attempt: Attempt) => Promise<NativeError | { verdict: Verdict; decoded: Decoded }>,
): Promise<Decoded> {
  let best = first;
  for (const look of furtherLooks(first.outcome, first.attempt, beams)) {
    const heard = await hear(look);
    if (heard instanceof NativeError || heard.verdict !== 'accept') continue;
    if (heard.decoded.outcome.avgLogprob > best.outcome.avgLogprob) best = heard.decoded;
    if (heard.decoded.outcome.text === first.outcome.text) break;
  }
  return best;
}

function ifIncomplete(error: unknown): NativeError {
  if (error instanceof NativeError && error.code === 'incomplete') return error;
  throw error;
}

function summarize(segments: DecodedSegment[]): Outcome {
  const tokens = segments.flatMap((segment) => segment.tokens).filter((token) => token.bytes.length > 0);
  const sum = tokens.reduce((total, token) => total + token.logprob, 0);
  return {
    text: Buffer.concat(tokens.map((token) => token.bytes))
      .toString()
      .trim(),
    avgLogprob: sum / (tokens.length + 1), // the end token counts, as in the reference code
    leastLogprob: Math.min(0, ...tokens.map((token) => token.logprob)),
    noSpeechProb: segments[0]?.noSpeechProb ?? 0,
    tokens: tokens.length,
  };
}

/**
 * Detects the language of the chunk. The speaker may change it, so it is detected for each chunk, and an unsure guess
 * gives way to the language of the chunk before. The engine keeps the encoded audio, so the first attempt at the text
 * does not encode it again.
 */
async function detectLanguage(
  lane: Lane,
  chunk: Chunk,
  { before, languages, signal }: ChunkRequest,
): Promise<DetectedLanguage> {
  const audioContext = contextFor(chunk.samples.length / SAMPLE_RATE, lane.info.audioContext);
  const { probabilities } = await lane.detectLanguage(chunk.samples, { audioContext }, { signal });
  const heard = Object.entries(probabilities);
  const among = heard.filter(([code]) => languages.includes(code));
  const allowed = among.length > 0 ? among : heard;
  const total = allowed.reduce((sum, [, probability]) => sum + probability, 0);
  const [top] = allowed.sort(([, a], [, b]) => b - a);
  const guess =
    top === undefined
      ? { language: 'en', probability: 0 }
      : { language: top[0], probability: total > 0 ? top[1] / total : 0 };
  return guess.probability < SURE ? ((await before()) ?? guess) : guess;
}
