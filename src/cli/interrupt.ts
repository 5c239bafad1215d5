/** Ctrl-C in a command that works for long: the first ends the work in order, the second leaves it. */
import { setMaxListeners } from 'node:events';

/** The exit status of a program that Ctrl-C has ended. */
export const INTERRUPTED = 130;

/**
 * Runs a task whose signal aborts at the first Ctrl-C.
 * @param output what the task writes to, where losing it ends the task, too
 */
export async function interruptible<T>(
  task: (signal: AbortSignal) => Promise<T>,
  output?: NodeJS.WritableStream,
): Promise<T> {
  const interrupt = new AbortController();
  setMaxListeners(0, interrupt.signal); // each job under way has some
  const stop = () => interrupt.abort(new Error('interrupted'));
  const onSignal = () => {
    process.exitCode = INTERRUPTED;
    stop();
    process.once('SIGINT', () => process.exit());
  };
  process.once('SIGINT', onSignal);
  process.once('SIGTERM', onSignal);
  output?.once('error', stop);
  try {
    return await task(interrupt.signal);
  } finally {
    process.removeAllListeners('SIGINT');
    process.removeListener('SIGTERM', onSignal);
    output?.removeListener('error', stop);
  }
}
