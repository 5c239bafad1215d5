/**
 * Bounds the processes of ffmpeg. A request waits for a place, because most that hold one only look whether their file
 * can be decoded: they have the slot soon, or close the file and wait for the slot without it. When all places are taken,
 * the address that holds most gives its newest one up to an address that holds at least two fewer, and a place that
 * becomes free goes to the address that holds fewest. So one address cannot keep the others from ffmpeg.
 */
import { onAbort } from '../abort.ts';
import { GatewayError } from '../errors.ts';
import type { Budgets } from './budgets.ts';
import { givingWay, shares } from './network.ts';

export interface ProcessPlace extends Disposable {
  /** Aborts when the place has gone to another client; its process must end then. */
  readonly signal: AbortSignal;
}

export interface ProcessPlaces {
  /**
   * Resolves when a process may be started. Disposing frees its place.
   * @param network the client, as `networkOf` names it
   * @throws GatewayError `overloaded` after the longest wait; `signal.reason` after an abort
   */
  take(network: string, signal?: AbortSignal): Promise<ProcessPlace>;
}

type Places = Pick<Budgets['ffmpeg'], 'maxProcesses' | 'maxWaitMs'>;

interface Holder {
  network: string;
  giveUp(reason: GatewayError): void;
}

export function createProcessPlaces({ maxProcesses, maxWaitMs }: Places): ProcessPlaces {
  /** The oldest first. */
  const taken = new Set<Holder>();
  const waiting = new Set<{ network: string; enter(): void }>();

  function place(network: string): ProcessPlace {
    const replaced = new AbortController();
    const holder = { network, giveUp: (reason: GatewayError) => replaced.abort(reason) };
    taken.add(holder);
    return {
      signal: replaced.signal,
      [Symbol.dispose]() {
        if (!taken.delete(holder)) return;
        const held = shares(taken);
        const [next] = [...waiting].toSorted((a, b) => held(a) - held(b));
        next?.enter();
      },
    };
  }

  function makeRoom(network: string): boolean {
    const newest = givingWay([...taken], shares(taken), { network }).at(-1);
    if (newest === undefined) return false;
    taken.delete(newest);
    newest.giveUp(new GatewayError('overloaded', {}));
    return true;
  }

  return {
    async take(network, signal) {
      signal?.throwIfAborted();
      if (taken.size < maxProcesses || makeRoom(network)) return place(network);
      return new Promise((resolve, reject) => {
        const settle = (settled: () => void) => {
          waiting.delete(own);
          clearTimeout(late);
          leaving[Symbol.dispose]();
          settled();
        };
        const own = { network, enter: () => settle(() => resolve(place(network))) };
        const late = setTimeout(() => settle(() => reject(new GatewayError('overloaded', {}))), maxWaitMs);
        waiting.add(own);
        const leaving = onAbort(signal, () => settle(() => reject(signal?.reason)));
      });
    },
  };
}
