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
import type { TranscriptionDeps } from '../session.ts';
import { WINDOW_SEC } from '../speech/voice-activity.ts';
import { type ExcerptTranscript, transcribeExcerpt } from './excerpt-transcription.ts';
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

export interface UtteranceOutcome extends ExcerptTranscript {
  /** The text after what was sent before. */
  rest: string;
  /** Milliseconds from the end of the utterance until its computation had the slot; 0 when it had begun before. */
  slotWaitMs: number;
  /** The slot, where it was to be kept and could be had. Its owner frees it. */
  slot: SlotHandover;
}

export interface Utterance {
  readonly id: string;
  readonly start: number;
  /** Decodes what was said so far, if it is time to. */
  listen(progress: Progress): void;
  /**
   * Ends the utterance, and resolves with its text.
   * @param before the utterances before, which come first
   * @param keepsSlot whether the slot stays held when the text is there
   */
  end(
    excerpt: Excerpt,
    said: number,
    before: Promise<unknown>,
    keepsSlot: boolean,
  ): Promise<UtteranceOutcome>;
  /** Stops everything, and resolves when it has stopped. */
  abandon(): Promise<void>;
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
  result: Promise<ExcerptTranscript | null>;
}

export function createUtterance(options: UtteranceOptions, deps: UtteranceDeps): Utterance {
  const { id, start, request, timed, delay, trailing, signal } = options;
  const stable = createStableText(delay);
  const early = createEarlyDecodings(options, deps);
  let isQuick = delay === 'minimal';
  let decodedTo = start;
  let nextPartialAt = 0;

  async function sendPartial({ windows, said, excerpt }: Progress): Promise<void> {
    const startedAt = performance.now();
    decodedTo = windows;
    const mine = early.begin('partial', said, excerpt());
    const partial = await mine.result;
    if (!early.end(mine)) return; // something else has begun in its place
    const now = performance.now();
    const delta = partial === null ? '' : stable.update(partial.segments.flatMap(({ words }) => words));
    if (delta !== '') {
      isQuick = false;
      options.onDelta(delta);
    }
    if (!isQuick) nextPartialAt = now + (now - startedAt) / 2;
  }

  async function beginFinal({ said, excerpt }: Progress): Promise<void> {
    const mine = early.begin('final', said, excerpt());
    if ((await mine.result) === null) early.end(mine);
  }

  const isIdle = () => deps.slot.status().holder === null;

  /** The text may have been there before the utterance ended, and then it holds nothing any more. */
  function keepIfFree(slot: SlotHandover): void {
    const hold = slot.takeOver() ?? (isIdle() ? deps.slot.take('asr', id) : null);
    if (hold !== null) slot.keep(hold);
  }

  return {
    id,
    start,
    listen(progress) {
      const { windows, silence, said } = progress;
      const isLong = (windows - start) * WINDOW_SEC > LONGEST_SEC;
      if (early.running?.kind === 'final' && early.running.said !== said) void early.stop();
      if (isLong || said === 0) return;
      if (silence >= trailing) {
        if (early.running?.kind === 'final' || (early.running === null && !isIdle())) return;
        void beginFinal(progress);
      } else if (early.running === null && delay !== 'xhigh' && silence < PAUSE && isIdle()) {
        const newMs = (windows - decodedTo) * WINDOW_SEC * 1000;
        const isDue = newMs >= (isQuick ? FIRST_PACE_MS : PACE_MS[delay]);
        if (isDue && performance.now() >= nextPartialAt) void sendPartial(progress);
      }
    },
    async end(excerpt, said, before, keepsSlot) {
      const wait = waitForSlot(id, signal, deps);
      const slot = new SlotHandover();
      const over = keepsSlot ? (hold: Hold) => slot.keep(hold) : free;
      let transcript = await early.finalText(said, over);
      if (transcript === null) {
        slot[Symbol.dispose]();
        await early.stop();
        await before;
        signal.throwIfAborted();
        const takeSlot = async () => lent(await wait.takeSlot(), over);
        const asked = { request, requestId: id, timed, takeSlot, signal };
        transcript = await transcribeExcerpt(excerpt, asked, deps.transcription).catch((error) => {
          slot[Symbol.dispose]();
          throw error;
        });
      } else if (keepsSlot) keepIfFree(slot);
      const rest = stable.end(transcript.segments.flatMap(({ words }) => words));
      return { ...transcript, slotWaitMs: wait.slotWaitMs, rest, slot };
    },
    abandon: early.stop,
  };
}

/** Takes the slot for an utterance that ends now, and measures the wait for it. */
function waitForSlot(
  requestId: string,
  signal: AbortSignal,
  { network, waitMs, takeWaiting }: UtteranceDeps,
) {
  const endedAt = performance.now();
  const wait = {
    slotWaitMs: 0,
    async takeSlot(): Promise<Hold> {
      const leftMs = Math.max(0, waitMs - (performance.now() - endedAt));
      const hold = await takeWaiting({ requestId, network, waitMs: leftMs }, signal);
      wait.slotWaitMs = performance.now() - endedAt;
      return hold;
    },
  };
  return wait;
}

const free = (hold: Hold) => hold[Symbol.dispose]();

/** Runs at most one computation at a time; the next one stops the one before. */
function createEarlyDecodings(options: UtteranceOptions, deps: UtteranceDeps) {
  let running: EarlyDecoding | null = null;

  function begin(kind: EarlyDecoding['kind'], said: number, excerpt: Excerpt): EarlyDecoding {
    running = decodeEarly({ kind, said, excerpt, before: stop() }, options, deps);
    return running;
  }

  /** False when it was stopped before. */
  function end(decoding: EarlyDecoding): boolean {
    if (running !== decoding) return false;
    running = null;
    return true;
  }

  async function stop(): Promise<void> {
    const mine = running;
    running = null;
    mine?.stop.abort(new Error('what was said so far is decoded anew'));
    await mine?.result;
  }

  /** The text that was computed in the closing silence, if it still holds. */
  async function finalText(said: number, over: (hold: Hold) => void): Promise<ExcerptTranscript | null> {
    const mine = running;
    if (mine?.kind !== 'final' || mine.said !== said) return null;
    mine.keepsSlot = true;
    mine.over = over;
    mine.hold?.keep();
    const result = await mine.result;
    if (result !== null) end(mine);
    return result;
  }

  return {
    get running() {
      return running;
    },
    begin,
    end,
    stop,
    finalText,
  };
}

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
