/** Decodes the text of one chunk with Whisper, in as many attempts as it takes (transcription/decoding.ts). */
import { SAMPLE_RATE } from '../../audio/decoder.ts';
import { type DecodedSegment, type Lane, NativeError } from '../../engine/types.ts';
import {
  type Attempt,
  attemptsFor,
  isInDoubt,
  isLoop,
  isSure,
  judge,
  type Outcome,
  type Verdict,
} from '../decoding.ts';
import type { ChunkRequest } from '../recognizer.ts';
import { spelledIn } from '../segment.ts';
import { type Chunk, speechSecOf, withSilences } from '../speech/chunks.ts';
import { mayRepeat } from './repeats.ts';

export interface Decoded {
  segments: DecodedSegment[];
  attempt: Attempt;
  outcome: Outcome;
  /** Whether the words have times. */
  timed: boolean;
}

/** The place of the attempt that is made only where the ones before it gave no text. */
const FOR_NO_TEXT = 2;

/** A text, or why there is none: no speech, or the model only repeated itself. */
export type DecodingResult = Decoded | 'silence' | 'repetition';

export interface Decoding {
  language: string;
  /** The result of the first attempt, where it was made already. */
  first?: AttemptResult | NativeError | undefined;
}

/** What one attempt gave. */
export interface AttemptResult {
  verdict: Verdict;
  decoded: Decoded;
}

/**
 * The first attempt that is accepted, else the one with the highest log probability that is not a loop. A chunk costs
 * no more than its audio encoded once or, if the model only repeats itself, twice.
 * @throws NativeError `incomplete` when every attempt stopped before the end of the audio
 */
export async function decode(
  lane: Lane,
  chunk: Chunk,
  { language, first }: Decoding,
  request: ChunkRequest,
): Promise<DecodingResult> {
  const durationSec = chunk.samples.length / SAMPLE_RATE;
  let known = first;
  let timed = request.timed;
  const run = async (attempt: Attempt) => {
    const result = known ?? (await runAttempt(lane, chunk, attempt, language, { ...request, timed }));
    known = undefined;
    // Times tell whether what is repeated was said.
    timed ||= result instanceof NativeError || mayRepeat(result.decoded.outcome.text);
    return result;
  };
  let best: Decoded | null = null;
  let incomplete: NativeError | null = null;
  for (const [i, attempt] of attemptsFor(durationSec, lane.info, request).entries()) {
    if (i === FOR_NO_TEXT && best !== null) break;
    const result = await run(attempt);
    if (result instanceof NativeError) {
      if (result.code === 'incomplete') incomplete = result;
      continue;
    }
    const { verdict, decoded } = result;
    // Another attempt may write nothing. That does not turn an earlier text, of which the model was sure, into silence.
    if (verdict === 'silence') return best !== null && isSure(best.outcome) ? best : 'silence';
    if (verdict === 'accept') {
      const hasSecondLook = i > 0 || first === undefined;
      return hasSecondLook || !isInDoubt(decoded.outcome, attempt)
        ? decoded
        : surer(decoded, await run(attempt));
    }
    const better = best === null || decoded.outcome.avgLogprob > best.outcome.avgLogprob;
    if (better && !isLoop(decoded.outcome, durationSec)) best = decoded;
  }
  if (best === null && incomplete !== null) throw incomplete; // a part of the text is not the text
  return best ?? 'repetition';
}

/** Makes the first attempt of those that `decode` makes, without its second look. */
export function firstAttempt(
  lane: Lane,
  chunk: Chunk,
  language: string,
  request: ChunkRequest,
): Promise<AttemptResult | NativeError> {
  const [{ doubt, ...attempt }] = attemptsFor(chunk.samples.length / SAMPLE_RATE, lane.info, request);
  return runAttempt(lane, chunk, attempt, language, request);
}

/** Makes one attempt. It gives the error where the model repeated itself, or stopped before the end of the audio. */
async function runAttempt(
  lane: Lane,
  chunk: Chunk,
  attempt: Attempt,
  language: string,
  { translate, prompt, timed, signal }: ChunkRequest,
): Promise<AttemptResult | NativeError> {
  const durationSec = chunk.samples.length / SAMPLE_RATE;
  // Several spans are decoded apart where their text is short.
  const spoken = { durationSec, speechSec: chunk.speech.length > 1 ? 0 : speechSecOf(chunk) };
  const options = { language, translate, prompt, words: timed, again: true, ...attempt };
  const segments = await lane.transcribe(chunk.samples, options, { signal }).catch(retryableError);
  if (segments instanceof NativeError) return segments;
  const outcome = summarize(segments);
  const verdict = outcome.tokens === 0 ? 'silence' : judge(outcome, attempt, spoken);
  return { verdict, decoded: { segments: withSilences(segments, chunk), attempt, outcome, timed } };
}

/** The same text with the times of its words: what is decoded again in the same way is the same. */
export async function withTimes(
  lane: Lane,
  chunk: Chunk,
  decoded: Decoded,
  language: string,
  request: ChunkRequest,
): Promise<Decoded> {
  const again = await runAttempt(lane, chunk, decoded.attempt, language, { ...request, timed: true });
  const isSame = !(again instanceof NativeError) && again.decoded.outcome.text === decoded.outcome.text;
  return isSame ? again.decoded : decoded;
}

/** The more probable of two texts; the second one counts if it would be accepted by itself. */
function surer(first: Decoded, second: AttemptResult | NativeError): Decoded {
  if (second instanceof NativeError || second.verdict !== 'accept') return first;
  return second.decoded.outcome.avgLogprob > first.outcome.avgLogprob ? second.decoded : first;
}

function retryableError(error: unknown): NativeError {
  if (error instanceof NativeError && (error.code === 'incomplete' || error.code === 'repetition'))
    return error;
  throw error;
}

function summarize(segments: DecodedSegment[]): Outcome {
  const tokens = spelledIn(segments.flatMap((segment) => segment.tokens));
  const ends = segments.reduce((total, { endLogprob = 0 }) => total + endLogprob, 0);
  const sum = tokens.reduce((total, token) => total + token.logprob, ends);
  return {
    text: Buffer.concat(tokens.map((token) => token.bytes))
      .toString()
      .trim(),
    avgLogprob: sum / (tokens.length + 1), // the end token counts, as in the reference code
    noSpeechProb: segments[0]?.noSpeechProb ?? 0,
    tokens: tokens.length,
  };
}
