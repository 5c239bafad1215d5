/**
 * A semaphore that is fair by client network, for uploads, live sessions, processes, places in a queue and bytes of
 * memory. When all of it is taken, the network that holds most gives something up to a newcomer that would hold clearly
 * less. Otherwise the newcomer is refused, or waits. So no client keeps the others out.
 *
 * Each use says which holder of that network is evicted, and ends its work. Two limits are not made with it: wrong
 * keys are a rate limit (`key-guesses.ts`), and connections are too many to be searched (`connections.ts`).
 */
import { onAbort } from '../abort.ts';

export interface Holder {
  /** The client, as `networkOf` names it. */
  network: string;
}

/**
 * Whether a network that holds `held` gives way to one that would hold `after`. The second could not claim the place back
 * from the first, so two networks never take a place from each other in turn.
 */
export const mustShare = {
  places: (held: number, after: number) => held > after,
  /** Twice as much, because the holder that gives way may be of any size. */
  bytes: (held: number, after: number) => held >= 2 * after,
};

interface Options<T extends Holder> {
  /** The number of places, or of bytes. */
  most: number;
  unit?: keyof typeof mustShare;
  /** False for a holder that is never evicted. What it holds still counts for its network. */
  isEvictable?(holder: T): boolean;
  /**
   * Says which one is evicted; undefined = none.
   * @param candidates those of the network that holds most, the oldest first; empty when it need not share
   * @param after what the newcomer itself would hold
   */
  choose(candidates: readonly T[], newcomer: Holder, after: number): T | undefined;
  /** Ends the work of one whose place is already free. */
  evict(holder: T): void;
}

export class BoundedPlaces<T extends Holder> {
  readonly #options: Options<T>;
  /** What each one holds, the oldest first. */
  readonly #amounts = new Map<T, number>();
  readonly #waiting = new Set<{ network: string; enter(): void }>();
  #left: number;

  constructor(options: Options<T>) {
    this.#options = options;
    this.#left = options.most;
  }

  /** The oldest first. */
  holders(): T[] {
    return [...this.#amounts.keys()];
  }

  amountOf(holder: T): number {
    return this.#amounts.get(holder) ?? 0;
  }

  /** How much each network holds now. */
  shares(): (of: Holder) => number {
    const held = new Map<string, number>();
    for (const [{ network }, amount] of this.#amounts) held.set(network, (held.get(network) ?? 0) + amount);
    return ({ network }) => held.get(network) ?? 0;
  }

  /** True when this much is free, or another one would be evicted for it. */
  hasRoom(newcomer: Holder, amount = 1): boolean {
    return this.#left >= amount || this.#nextToEvict(newcomer, amount) !== undefined;
  }

  /** Evicts others until this much is free. False when none may be. */
  makeRoom(newcomer: Holder, amount = 1): boolean {
    while (this.#left < amount) {
      const next = this.#nextToEvict(newcomer, amount);
      if (next === undefined) return false;
      this.#free(next);
      this.#options.evict(next);
    }
    return true;
  }

  /** Takes a place, or more bytes. False when there is no room. */
  take(holder: T, amount = 1): boolean {
    if (!this.makeRoom(holder, amount)) return false;
    this.#left -= amount;
    this.#amounts.set(holder, this.amountOf(holder) + amount);
    return true;
  }

  /**
   * Takes a place now, or waits for one that is released: it goes to the network that holds least of those that wait.
   * False after a timeout. @throws `signal.reason` after an abort
   */
  async takeOrWait(holder: T, maxWaitMs: number, signal?: AbortSignal): Promise<boolean> {
    signal?.throwIfAborted();
    if (this.take(holder)) return true;
    return new Promise((resolve, reject) => {
      const settle = (how: () => void) => {
        this.#waiting.delete(own);
        clearTimeout(late);
        leaving[Symbol.dispose]();
        how();
      };
      const own = { network: holder.network, enter: () => settle(() => resolve(this.take(holder))) };
      const late = setTimeout(() => settle(() => resolve(false)), maxWaitMs);
      this.#waiting.add(own);
      const leaving = onAbort(signal, () => settle(() => reject(signal?.reason)));
    });
  }

  /** Frees all that it holds. Idempotent. */
  release(holder: T): void {
    if (!this.#free(holder) || this.#waiting.size === 0) return;
    const held = this.shares();
    const [next] = [...this.#waiting].toSorted((a, b) => held(a) - held(b));
    next?.enter();
  }

  #free(holder: T): boolean {
    this.#left += this.amountOf(holder);
    return this.#amounts.delete(holder);
  }

  #nextToEvict(newcomer: Holder, amount: number): T | undefined {
    const { unit = 'places', isEvictable = () => true, choose } = this.#options;
    const held = this.shares();
    const evictable = this.holders().filter(isEvictable);
    const most = Math.max(0, ...evictable.map(held));
    const candidates = mustShare[unit](most, held(newcomer) + amount)
      ? evictable.filter((holder) => held(holder) === most)
      : [];
    return choose(candidates, newcomer, this.amountOf(newcomer as T) + amount);
  }
}

/** The one with the largest measure, the first of equals. */
export function largestBy<T>(items: readonly T[], measure: (item: T) => number): T | undefined {
  return items.toSorted((a, b) => measure(b) - measure(a))[0];
}
