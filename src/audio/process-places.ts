/**
 * Bounds the processes of ffmpeg. A request waits for a place, because most that hold one only look whether their file
 * can be decoded: they have the slot soon, or close the file and wait for the slot without it.
 */
import type { Budgets } from '../budgets.ts';
import { GatewayError } from '../errors.ts';

export interface ProcessPlaces {
  /**
   * Resolves when a process may be started. Disposing frees its place.
   * @throws GatewayError `overloaded` after the longest wait; `signal.reason` after an abort
   */
  take(signal?: AbortSignal): Promise<Disposable>;
}

type Places = Pick<Budgets['ffmpeg'], 'maxProcesses' | 'maxWaitMs'>;

export function createProcessPlaces({ maxProcesses, maxWaitMs }: Places): ProcessPlaces {
  let taken = 0;
  const waiting = new Set<() => void>();

  function place(): Disposable {
    taken += 1;
    let held = true;
    return {
      [Symbol.dispose]() {
        if (!held) return;
        held = false;
        taken -= 1;
        const [next] = waiting;
        next?.();
      },
    };
  }

  return {
    async take(signal) {
      signal?.throwIfAborted();
      if (taken < maxProcesses) return place();
      return new Promise((resolve, reject) => {
        const settle = (settled: () => void) => {
          waiting.delete(enter);
          clearTimeout(late);
          signal?.removeEventListener('abort', leave);
          settled();
        };
        const enter = () => settle(() => resolve(place()));
        const leave = () => settle(() => reject(signal?.reason));
        const late = setTimeout(() => settle(() => reject(new GatewayError('overloaded', {}))), maxWaitMs);
        waiting.add(enter);
        signal?.addEventListener('abort', leave);
      });
    },
  };
}
