/**
 * An utterance: what one speaker says until a pause. While it goes on, the speech so far is decoded repeatedly, and the
 * words that stay the same are sent as partial text. The final text is computed early, during the silence that may end
 * the utterance. Both use the slot only while it is free and yield to every request, so they cost others nothing. Once
 * the utterance has ended, its text waits for the slot like a request.
 */
import { onAbort } from '../../abort.ts';
import type { Hold, Slot } from '../../engine/slot.ts';
import { lent, SlotHandover } from '../../engine/slot-handover.ts';
import type { TranscriptionRequest } from '../request.ts';
import type { Transcript, TranscriptionDeps } from '../session.ts';
import { WINDOW_SEC } from '../speech/voice-activity.ts';
import { transcribeExcerpt } from './excerpt-transcription.ts';
import type { Excerpt } from './live-audio.ts';
import { createStableText, type Delay } from './stable-text.ts';

export interface UtteranceDeps {
  transcription: TranscriptionDeps;
  slot: Pick<Slot, 'take' | 'status'>;
  /** The client, as `networkOf` names it. */
  network: string;
  /** Takes the slot, and waits for it at most `waitMs`. @throws GatewayError `slot_busy` */
  takeWaiting(
    request: { requestId: string; network: string; waitMs: number },
    signal: AbortSignal,
  ): Promise<Hold>;
  /** The longest wait for the slot, from the end of an utterance. */
  waitMs: number;
}

/** How far the speech has come. */
export interface Progress {
  /** The windows so far. */
  windows: number;
  /** As in `UtteranceDetector`. */
  silence: number;
  said: number;
  excerpt(): Excerpt;
}

export interface UtteranceOutcome extends Transcript {
  /** The text after what was sent before. */
  rest: string;
  /** Milliseconds from the end of the utterance until its computation had the slot; 0 when it had begun before. */
  slotWaitMs: number;
  /** The slot, where it was to be kept and could be had. Its owner frees it. */
  slot: SlotHandover;
}

interface UtteranceOptions {
  id: string;
  start: number;
  request: TranscriptionRequest;
  /** Whether the final text has times of words. */
  timed: boolean;
  delay: Delay;
  /** The windows of silence after which more silence brings no speech to the audio of the final text. */
  trailing: number;
  signal: AbortSignal;
  onDelta(text: string): void;
}

/** The least new audio of a partial text, ms. */
const PACE_MS: Readonly<Record<Delay, number>> = { minimal: 200, low: 250, medium: 250, high: 400, xhigh: 0 };
/** The same until `minimal` has sent a word, ms; it does not pause between texts then. */
const FIRST_PACE_MS = 128;
/** Longer speech is several chunks, and decoding all of them again would cost more and more. */
const LONGEST_SEC = 28;
/** After this many windows of silence a partial text has nothing new. */
const PAUSE = 3;

/** A text that is computed before the utterance has ended. */
interface EarlyDecoding {
  kind: 'partial' | 'final';
  /** As in `Progress`, of the audio that it has. */
  said: number;
  stop: AbortController;
  hold: Hold | null;
  /** False while it gives its slot to any request. */
  keepsSlot: boolean;
  /** Called when it needs the slot no more. */
  over(hold: Hold): void;
  /** Null when it gave way or failed. */
  result: Promise<Transcript | null>;
}

export class Utterance {
  readonly id: string;
  readonly start: number;
  readonly #options: UtteranceOptions;
  readonly #deps: UtteranceDeps;
  readonly #stable: ReturnType<typeof createStableText>;
  /** At most one text is computed early at a time; the next one stops the one before. */
  #running: EarlyDecoding | null = null;
  #isQuick: boolean;
  #decodedTo: number;
  #nextPartialAt = 0;

  constructor(options: UtteranceOptions, deps: UtteranceDeps) {
    this.id = options.id;
    this.start = options.start;
    this.#options = options;
    this.#deps = deps;
    this.#stable = createStableText(options.delay);
    this.#isQuick = options.delay === 'minimal';
    this.#decodedTo = options.start;
  }

  /** Decodes what was said so far, if it is time to. */
  listen(progress: Progress): void {
    const { windows, silence, said } = progress;
    const { delay, trailing } = this.#options;
    const isLong = (windows - this.start) * WINDOW_SEC > LONGEST_SEC;
    if (this.#running?.kind === 'final' && this.#running.said !== said) void this.abandon();
    if (isLong || said === 0) return;
    if (silence >= trailing) {
      if (this.#running?.kind === 'final' || (this.#running === null && !this.#isIdle())) return;
      void this.#beginFinal(progress);
    } else if (this.#running === null && delay !== 'xhigh' && silence < PAUSE && this.#isIdle()) {
      const newMs = (windows - this.#decodedTo) * WINDOW_SEC * 1000;
      const isDue = newMs >= (this.#isQuick ? FIRST_PACE_MS : PACE_MS[delay]);
      if (isDue && performance.now() >= this.#nextPartialAt) void this.#sendPartial(progress);
    }
  }

  /**
   * Ends the utterance, and resolves with its text.
   * @param before the utterances before, which come first
   * @param keepsSlot whether the slot stays held when the text is there
   */
  async end(
    excerpt: Excerpt,
    said: number,
    before: Promise<unknown>,
    keepsSlot: boolean,
  ): Promise<UtteranceOutcome> {
    const { id, request, timed, signal } = this.#options;
    const { network, waitMs, takeWaiting, transcription } = this.#deps;
    const endedAt = performance.now();
    let slotWaitMs = 0;
    const slot = new SlotHandover();
    const over = keepsSlot ? (hold: Hold) => slot.keep(hold) : free;
    let transcript = await this.#earlyText(said, over);
    if (transcript === null) {
      slot[Symbol.dispose]();
      await this.abandon();
      await before;
      signal.throwIfAborted();
      const takeSlot = async () => {
        const leftMs = Math.max(0, waitMs - (performance.now() - endedAt));
        const hold = await takeWaiting({ requestId: id, network, waitMs: leftMs }, signal);
        slotWaitMs = performance.now() - endedAt;
        return lent(hold, over);
      };
      const asked = { request, requestId: id, timed, takeSlot, signal };
      transcript = await transcribeExcerpt(excerpt, asked, transcription).catch((error) => {
        slot[Symbol.dispose]();
        throw error;
      });
    } else if (keepsSlot) this.#keepIfFree(slot);
    const rest = this.#stable.end(transcript.segments.flatMap(({ words }) => words));
    return { ...transcript, slotWaitMs, rest, slot };
  }

  /** Stops everything, and resolves when it has stopped. */
  async abandon(): Promise<void> {
    const mine = this.#running;
    this.#running = null;
    mine?.stop.abort(new Error('what was said so far is decoded anew'));
    await mine?.result;
  }

  async #sendPartial(progress: Progress): Promise<void> {
    const startedAt = performance.now();
    this.#decodedTo = progress.windows;
    const mine = this.#beginEarly('partial', progress);
    const partial = await mine.result;
    if (this.#running !== mine) return; // something else has begun in its place
    this.#running = null;
    const now = performance.now();
    const words = partial?.segments.flatMap((segment) => segment.words);
    const delta = words === undefined ? '' : this.#stable.update(words);
    if (delta !== '') {
      this.#isQuick = false;
      this.#options.onDelta(delta);
    }
    if (!this.#isQuick) this.#nextPartialAt = now + (now - startedAt) / 2;
  }

  async #beginFinal(progress: Progress): Promise<void> {
    const mine = this.#beginEarly('final', progress);
    if ((await mine.result) === null && this.#running === mine) this.#running = null;
  }

  #beginEarly(kind: EarlyDecoding['kind'], { said, excerpt }: Progress): EarlyDecoding {
    const work = { kind, said, excerpt: excerpt(), before: this.abandon() };
    this.#running = decodeEarly(work, this.#options, this.#deps);
    return this.#running;
  }

  /** The text that was computed in the closing silence, if it still holds. */
  async #earlyText(said: number, over: (hold: Hold) => void): Promise<Transcript | null> {
    const mine = this.#running;
    if (mine?.kind !== 'final' || mine.said !== said) return null;
    mine.keepsSlot = true;
    mine.over = over;
    mine.hold?.keep();
    const result = await mine.result;
    if (result !== null && this.#running === mine) this.#running = null;
    return result;
  }

  #isIdle(): boolean {
    return this.#deps.slot.status().holder === null;
  }

  /** The text may have been there before the utterance ended, and then it holds nothing any more. */
  #keepIfFree(slot: SlotHandover): void {
    const hold = slot.takeOver() ?? (this.#isIdle() ? this.#deps.slot.take('asr', this.id) : null);
    if (hold !== null) slot.keep(hold);
  }
}

const free = (hold: Hold) => hold[Symbol.dispose]();

/** @param work what is decoded, when `before` has given back the slot */
function decodeEarly(
  work: Pick<EarlyDecoding, 'kind' | 'said'> & { excerpt: Excerpt; before: Promise<void> },
  { id, request, timed, signal }: UtteranceOptions,
  deps: UtteranceDeps,
): EarlyDecoding {
  const { kind, said, excerpt, before } = work;
  const stop = new AbortController();
  // A client may have left while its audio was searched for speech.
  const leaving = onAbort(signal, () => stop.abort(signal.reason));
  const takeSlot = async () => {
    await before;
    decoding.hold = deps.slot.take('asr', id, { givesWay: !decoding.keepsSlot });
    return lent(decoding.hold, (hold) => decoding.over(hold));
  };
  const asked = {
    request,
    requestId: id,
    draft: kind === 'partial',
    timed: timed && kind === 'final',
    takeSlot,
    signal: stop.signal,
  };
  const decoding: EarlyDecoding = {
    kind,
    said,
    stop,
    hold: null,
    keepsSlot: false,
    over: free,
    // A text that gave way or failed is lost; the final one says what failed.
    result: transcribeExcerpt(excerpt, asked, deps.transcription)
      .catch(() => null)
      .finally(() => leaving[Symbol.dispose]()),
  };
  return decoding;
}
