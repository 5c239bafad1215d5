/**
 * Decides whether to accept a decoded chunk or to decode it again (the fallback), with the measures of Radford et al.
 * 2022, section 4.5: a repetition loop shows in the compression ratio of the text, a decoder that guesses in the mean
 * log probability of its tokens. Their rising temperatures are not among the attempts: on speech that is hard to hear
 * they cost up to thirty times a plain chunk and win no words (bench/results/decoding.md). Pure.
 */
import { deflateSync } from 'node:zlib';
import type { Doubt, ModelInfo } from '../engine/types.ts';
import { isFarTooShort } from './speech/speech-rate.ts';

export interface Attempt {
  temperature: number;
  /** Encoder positions of 20 ms; 0 means the full window. */
  audioContext: number;
  /** The most tokens to decode; 0 means the model's own limit. */
  maxTokens: number;
  /** Texts that are followed side by side. */
  beams: number;
  /** Whether the decoder writes times between its sentences; see `ChunkOptions`. */
  times: boolean;
  /** When the text gets a second look with several beams, which costs little. bench/results/decoding.md has the figures. */
  doubt?: Doubt;
}

export interface Outcome {
  text: string;
  /** The mean natural log probability of the tokens, with the end token. */
  avgLogprob: number;
  /** The probability (0..1) that the chunk holds no speech. */
  noSpeechProb: number;
  /** The number of text tokens. */
  tokens: number;
}

export type Verdict = 'accept' | 'retry' | 'silence';

const POSITION_SEC = 0.02;
/** At 192 the decoder loops (2.7 s became dozens of repetitions). At 256 short commands lose one more word in 300. */
const MIN_CONTEXT = 320;
const CONTEXT_MARGIN_SEC = 1.5;
const CONTEXT_STEP = 64;
const MAX_COMPRESSION = 2.4;
/** Twice the rate of a fast English speaker. Whisper's loops run to its limit of 224 tokens, at 7 a second and more. */
const MAX_REPEATED_TOKENS_PER_SEC = 6;
/** Shorter speech may be a word or two that are drawn out. */
const SPARSE_FROM_SEC = 4;
/** Behind the longest prompt the decoder has room for half of its positions, less these. */
const TAKEN_BY_PROMPT = 3;
/** Above this mean token probability, a text is right more often than what another attempt finds. */
const SURE_AVG_LOGPROB = -0.15;
/** The mean over a long text hides a doubtful word, so it has to be higher there. Half of the beams find as much. */
const LONG_CHUNK = { fromSec: 12, sureAvgLogprob: -0.12 };
const MIN_AVG_LOGPROB = -1;
const MAX_NO_SPEECH = 0.6;

/** The encoder positions for a clip: its length and a margin, but at least `MIN_CONTEXT`; 0 for the whole window. */
export function contextFor(durationSec: number, fullContext: number): number {
  const wanted = (durationSec + CONTEXT_MARGIN_SEC) / POSITION_SEC;
  const positions = Math.max(MIN_CONTEXT, Math.ceil(wanted / CONTEXT_STEP) * CONTEXT_STEP);
  return positions >= fullContext ? 0 : positions;
}

/**
 * The attempts in order; the last one is for a chunk of which the others give no text. A temperature above 0 from the
 * client is used as it is.
 *
 * The first attempt is greedy and writes no times, which makes it faster and no less accurate. The second follows several
 * texts and lets the decoder write times, as the reference code does: it then goes on behind the end of a text that it
 * stopped too early, and seldom loops. Its audio is encoded already. An encoder window that is cut to the clip is several
 * times faster but can send the decoder into a loop, so the last attempt has the full window.
 *
 * A draft has the first attempt only.
 * @param beams texts that are followed side by side once the audio is known to be difficult
 */
export function attemptsFor(
  durationSec: number,
  model: Pick<ModelInfo, 'audioContext' | 'textContext'>,
  { temperature, beams, draft = false }: { temperature: number; beams: number; draft?: boolean },
): [Attempt, ...Attempt[]] {
  // No speaker reaches 14 tokens a second for long. A script with several bytes a character may, and is retried without
  // a cap.
  const most = Math.floor(model.textContext / 2) - TAKEN_BY_PROMPT;
  const maxTokens = Math.min(Math.ceil(24 + 14 * durationSec), most);
  const audioContext = contextFor(durationSec, model.audioContext);
  const first: Attempt = { temperature, audioContext, maxTokens, beams: 1, times: false };
  if (draft) return [first];
  const doubt = temperature === 0 && beams > 1 ? { doubt: doubtOf(durationSec, beams) } : {};
  const second = { ...first, maxTokens: 0, beams, times: true };
  const looks = [{ ...first, ...doubt }, second] as const;
  return audioContext === 0 ? [...looks] : [...looks, { ...second, audioContext: 0 }];
}

function doubtOf(durationSec: number, beams: number): Doubt {
  const isLong = durationSec >= LONG_CHUNK.fromSec;
  return {
    least: MIN_AVG_LOGPROB,
    sure: isLong ? LONG_CHUNK.sureAvgLogprob : SURE_AVG_LOGPROB,
    beams: isLong ? Math.max(2, Math.ceil(beams / 2)) : beams,
  };
}

/** Whether an accepted text gets a second look where it had none. */
export function isInDoubt({ avgLogprob }: Pick<Outcome, 'avgLogprob'>, { doubt }: Attempt): boolean {
  return doubt !== undefined && avgLogprob < doubt.sure;
}

/** The bytes of the text over their zlib-compressed size, which shows how repetitive the text is; 0 for no text. */
export function compressionRatio(text: string): number {
  const bytes = Buffer.from(text);
  return bytes.length === 0 ? 0 : bytes.length / deflateSync(bytes).length;
}

/**
 * True when the decoder is caught in a loop: it repeats its last words faster than people speak. A refrain or a drill
 * compresses as well as a loop, but has the pace of speech.
 */
export function isLoop({ text, tokens }: Pick<Outcome, 'text' | 'tokens'>, durationSec: number): boolean {
  return isRepetitive(text) && tokens > MAX_REPEATED_TOKENS_PER_SEC * durationSec;
}

function isRepetitive(text: string): boolean {
  return compressionRatio(text) > MAX_COMPRESSION;
}

/** Whether the text is one that the reference code takes, as far as its log probability goes. */
export function isSure({ avgLogprob }: Pick<Outcome, 'avgLogprob'>): boolean {
  return avgLogprob >= MIN_AVG_LOGPROB;
}

/**
 * Judges an attempt. `silence` means no speech: an unsure text and a high probability of no speech.
 * @param durationSec the length of the chunk
 * @param speechSec the seconds of it in which someone speaks; 0 where a short text is no reason to try again
 */
export function judge(
  outcome: Outcome,
  attempt: Attempt,
  { durationSec, speechSec }: { durationSec: number; speechSec: number },
): Verdict {
  const unsure = !isSure(outcome);
  if (outcome.noSpeechProb > MAX_NO_SPEECH && unsure) return 'silence';
  const capped = attempt.maxTokens > 0 && outcome.tokens >= attempt.maxTokens;
  // Where the decoder writes times, a repetition at the pace of speech is real.
  const repeated = attempt.times ? isLoop(outcome, durationSec) : isRepetitive(outcome.text);
  // Without times the decoder sometimes stops after the first sentence. With times it goes on there, so that a short
  // text is what was said.
  const sparse = !attempt.times && speechSec > SPARSE_FROM_SEC && isFarTooShort(outcome.text, speechSec);
  return unsure || capped || repeated || sparse ? 'retry' : 'accept';
}
