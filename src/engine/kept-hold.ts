/**
 * Passes the slot from one request to the next, so that it is not free in between: the first one ends, and who comes
 * after it takes the hold over. What nobody takes over is freed.
 */
import type { Hold } from './slot.ts';

export class KeptHold implements Disposable {
  #hold: Hold | null = null;

  keep(hold: Hold): void {
    this.#hold = hold;
  }

  /** Who takes it over frees it. Null where there is none. */
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
