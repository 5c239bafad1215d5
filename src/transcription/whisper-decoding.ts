/** Decodes the text of one chunk with Whisper, in as many attempts as it takes (transcription/decoding.ts). */
import { SAMPLE_RATE } from '../audio/decoder.ts';
import { type DecodedSegment, type Lane, NativeError } from '../engine/types.ts';
import type { Chunk } from './chunks.ts';
import {
  type Attempt,
  attemptsFor,
  furtherLooks,
  isLoop,
  judge,
  type Outcome,
  type Verdict,
} from './decoding.ts';
import type { ChunkRequest } from './recognizers/recognizer.ts';

export interface Decoded {
  segments: DecodedSegment[];
  attempt: Attempt;
  outcome: Outcome;
}

export interface Decoding {
  language: string;
  /** True when the lane has encoded this very audio for the call before. */
  isEncoded: boolean;
}

/**
 * The first attempt that is accepted, else the one with the highest log probability that is not a loop.
 * @returns `silence` when the chunk has no speech, `repetition` when the model only repeated itself
 * @throws NativeError `incomplete` when every attempt stopped before the end of the audio
 */
export async function decode(
  lane: Lane,
  chunk: Chunk,
  { language, isEncoded }: Decoding,
  request: ChunkRequest,
): Promise<Decoded | 'silence' | 'repetition'> {
  const durationSec = chunk.samples.length / SAMPLE_RATE;
  // Several spans are heard apart where their text is short.
  const spoken = { durationSec, speechSec: chunk.speech.length > 1 ? 0 : speechSecOf(chunk) };
  const { translate, prompt, signal } = request;
  let again = isEncoded;
  const hear = async (attempt: Attempt) => {
    const options = { language, translate, prompt, words: request.timed, again, ...attempt };
    again = true;
    const segments = await lane.transcribe(chunk.samples, options, { signal }).catch(ifIncomplete);
    if (segments instanceof NativeError) return segments;
    const outcome = summarize(segments);
    const verdict = outcome.tokens === 0 ? 'silence' : judge(outcome, attempt, spoken);
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

/** The seconds in which someone speaks. */
export function speechSecOf({ speech }: Pick<Chunk, 'speech'>): number {
  return speech.reduce((sum, { startSec, endSec }) => sum + endSec - startSec, 0);
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
