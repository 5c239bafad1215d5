/**
 * The one inference slot of the gateway (contract 3): whoever holds it runs, everyone else is refused at once.
 * There is no queue, so that a client always learns within milliseconds whether it is being served.
 */

import type { Category } from '../category.ts';
import { GatewayError } from '../errors.ts';

export interface SlotStatus {
  holder: Category | null;
  heldForMs: number;
  requestId: string | null;
}

/** Disposing twice is harmless; only the first counts. */
export interface Hold extends Disposable {
  /** Aborted when the operator stops whoever holds the slot, and when it is held for too long. */
  readonly signal: AbortSignal;
}

export interface Slot {
  status(): SlotStatus;
  /** Throws the `slot_busy` error when somebody holds the slot; takes nothing. */
  assertFree(): void;
  /** Takes the slot or throws `slot_busy`. */
  take(category: Category, requestId: string): Hold;
  /** Asks the holder to stop; the slot is free when it has. False when nobody holds it. */
  stopHolder(): boolean;
}

const RETRY_AFTER_SEC = 5;

export interface SlotOptions {
  /** Milliseconds after which a holder is told to stop, whatever it is doing; no limit when absent. */
  maxHoldMs?: number;
  now?: () => number;
}

export function createSlot({ maxHoldMs, now = () => performance.now() }: SlotOptions = {}): Slot {
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
          if (held === mine) held = null;
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
