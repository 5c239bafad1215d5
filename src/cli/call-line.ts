/**
 * The line of the calls that a program makes to its own gateway. They are sent one at a time, in their order: the
 * gateway hears one file at a time, and refuses what is too much. Many calls at once would wait longer and out of order.
 */
import { setMaxListeners } from 'node:events';
import { onAbort } from '../abort.ts';

export interface CallLine {
  /**
   * @param call gets a signal that aborts with `signal` and when the line closes
   * @throws `signal.reason` after an abort, and the reason of `close`, while the call waits
   */
  inTurn<T>(signal: AbortSignal, call: (until: AbortSignal) => Promise<T>): Promise<T>;
  /** Refuses the calls that wait and all later ones. One that is under way sees it in its signal. */
  close(reason: Error): void;
}

export function callLine(): CallLine {
  const closing = new AbortController();
  setMaxListeners(0, closing.signal); // each call has one
  let last: Promise<unknown> = Promise.resolve();

  return {
    inTurn(signal, call) {
      setMaxListeners(0, signal); // all calls of a program may share it
      const before = last;
      const turn = (async () => {
        const until = new AbortController();
        const over = new Promise<never>((_resolve, reject) => {
          onAbort(until.signal, () => reject(until.signal.reason));
        });
        // Listeners that are taken off again: with `AbortSignal.any`, Node 20 keeps something of every call.
        using _left = onAbort(signal, () => until.abort(signal.reason));
        using _closed = onAbort(closing.signal, () => until.abort(closing.signal.reason));
        await Promise.race([over, before]);
        return await call(until.signal);
      })();
      // The next one also waits for those before a call that has left.
      last = Promise.allSettled([before, turn]).then(() => undefined);
      return turn;
    },
    close: (reason) => closing.abort(reason),
  };
}
