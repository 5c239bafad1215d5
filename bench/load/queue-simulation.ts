/**
 * Simulates requests that wait in one line, first come, first served, for the first of several slots that is free: what
 * HAProxy does before as many gateways (deploy/haproxy.cfg). Arrivals are a Poisson process. The same seed gives the
 * same figures.
 */
import { total } from '../common/numbers.ts';
import { type Random, seededRandom } from '../common/random.ts';

export interface Load {
  slots: number;
  /** The share of the time in which a slot is held, in the mean of all slots; below 1. */
  utilization: number;
  /** The times for which requests hold a slot, of which each is as probable as the others. */
  holdSec: readonly number[];
}

export interface Waits {
  meanSec: number;
  p50Sec: number;
  p95Sec: number;
}

/** The first part of the requests only fills the line, and is not counted. */
const WARM_UP = 0.1;

export function simulateWaits({ slots, utilization, holdSec }: Load, requests: number, seed = 1): Waits {
  const random = seededRandom(seed);
  const meanHoldSec = total(holdSec) / holdSec.length;
  const meanGapSec = meanHoldSec / (slots * utilization);
  const free = createFreeTimes(slots);
  const waits = new Float64Array(Math.ceil(requests * (1 - WARM_UP)));
  let arrivalSec = 0;
  for (let i = 0; i < requests; i++) {
    arrivalSec += exponential(random, meanGapSec);
    const beginSec = Math.max(arrivalSec, free.first());
    free.replaceFirst(beginSec + (holdSec[Math.floor(random() * holdSec.length)] ?? 0));
    const counted = i - (requests - waits.length);
    if (counted >= 0) waits[counted] = beginSec - arrivalSec;
  }
  const meanSec = waits.reduce((sum, sec) => sum + sec, 0) / waits.length;
  waits.sort();
  const percentile = (share: number) => waits[Math.ceil(share * waits.length) - 1] ?? 0; // nearest rank
  return { meanSec, p50Sec: percentile(0.5), p95Sec: percentile(0.95) };
}

function exponential(random: Random, mean: number): number {
  return -mean * Math.log(1 - random());
}

/** When each slot will be free, as a binary heap with the first one on top. */
function createFreeTimes(slots: number) {
  const heap = new Float64Array(slots);
  const at = (i: number) => heap[i] ?? Number.POSITIVE_INFINITY;
  return {
    first: () => at(0),
    replaceFirst(sec: number) {
      let hole = 0;
      for (;;) {
        const left = 2 * hole + 1;
        const next = at(left + 1) < at(left) ? left + 1 : left;
        if (!(at(next) < sec)) break;
        heap[hole] = at(next);
        hole = next;
      }
      heap[hole] = sec;
    },
  };
}
