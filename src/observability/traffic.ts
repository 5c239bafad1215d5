/** Counts the requests of one category by class and second, in six counters and a sum however many there are. */
import { TRAFFIC_CLASSES, type TrafficClass } from './exchange.ts';

const CLASSES = TRAFFIC_CLASSES.length;

export interface Traffic {
  add(second: number, as: TrafficClass, what: { audioSec: number; diarized: number }): void;
  /** The sums over the seconds `from` to `to`, both included. Seconds that have left the ring count as empty. */
  sum(from: number, to: number): { counts: Record<TrafficClass, number>; audioSec: number; diarized: number };
}

/** @param span the number of past seconds that are kept */
export function createTraffic(span: number): Traffic {
  const stamps = new Int32Array(span).fill(-1);
  const counts = new Uint32Array(span * CLASSES);
  const audio = new Float64Array(span);
  const told = new Uint32Array(span);

  return {
    add(second, as, { audioSec, diarized }) {
      const cell = second % span;
      if (stamps[cell] !== second) {
        stamps[cell] = second;
        counts.fill(0, cell * CLASSES, (cell + 1) * CLASSES);
        audio[cell] = 0;
        told[cell] = 0;
      }
      const at = cell * CLASSES + TRAFFIC_CLASSES.indexOf(as);
      counts[at] = (counts[at] as number) + 1;
      audio[cell] = (audio[cell] as number) + audioSec;
      told[cell] = (told[cell] as number) + diarized;
    },
    sum(from, to) {
      const total = new Float64Array(CLASSES);
      let audioSec = 0;
      let diarized = 0;
      for (let second = Math.max(0, from); second <= to; second += 1) {
        const cell = second % span;
        if (stamps[cell] !== second) continue;
        for (let k = 0; k < CLASSES; k += 1) {
          total[k] = (total[k] as number) + (counts[cell * CLASSES + k] as number);
        }
        audioSec += audio[cell] as number;
        diarized += told[cell] as number;
      }
      const named = TRAFFIC_CLASSES.map((name, k) => [name, total[k] as number]);
      return { counts: Object.fromEntries(named) as Record<TrafficClass, number>, audioSec, diarized };
    },
  };
}
