/** The Whisper family: one chunk of speech in, sentences out. */
import type { DecodedSegment, TranscriptionModel } from '../engine/native.ts';
import type { Chunk } from './chunks.ts';
import {
  type Attempt,
  attemptsFor,
  compressionRatio,
  contextFor,
  isLoop,
  judge,
  type Outcome,
} from './decoding.ts';
import type { ChunkRequest, Heading, Heard, Recognizer } from './recognizer.ts';
import type { Word } from './segment.ts';
import { toSentences } from './sentences.ts';
import { toWords } from './words.ts';

const SAMPLE_RATE = 16_000;
/** Enough speech to tell the language by; more costs encoder time and changes little. */
const DETECTION_SEC = 6;
/** A guess below this does not overrule the language heard before it. */
const SURE = 0.5;

export const multilingual: Recognizer = {
  async recognize(model, chunk, request) {
    const heading =
      request.language === undefined
        ? await detectLanguage(model, chunk, request.before, request.signal)
        : { language: request.language, probability: 1 };
    return { heading, sentences: await transcribe(model, chunk, heading.language, request) };
  },
};

async function transcribe(
  model: TranscriptionModel,
  chunk: Chunk,
  language: string,
  request: ChunkRequest,
): Promise<Heard[]> {
  const decoded = await decode(model, chunk, language, request);
  if (decoded === null) return [];
  const { segments, attempt, outcome } = decoded;
  const words = toWords(segments, request.translate ? 'en' : language, chunk.startSec, chunk.speech);
  const groups = request.timed ? toSentences(words) : words.length > 0 ? [words] : [];
  return groups.map((group) => {
    const text = group.map((word) => word.text).join('');
    return {
      seek: Math.round(chunk.startSec * 100),
      start: group[0]?.start ?? chunk.startSec,
      end: group.at(-1)?.end ?? chunk.startSec,
      text,
      words: group,
      temperature: attempt.temperature,
      avgLogprob: meanLogprob(group),
      compressionRatio: compressionRatio(text),
      noSpeechProb: outcome.noSpeechProb,
      language,
    };
  });
}

interface Decoded {
  segments: DecodedSegment[];
  attempt: Attempt;
  outcome: Outcome;
}

/** The first attempt that can be believed, else the surest one that is not a loop; null for silence. */
async function decode(
  model: TranscriptionModel,
  chunk: Chunk,
  language: string,
  request: ChunkRequest,
): Promise<Decoded | null> {
  const durationSec = chunk.samples.length / SAMPLE_RATE;
  const { translate, prompt } = request;
  let best: Decoded | null = null;
  for (const attempt of attemptsFor(durationSec, model.info.audioContext, request.temperature)) {
    const segments = await model.transcribe(
      chunk.samples,
      { language, translate, prompt, words: request.timed, ...attempt },
      { signal: request.signal },
    );
    const outcome = summarize(segments);
    const verdict = outcome.tokens === 0 ? 'silence' : judge(outcome, attempt);
    if (verdict === 'silence') return null;
    if (verdict === 'accept') return { segments, attempt, outcome };
    const better = best === null || outcome.avgLogprob > best.outcome.avgLogprob;
    if (better && !isLoop(outcome.text)) best = { segments, attempt, outcome };
  }
  return best;
}

function summarize(segments: DecodedSegment[]): Outcome {
  const tokens = segments.flatMap((segment) => segment.tokens).filter((token) => token.bytes.length > 0);
  const sum = tokens.reduce((total, token) => total + token.logprob, 0);
  return {
    text: Buffer.concat(tokens.map((token) => token.bytes))
      .toString()
      .trim(),
    avgLogprob: sum / (tokens.length + 1), // the end token counts, as in the reference code
    noSpeechProb: segments[0]?.noSpeechProb ?? 0,
    tokens: tokens.length,
  };
}

function meanLogprob(words: Word[]): number {
  const logprobs = words.flatMap((word) => word.tokens).filter((t) => t.bytes.length > 0);
  return logprobs.reduce((sum, token) => sum + token.logprob, 0) / Math.max(1, logprobs.length);
}

/** The language of the chunk; a speaker may change it, so each chunk is asked, and an unsure answer is ignored. */
async function detectLanguage(
  model: TranscriptionModel,
  chunk: Chunk,
  before: Heading | null,
  signal: AbortSignal,
): Promise<Heading> {
  const samples = chunk.samples.subarray(0, DETECTION_SEC * SAMPLE_RATE);
  const audioContext = contextFor(samples.length / SAMPLE_RATE, model.info.audioContext);
  const guess = await model.detectLanguage(samples, { audioContext }, { signal });
  if (before !== null && guess.probability < SURE) return before;
  return { language: guess.language, probability: guess.probability };
}
