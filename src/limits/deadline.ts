/**
 * Deadlines for what a client does not do. They count in ticks: a process that could not run, on a machine with other work
 * or because of work of its own, finds its timers late while what the client has sent is still unread. A late tick counts
 * once, and between two ticks everything that has come is read.
 */
const TICKS = 8;
const LONGEST_TICK_MS = 1000;

/** How often to look, so that a deadline of `ms` is kept well enough. */
export const tickOf = (ms: number): number => Math.min(LONGEST_TICK_MS, ms / TICKS);

/**
 * Calls back once, when `ms` have passed in which this process ran.
 * @returns a function that lifts the deadline; it may be called twice
 */
export function setDeadline(ms: number, late: () => void): () => void {
  const tickMs = tickOf(ms);
  let leftMs = ms;
  const timer = setInterval(() => {
    leftMs -= tickMs;
    if (leftMs > 0) return;
    clearInterval(timer);
    late();
  }, tickMs);
  return () => clearInterval(timer);
}
