/**
 * When to believe a decoded chunk, and how to try again: the temperature fallback of Radford et al. 2022,
 * section 4.5, with one step put before it. An encoder window cut to the clip is several times faster but can
 * send the decoder into a loop, so the first retry is the same decoding at full context. Pure.
 */
import { deflateSync } from 'node:zlib';

export interface Attempt {
  temperature: number;
  /** Encoder positions of 20 ms; 0 = the full window. */
  audioContext: number;
  /** Most tokens to decode; 0 = the model's own limit. */
  maxTokens: number;
}

export interface Outcome {
  text: string;
  avgLogprob: number;
  noSpeechProb: number;
  /** Number of text tokens. */
  tokens: number;
}

export type Verdict = 'accept' | 'retry' | 'silence';

const POSITION_SEC = 0.02;
/** At 192 the decoder loops (2.7 s became dozens of repetitions); at 256 short commands lose a word in 300 more. */
const MIN_CONTEXT = 320;
const CONTEXT_MARGIN_SEC = 1.5;
const CONTEXT_STEP = 64;
const MAX_COMPRESSION = 2.4;
/** Twice what a fast speaker of English reaches; Whisper's loops run to its limit of 224 tokens, 7 a second and more. */
const MAX_REPEATED_TOKENS_PER_SEC = 6;
const MIN_AVG_LOGPROB = -1;
const MAX_NO_SPEECH = 0.6;
const TEMPERATURES = [0, 0.2, 0.4, 0.6, 0.8, 1];

/** Encoder positions for a clip: its own length, a margin and a floor; 0 when that is the whole window. */
export function contextFor(durationSec: number, fullContext: number): number {
  const wanted = (durationSec + CONTEXT_MARGIN_SEC) / POSITION_SEC;
  const positions = Math.max(MIN_CONTEXT, Math.ceil(wanted / CONTEXT_STEP) * CONTEXT_STEP);
  return positions >= fullContext ? 0 : positions;
}

/** The attempts in order. A temperature the client asked for is used as it is, without fallback. */
export function attemptsFor(durationSec: number, fullContext: number, temperature: number): Attempt[] {
  const cut = contextFor(durationSec, fullContext);
  // Nobody speaks 14 tokens a second for long; a script of several bytes a character that does is retried uncapped.
  const first: Attempt = { temperature, audioContext: cut, maxTokens: Math.ceil(24 + 14 * durationSec) };
  const full = { audioContext: 0, maxTokens: 0 };
  if (temperature > 0) return [first, { temperature, ...full }];
  const others = TEMPERATURES.map((t) => ({ temperature: t, ...full }));
  return cut === 0 ? others : [first, ...others];
}

/** Bytes of the text over its zlib size: how repetitive it is. */
export function compressionRatio(text: string): number {
  const bytes = Buffer.from(text);
  return bytes.length === 0 ? 0 : bytes.length / deflateSync(bytes).length;
}

/**
 * Whether this is a decoder that cannot leave its last words: it says them again faster than anyone speaks. A refrain
 * or a drill compresses as well, but at the pace of speech.
 */
export function isLoop({ text, tokens }: Pick<Outcome, 'text' | 'tokens'>, durationSec: number): boolean {
  return isRepetitive(text) && tokens > MAX_REPEATED_TOKENS_PER_SEC * durationSec;
}

function isRepetitive(text: string): boolean {
  return compressionRatio(text) > MAX_COMPRESSION;
}

export function judge(outcome: Outcome, attempt: Attempt, durationSec: number): Verdict {
  const unsure = outcome.avgLogprob < MIN_AVG_LOGPROB;
  if (outcome.noSpeechProb > MAX_NO_SPEECH && unsure) return 'silence';
  const capped = attempt.maxTokens > 0 && outcome.tokens >= attempt.maxTokens;
  // A cut window may have made the repetition; the full one is believed.
  const repeated = attempt.audioContext > 0 ? isRepetitive(outcome.text) : isLoop(outcome, durationSec);
  return unsure || capped || repeated ? 'retry' : 'accept';
}
