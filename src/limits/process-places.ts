/**
 * Bounds the processes of ffmpeg. A request waits for a place, up to a timeout, because most that hold one only look
 * whether their file can be decoded: they have the slot soon, or close the file and wait for the slot without it. The
 * newest process of the address that holds most is ended.
 */
import { GatewayError } from '../errors.ts';
import { BoundedPlaces } from './bounded-places.ts';
import type { Budgets } from './budgets.ts';

/** A place for one process. Disposing frees it. */
export interface ProcessPlace extends Disposable {
  /** Aborts when the place has gone to another client, and the process must end. */
  readonly signal: AbortSignal;
}

export type ProcessPlaces = ReturnType<typeof createProcessPlaces>;

export function createProcessPlaces(limits: Pick<Budgets['ffmpeg'], 'maxProcesses' | 'maxWaitMs'>) {
  const overloaded = () => new GatewayError('overloaded', {});
  const places = new BoundedPlaces<{ network: string; replaced: AbortController }>({
    most: limits.maxProcesses,
    choose: (candidates) => candidates.at(-1),
    evict: ({ replaced }) => replaced.abort(overloaded()),
  });
  return {
    /**
     * Resolves when a process may be started.
     * @param network the client, as `networkOf` names it
     * @throws GatewayError `overloaded` after the longest wait; `signal.reason` after an abort
     */
    async take(network: string, signal?: AbortSignal): Promise<ProcessPlace> {
      const holder = { network, replaced: new AbortController() };
      if (!(await places.takeOrWait(holder, limits.maxWaitMs, signal))) throw overloaded();
      return { signal: holder.replaced.signal, [Symbol.dispose]: () => places.release(holder) };
    },
  };
}
