/**
 * What one speaker says until a pause. While it goes on, what was said so far is heard again and again, and the words
 * that stay the same are sent. In the silence that may end it, its final text is computed already. Both use the slot
 * only when it is free and give way to every request, so they cost others nothing. When the utterance has ended, its
 * text waits for the slot like a request.
 */
import { onAbort } from '../../abort.ts';
import type { Hold, Slot } from '../../engine/slot.ts';
import type { TranscriptionRequest } from '../request.ts';
import type { TranscriptionDeps } from '../session.ts';
import { WINDOW_SEC } from '../speech/voice-activity.ts';
import { type Hearing, hear } from './hearing.ts';
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
  /** As in `Turns`. */
  silence: number;
  said: number;
  excerpt(): Excerpt;
}

export interface UtteranceOutcome extends Hearing {
  /** The text after what was sent before. */
  rest: string;
  /** Milliseconds from the end of the utterance until its computation had the slot; 0 when it had begun before. */
  slotWaitMs: number;
}

export interface Utterance {
  readonly id: string;
  readonly start: number;
  /** Hears what was said so far, if it is time to. */
  listen(progress: Progress): void;
  /** Ends the utterance, and resolves with its text. @param before the utterances before, which come first */
  end(excerpt: Excerpt, said: number, before: Promise<unknown>): Promise<UtteranceOutcome>;
  /** Stops everything, and resolves when it has stopped. */
  abandon(): Promise<void>;
}

export interface UtteranceOptions {
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
/** Longer speech is heard in several chunks, and hearing it all again would cost more and more. */
const LONGEST_SEC = 28;
/** After this many windows of silence a partial text has nothing new. */
const PAUSE = 3;

interface Running {
  kind: 'partial' | 'final';
  said: number;
  stop: AbortController;
  hold: Hold | null;
  kept: boolean;
  result: Promise<Hearing | null>;
}

export function createUtterance(options: UtteranceOptions, deps: UtteranceDeps): Utterance {
  const { id, start, request, timed, delay, trailing, signal } = options;
  const stable = createStableText(delay);
  const paceWindows = PACE_MS[delay] / 1000 / WINDOW_SEC;
  let running: Running | null = null;
  let heardTo = start;
  let restUntil = 0;

  function begin(kind: Running['kind'], said: number, excerpt: Excerpt): Running {
    const stop = new AbortController();
    // A client may have left while its audio was searched for speech.
    const leaving = onAbort(signal, () => stop.abort(signal.reason));
    const before = stopRunning();
    const takeSlot = async () => {
      await before; // it has the slot until then
      mine.hold = deps.slot.take('asr', id, { givesWay: !mine.kept });
      return mine.hold;
    };
    const mine: Running = {
      ...{ kind, said, stop, hold: null, kept: false },
      // A text that gave way or failed is lost; the final one says what failed.
      result: hear(
        excerpt,
        {
          request,
          requestId: id,
          draft: kind === 'partial',
          timed: timed && kind === 'final',
          takeSlot,
          signal: stop.signal,
        },
        deps.transcription,
      )
        .catch(() => null)
        .finally(() => leaving[Symbol.dispose]()),
    };
    running = mine;
    return mine;
  }

  async function hearSoFar({ windows, said, excerpt }: Progress): Promise<void> {
    const startedAt = performance.now();
    heardTo = windows;
    const mine = begin('partial', said, excerpt());
    const heard = await mine.result;
    if (running !== mine) return; // something else has begun in its place
    running = null;
    const now = performance.now();
    restUntil = now + (now - startedAt) / 2;
    const delta = heard === null ? '' : stable.hear(heard.segments.flatMap(({ words }) => words));
    if (delta !== '') options.onDelta(delta);
  }

  async function foresee({ said, excerpt }: Progress): Promise<void> {
    const mine = begin('final', said, excerpt());
    if ((await mine.result) === null && running === mine) running = null;
  }

  async function stopRunning(): Promise<void> {
    const mine = running;
    running = null;
    mine?.stop.abort(new Error('what was said so far is heard anew'));
    await mine?.result;
  }

  /** The text that was computed in the closing silence, if it still holds. */
  async function foreseen(said: number): Promise<Hearing | null> {
    const mine = running;
    if (mine?.kind !== 'final' || mine.said !== said) return null;
    mine.kept = true;
    mine.hold?.keep();
    return await mine.result;
  }

  const isIdle = () => deps.slot.status().holder === null;

  return {
    id,
    start,
    listen(progress) {
      const { windows, silence, said } = progress;
      const isLong = (windows - start) * WINDOW_SEC > LONGEST_SEC;
      if (running?.kind === 'final' && running.said !== said) void stopRunning();
      if (isLong || said === 0) return;
      if (silence >= trailing) {
        if (running?.kind === 'final' || (running === null && !isIdle())) return;
        void foresee(progress);
      } else if (running === null && delay !== 'xhigh' && silence < PAUSE && isIdle()) {
        const isDue = windows - heardTo >= paceWindows && performance.now() >= restUntil;
        if (isDue) void hearSoFar(progress);
      }
    },
    async end(excerpt, said, before) {
      const endedAt = performance.now();
      let slotWaitMs = 0;
      const takeSlot = async () => {
        const leftMs = Math.max(0, deps.waitMs - (performance.now() - endedAt));
        const hold = await deps.takeWaiting({ requestId: id, network: deps.network, waitMs: leftMs }, signal);
        slotWaitMs = performance.now() - endedAt;
        return hold;
      };
      let hearing = await foreseen(said);
      if (hearing === null) {
        await stopRunning();
        await before;
        signal.throwIfAborted();
        hearing = await hear(
          excerpt,
          { request, requestId: id, timed, takeSlot, signal },
          deps.transcription,
        );
      }
      running = null;
      return { ...hearing, slotWaitMs, rest: stable.end(hearing.segments.flatMap(({ words }) => words)) };
    },
    abandon: stopRunning,
  };
}
