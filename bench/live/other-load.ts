/** How busy other programs keep the machine while a bench runs, because every time on a busy machine is longer. */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { total } from '../common/numbers.ts';
import { cpuSec } from '../common/processes.ts';

/** Above this share of the processor time for others, the machine counts as loaded. */
const LOADED = 0.1;

/**
 * Counts from now on. The function that it returns says what others had since then.
 * @param own processor time of the processes that are measured, s
 */
export function watchLoad(own: () => number): () => string {
  const begin = { at: performance.now(), all: machineSec(), own: own() + cpuSec(process.pid) };
  return () => {
    const seconds = (performance.now() - begin.at) / 1000;
    const others = machineSec() - begin.all - (own() + cpuSec(process.pid) - begin.own);
    const cores = Math.max(0, others / seconds);
    const share = cores / availableParallelism();
    const what = share > LOADED ? 'a loaded machine' : 'an idle machine';
    return `On ${what}: other programs kept ${cores.toFixed(2)} of ${availableParallelism()} cores busy`;
  };
}

/** Processor time of all processes since the start: all but idle and waiting for disks, in ticks of 10 ms. */
function machineSec(): number {
  const [first = ''] = readFileSync('/proc/stat', 'utf8').split('\n');
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = first
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return total([user, nice, system, irq, softirq, steal]) / 100;
}
