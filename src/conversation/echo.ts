/**
 * A microphone near a loudspeaker hears the assistant, which must not interrupt itself. Input counts as its echo, and not
 * as speech, when it resembles what was played a moment ago (normalized cross-correlation over the possible delays).
 * Someone who talks over the echo is louder than it and sounds different, so they are heard at once.
 */
import { joined, SAMPLE_RATE } from '../audio/decoder.ts';
import { powerOf } from '../transcription/speech/level.ts';
import { WINDOW_SAMPLES } from '../transcription/speech/voice-activity.ts';

/** Hz. The lowest kilohertz tells voices apart well enough, and the work grows with the square of the rate. */
const RATE = 2000;
const STEP = SAMPLE_RATE / RATE;
/** The samples that are compared: those of the last six windows. */
const COMPARED = (6 * WINDOW_SAMPLES) / STEP;
/** The longest way through network, player, loudspeaker and microphone and back. */
const LONGEST_DELAY_MS = 800;
const DELAYS = (LONGEST_DELAY_MS / 1000) * RATE;
/** The part of the power, 0..1, that what was played must explain in an echo that is much quieter than it. */
const EXPLAINED = 0.35;
/** The same for any other: two voices may resemble each other for a moment. */
const EXPLAINED_LOUD = 0.7;
/** An echo is much quieter at this part of the power (-6 dB). */
const QUIET = 0.25;
/** Less certain windows are not speech anyway. */
const LEAST_PROBABILITY = 0.1;
/** Audio that is further ahead is not remembered: ten minutes. */
const AHEAD = 600 * RATE;
/** What was played longer ago is forgotten, also while nothing is heard. Input comes in pieces that are shorter. */
const REMEMBERED_MS = 10_000;

/** Pieces of the played audio, each with its start time. */
interface Piece {
  startMs: number;
  samples: Float32Array;
}

export class Echo {
  readonly #now: () => number;
  #pieces: Piece[] = [];
  readonly #reduceInput = createReduction();
  #reducePlayed = createReduction();
  #heard = new Float32Array(COMPARED);
  /** When the last of the audio that was given to `play` will have been played. */
  #endMs = 0;

  /** @param now the clock, ms */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Takes audio, 16 kHz, that is played when what came before is over. A player is taken not to pause. */
  play(samples: Float32Array): void {
    const now = this.#now();
    this.#forget(now - REMEMBERED_MS);
    if (now > this.#endMs) this.#endMs = now;
    const reduced = this.#reducePlayed(samples);
    if ((this.#endMs - now) * RATE > AHEAD * 1000 || reduced.length === 0) return;
    this.#pieces.push({ startMs: this.#endMs, samples: reduced });
    this.#endMs += (reduced.length / RATE) * 1000;
  }

  /** The player drops everything that it has not played yet. */
  stop(): void {
    const now = this.#now();
    this.#endMs = Math.min(this.#endMs, now);
    const played = ({ startMs, samples }: Piece) => samples.subarray(0, ((now - startMs) * RATE) / 1000);
    this.#pieces = this.#pieces
      .filter(({ startMs }) => startMs < now)
      .map((piece) => ({ ...piece, samples: played(piece) }));
    this.#reducePlayed = createReduction();
  }

  /** Sets the probabilities of windows that are echo to 0. The last sample was heard just now. */
  without(samples: Float32Array, probabilities: Float32Array): Float32Array {
    const now = this.#now();
    return probabilities.map((probability, i) => {
      const window = this.#reduceInput(samples.subarray(i * WINDOW_SAMPLES, (i + 1) * WINDOW_SAMPLES));
      this.#heard.copyWithin(0, window.length);
      this.#heard.set(window, COMPARED - window.length);
      const agoMs = ((probabilities.length - 1 - i) * WINDOW_SAMPLES * 1000) / SAMPLE_RATE;
      return probability >= LEAST_PROBABILITY && this.#isEcho(now - agoMs) ? 0 : probability;
    });
  }

  /** Whether what was heard up to this time is explained by what was played before. */
  #isEcho(endMs: number): boolean {
    const played = this.#playedBefore(endMs);
    return played !== null && isExplained(this.#heard, played);
  }

  /** What may be heard at this time; null where nothing was played. */
  #playedBefore(endMs: number): Float32Array | null {
    const length = COMPARED + DELAYS;
    const startMs = endMs - (length / RATE) * 1000;
    this.#forget(startMs);
    const played = new Float32Array(length);
    let isEmpty = true;
    for (const piece of this.#pieces) {
      const at = Math.round(((piece.startMs - startMs) * RATE) / 1000);
      if (at >= length) break;
      const from = Math.max(0, -at);
      const part = piece.samples.subarray(from, Math.max(from, length - at));
      played.set(part, at + from);
      if (part.length > 0) isEmpty = false;
    }
    return isEmpty ? null : played;
  }

  /** Forgets the pieces that were over before this time. */
  #forget(beforeMs: number): void {
    const isOver = ({ startMs, samples }: Piece) => startMs + (samples.length / RATE) * 1000 < beforeMs;
    while (this.#pieces[0] !== undefined && isOver(this.#pieces[0])) this.#pieces.shift();
  }
}

/** Whether a stretch of `played`, at some delay, explains what was heard. */
function isExplained(heard: Float32Array, played: Float32Array): boolean {
  const all = powerOf(heard);
  let own = powerOf(played.subarray(0, heard.length));
  for (let at = 0; at + heard.length <= played.length; at += 1) {
    let product = 0;
    for (let i = 0; i < heard.length; i += 1) product += (heard[i] as number) * (played[at + i] as number);
    const needed = all < QUIET * own ? EXPLAINED : EXPLAINED_LOUD;
    if (own > 0 && product ** 2 >= needed * own * all) return all > 0;
    own += (played[at + heard.length] ?? 0) ** 2 - (played[at] as number) ** 2;
  }
  return false;
}

/** Brings samples as they come from 16 kHz to `RATE`, and filters out what that cannot hold. */
function createReduction(): (samples: Float32Array) => Float32Array {
  let before = 0;
  let rest: Float32Array = new Float32Array(0);
  return (samples) => {
    const all = joined([rest, samples]);
    const count = Math.floor(all.length / STEP);
    rest = all.slice(count * STEP);
    return Float32Array.from({ length: count }, (_, i) => {
      let sum = 0;
      for (let at = i * STEP; at < (i + 1) * STEP; at += 1) sum += all[at] as number;
      const mean = sum / STEP;
      const smooth = (mean + before) / 2;
      before = mean;
      return smooth;
    });
  };
}
