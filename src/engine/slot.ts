/**
 * The one inference slot of the gateway (contract 3). The request that holds it runs, and every other request is
 * refused at once, so a client learns within milliseconds whether it is being served. Only requests that ask for it
 * wait (`waiting-line.ts`).
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
  /** From now on the holder gives way no more. False when it has given way already. */
  keep(): boolean;
  /** From now on another request is the one that holds the slot. */
  pass(category: Category, requestId: string): void;
}

/**
 * A holder that `givesWay` does work that may be lost, such as a text of speech that still goes on. For every other
 * request the slot is free: one that takes it aborts this holder, whose computation stops within milliseconds on a CPU.
 */
export interface TakeOptions {
  givesWay?: boolean;
}

export type Slot = ReturnType<typeof createSlot>;

const RETRY_AFTER_SEC = 5;

export interface SlotOptions {
  /** Milliseconds after which the signal of a holder aborts; no limit when absent. */
  maxHoldMs?: number;
  now?: () => number;
  /** Called with the id of the request that has taken the slot, and with null when the slot is free again. */
  onChange?: ((requestId: string | null) => void) | undefined;
}

interface Holder {
  by: Category;
  since: number;
  requestId: string;
  givesWay: boolean;
  stop: AbortController;
}

export function createSlot({
  maxHoldMs,
  now = () => performance.now(),
  onChange = () => undefined,
}: SlotOptions = {}) {
  const listeners: (() => void)[] = [];
  let held: Holder | null = null;

  const status = (): SlotStatus =>
    held === null
      ? { holder: null, heldForMs: 0, requestId: null }
      : { holder: held.by, heldForMs: Math.round(now() - held.since), requestId: held.requestId };

  const isFree = () => held?.givesWay ?? true;

  const assertFree = (): void => {
    const { holder, heldForMs } = status();
    if (holder === null || isFree()) return;
    throw busy(holder, heldForMs);
  };

  const busy = (holder: Category, heldForMs: number) =>
    new GatewayError(
      'slot_busy',
      { holder, seconds: RETRY_AFTER_SEC },
      { retryAfterSec: RETRY_AFTER_SEC, details: { heldBy: holder, heldForMs } },
    );

  return {
    status,
    /** True when a request can take the slot, also from a holder that gives way. */
    isFree,
    /** Checks without taking the slot. @throws GatewayError `slot_busy` when the slot is not free */
    assertFree,
    /**
     * Takes the slot. A holder that gives way takes it from no other one.
     * @throws GatewayError `slot_busy` when the slot is held
     */
    take(category: Category, requestId: string, { givesWay = false }: TakeOptions = {}): Hold {
      if (givesWay && held !== null) throw busy(held.by, Math.round(now() - held.since));
      assertFree();
      held?.stop.abort(new GatewayError('slot_busy', { holder: category, seconds: RETRY_AFTER_SEC }));
      const mine: Holder = { by: category, since: now(), requestId, givesWay, stop: new AbortController() };
      held = mine;
      onChange(requestId);
      const late =
        maxHoldMs &&
        setTimeout(
          () => mine.stop.abort(new GatewayError('held_too_long', { seconds: maxHoldMs / 1000 })),
          maxHoldMs,
        );
      return {
        signal: mine.stop.signal,
        keep() {
          mine.givesWay = false;
          return held === mine;
        },
        pass(by, next) {
          Object.assign(mine, { by, requestId: next });
          if (held === mine) onChange(next);
        },
        [Symbol.dispose]() {
          clearTimeout(late);
          if (held !== mine) return;
          held = null;
          onChange(null);
          for (const listener of listeners) listener();
        },
      };
    },
    /** Aborts the signal of the holder, which then frees the slot when it has ended. False when the slot is free. */
    stopHolder(): boolean {
      const reason = new GatewayError('stopped_by_operator', {});
      held?.stop.abort(reason);
      return held !== null;
    },
    /** `listener` is called each time when the slot has become free, in the same turn. It may take the slot. */
    onFree: (listener: () => void) => void listeners.push(listener),
  };
}
