/**
 * Passes the slot from one request to the next without freeing it in between. A hold that no request takes over is
 * freed.
 */
import type { Hold } from './slot.ts';

export class SlotHandover implements Disposable {
  #hold: Hold | null = null;

  keep(hold: Hold): void {
    this.#hold = hold;
  }

  /** The caller frees it. Null where there is none. */
  takeOver(): Hold | null {
    const hold = this.#hold;
    this.#hold = null;
    return hold;
  }

  [Symbol.dispose](): void {
    this.takeOver()?.[Symbol.dispose]();
  }
}

/** A hold at whose first end `over` is called in place of freeing the slot. */
export function lent(hold: Hold, over: (hold: Hold) => void): Hold {
  let isOver = false;
  return {
    ...hold,
    [Symbol.dispose]() {
      if (!isOver) over(hold);
      isOver = true;
    },
  };
}
