/**
 * The requests of one category in the last seconds: the counts of each second, and the newest measurements, of which
 * percentiles are made. Both are bounded, however many requests come.
 */
import { TRAFFIC_CLASSES, type TrafficClass } from './exchange.ts';

/** The measurements of one request, which ended in this second. */
export interface Measurement {
  second: number;
  latencyMs?: number | undefined;
  slotWaitMs?: number | undefined;
  rtf?: number | undefined;
}

interface Counts {
  counts: Record<TrafficClass, number>;
  audioSec: number;
  diarized: number;
}

export interface RollingWindowOptions {
  /** The number of past seconds whose counts are kept. */
  spanSec: number;
  /** The number of measurements that are kept. */
  capacity: number;
}

export type RollingWindow = ReturnType<typeof createRollingWindow>;

export function createRollingWindow({ spanSec, capacity }: RollingWindowOptions) {
  /** By second, oldest first. */
  const seconds = new Map<number, Counts>();
  const measurements: Measurement[] = [];
  let next = 0;
  let lastOverwritten = Number.NEGATIVE_INFINITY;

  function begin(second: number): Counts {
    for (const old of seconds.keys()) {
      if (old > second - spanSec) break;
      seconds.delete(old);
    }
    const fresh = nothing();
    seconds.set(second, fresh);
    return fresh;
  }

  return {
    /** @param second must not fall from call to call */
    count(
      second: number,
      as: TrafficClass,
      { audioSec, diarized }: { audioSec: number; diarized: number },
    ): void {
      const now = seconds.get(second) ?? begin(second);
      now.counts[as] += 1;
      now.audioSec += audioSec;
      now.diarized += diarized;
    },
    measure(measurement: Measurement): void {
      lastOverwritten = measurements[next]?.second ?? lastOverwritten;
      measurements[next] = measurement;
      next = (next + 1) % capacity;
    },
    /** The sums over the seconds `from` to `to`, both included. */
    sum(from: number, to: number): Counts {
      const total = nothing();
      for (let second = from; second <= to; second += 1) {
        const one = seconds.get(second);
        if (one === undefined) continue;
        for (const name of TRAFFIC_CLASSES) total.counts[name] += one.counts[name];
        total.audioSec += one.audioSec;
        total.diarized += one.diarized;
      }
      return total;
    },
    /** The measurements of the seconds `from` to `to`, both included, in no order. */
    measured: (from: number, to: number) =>
      measurements.filter(({ second }) => second >= from && second <= to),
    /** True when measurements of `from` or later have made room for newer ones. */
    truncatedSince: (from: number) => lastOverwritten >= from,
  };
}

function nothing(): Counts {
  const counts = Object.fromEntries(TRAFFIC_CLASSES.map((name) => [name, 0]));
  return {
    counts: counts as Record<TrafficClass, number>,
    audioSec: 0,
    diarized: 0,
  };
}

/**
 * Exact percentiles by nearest rank. Percentile p is the smallest value that at least p % of the values do not exceed,
 * so every percentile is a value that was measured.
 *
 * @param ranks are each above 0 and at most 100
 * @returns one value for each rank; null for all when there are no values
 */
export function percentiles<const R extends readonly number[]>(
  values: readonly number[],
  ranks: R,
): { [K in keyof R]: number | null } {
  const sorted = new Float64Array(values).sort();
  return ranks.map((rank) => sorted[Math.ceil((rank * sorted.length) / 100) - 1] ?? null) as {
    [K in keyof R]: number | null;
  };
}
