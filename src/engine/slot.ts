/**
 * The one inference slot of the gateway (contract 3). The request that holds it runs, and every other request is
 * refused at once. There is no queue, so a client learns within milliseconds whether it is being served.
 */

import type { Category } from '../category.ts';
import { GatewayError } from '../errors.ts';

/** The state of the slot. When it is free, `holder` and `requestId` are null and `heldForMs` is 0. */
export interface SlotStatus {
  holder: Category | null;
  heldForMs: number;
  requestId: string | null;
}

/** The slot while a request holds it. Disposing frees the slot; a second disposal does nothing. */
export interface Hold extends Disposable {
  /** Aborts when the operator stops the request, and when the request has held the slot for too long. */
  readonly signal: AbortSignal;
}

export interface Slot {
  status(): SlotStatus;
  /** Checks without taking the slot. @throws GatewayError `slot_busy` when the slot is held */
  assertFree(): void;
  /** Takes the slot. @throws GatewayError `slot_busy` when the slot is held */
  take(category: Category, requestId: string): Hold;
  /** Aborts the signal of the holder, which then frees the slot when it has ended. False when the slot is free. */
  stopHolder(): boolean;
}

const RETRY_AFTER_SEC = 5;

export interface SlotOptions {
  /** Milliseconds after which the signal of a holder aborts; no limit when absent. */
  maxHoldMs?: number;
  now?: () => number;
  /** Called with the request that has taken the slot, as `asr ID`, and with '' when the slot is free again. */
  onChange?(holder: string): void;
}

export function createSlot({
  maxHoldMs,
  now = () => performance.now(),
  onChange = () => undefined,
}: SlotOptions = {}): Slot {
  let held: { by: Category; since: number; requestId: string; stop: AbortController } | null = null;

  const status = (): SlotStatus =>
    held === null
      ? { holder: null, heldForMs: 0, requestId: null }
      : { holder: held.by, heldForMs: Math.round(now() - held.since), requestId: held.requestId };

  const assertFree = (): void => {
    const { holder, heldForMs } = status();
    if (holder === null) return;
    throw new GatewayError(
      'slot_busy',
      { holder, seconds: RETRY_AFTER_SEC },
      { retryAfterSec: RETRY_AFTER_SEC, details: { heldBy: holder, heldForMs } },
    );
  };

  return {
    status,
    assertFree,
    take(category, requestId) {
      assertFree();
      const mine = { by: category, since: now(), requestId, stop: new AbortController() };
      held = mine;
      onChange(`${category} ${requestId}`);
      const late =
        maxHoldMs &&
        setTimeout(
          () => mine.stop.abort(new GatewayError('held_too_long', { seconds: maxHoldMs / 1000 })),
          maxHoldMs,
        );
      return {
        signal: mine.stop.signal,
        [Symbol.dispose]() {
          clearTimeout(late);
          if (held !== mine) return;
          held = null;
          onChange('');
        },
      };
    },
    stopHolder() {
      const reason = new GatewayError('stopped_by_operator', {});
      held?.stop.abort(reason);
      return held !== null;
    },
  };
}
