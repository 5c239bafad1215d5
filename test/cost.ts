/**
 * Bounds what hostile input may cost. Processor time is measured rather than the clock, and the least of a few runs
 * counts: other work of this machine cannot make a cheap thing fail, and an expensive one is expensive every time.
 */
import assert from 'node:assert/strict';

const RUNS = 3;

/** Measures until a figure is below the limit, and returns the least: only the best run is undisturbed. */
export async function leastOf(limit: number, measure: () => Promise<number>, runs = RUNS): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < runs && least >= limit; run++) least = Math.min(least, await measure());
  return least;
}

/** Measures the milliseconds of processor time, of all threads of this process. */
async function processorMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

export async function assertCheap(what: string, limitMs: number, work: () => unknown): Promise<void> {
  const least = await leastOf(limitMs, () => processorMs(work));
  assert(least < limitMs, `${what} took ${Math.round(least)} ms of processor time, allowed are ${limitMs}`);
}
