/**
 * Simulates the chunks of a long recording on the lanes of a model, on machines with more processors than this one. The
 * lanes share the threads as native/backends/thread_budget.h does, anew whenever a lane starts or ends. Pure.
 */

export interface Work {
  /** For each chunk, in their order, the seconds that it takes on one thread. */
  chunks: readonly number[];
  /** For each chunk the second at which voice activity detection has found it. */
  foundSec: readonly number[];
  /** The part of a chunk's time, 0..1, that more threads do not shorten (Amdahl 1967). */
  serial: number;
}

export interface LaneTimes {
  /** From the start of the recording to the end of its last chunk. */
  wallSec: number;
  /** How many times as long one thread takes. */
  speedup: number;
}

interface Busy {
  /** What is left of the chunk, in seconds of one thread. */
  leftSec: number;
}

/** @param lanes no more than there are threads */
export function simulateLanes({ chunks, foundSec, serial }: Work, threads: number, lanes: number): LaneTimes {
  const places: (Busy | null)[] = new Array(lanes).fill(null);
  let now = 0;
  let next = 0;
  while (true) {
    for (let place = 0; place < lanes && next < chunks.length; place += 1) {
      if (places[place] !== null || (foundSec[next] ?? 0) > now) continue;
      places[place] = { leftSec: chunks[next] ?? 0 };
      next += 1;
    }
    const busy = places.filter((place) => place !== null);
    if (busy.length === 0 && next === chunks.length) break;
    const running = shares(threads, busy).map(({ lane, share }) => {
      const speed = 1 / (serial + (1 - serial) / share);
      return { lane, speed, endSec: lane.leftSec / speed };
    });
    const isFree = busy.length < lanes && next < chunks.length;
    const found = isFree ? (foundSec[next] ?? 0) - now : Number.POSITIVE_INFINITY;
    const step = Math.min(found, ...running.map(({ endSec }) => endSec));
    now += step;
    for (const { lane, speed, endSec } of running) {
      lane.leftSec -= step * speed;
      if (endSec === step) places[places.indexOf(lane)] = null;
    }
  }
  return { wallSec: now, speedup: chunks.reduce((sum, sec) => sum + sec, 0) / now };
}

/** Gives each busy lane its threads. Those left over go to the first lanes. */
function shares(threads: number, busy: readonly Busy[]): { lane: Busy; share: number }[] {
  const [even, left] = [Math.floor(threads / busy.length), threads % busy.length];
  return busy.map((lane, i) => ({ lane, share: even + (i < left ? 1 : 0) }));
}
