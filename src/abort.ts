/**
 * Calls back once when `signal` aborts, and at once where it has. Disposing of the result takes the listener off.
 * Node's own `addAbortListener` calls back later where the signal has aborted, also after it was taken off, and work
 * would begin meanwhile.
 */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): Disposable {
  if (signal?.aborted) listener();
  else signal?.addEventListener('abort', listener, { once: true });
  return { [Symbol.dispose]: () => signal?.removeEventListener('abort', listener) };
}
