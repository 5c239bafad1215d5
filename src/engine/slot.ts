/**
 * The one inference slot of the gateway (contract 3): whoever holds it runs, everyone else is refused at once.
 * There is no queue, so that a client always learns within milliseconds whether it is being served.
 */
import { GatewayError } from '../errors.ts';

export type Capability = 'asr' | 'tts' | 'llm';

export interface SlotStatus {
  holder: Capability | null;
  heldForMs: number;
}

export interface Slot {
  status(): SlotStatus;
  /** Throws the `slot_busy` error when somebody holds the slot; takes nothing. */
  assertFree(): void;
  /** Takes the slot or throws `slot_busy`. Disposing twice is harmless; only the first counts. */
  take(capability: Capability): Disposable;
}

const RETRY_AFTER_SEC = 5;

export function createSlot(now: () => number = () => performance.now()): Slot {
  let held: { by: Capability; since: number } | null = null;

  const status = (): SlotStatus =>
    held === null
      ? { holder: null, heldForMs: 0 }
      : { holder: held.by, heldForMs: Math.round(now() - held.since) };

  const assertFree = (): void => {
    const { holder, heldForMs } = status();
    if (holder === null) return;
    throw new GatewayError(
      'network',
      `The inference slot is busy (${holder}); retry in ${RETRY_AFTER_SEC} s`,
      {
        code: 'slot_busy',
        retryAfterSec: RETRY_AFTER_SEC,
        details: { held_by: holder, held_for_ms: heldForMs },
      },
    );
  };

  return {
    status,
    assertFree,
    take(capability) {
      assertFree();
      const mine = { by: capability, since: now() };
      held = mine;
      return {
        [Symbol.dispose]() {
          if (held === mine) held = null;
        },
      };
    },
  };
}
