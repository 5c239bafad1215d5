/**
 * Bounds what hostile input may cost. Processor time is measured rather than the clock, and the least of a few runs
 * counts: other work of this machine cannot make a cheap thing fail, and an expensive one is expensive every time.
 */
import assert from 'node:assert/strict';

const RUNS = 3;

/** Measures the milliseconds of processor time, of all threads of this process. */
async function measure(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

export async function assertCheap(what: string, limitMs: number, work: () => unknown): Promise<void> {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < RUNS && least >= limitMs; run++) least = Math.min(least, await measure(work));
  assert(least < limitMs, `${what} took ${Math.round(least)} ms of processor time, allowed are ${limitMs}`);
}
