/**
 * Writes the figures of live speech as Markdown, and every single run for those who look for a reason. They tell how busy
 * other programs kept the machine, because every time on a busy machine is longer.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { ErrorRates } from '../accuracy/error-rate.ts';
import { ROOT } from '../common/machine.ts';
import { median, percent, percentile, sumOf, total } from '../common/numbers.ts';
import { markdownTable } from '../common/page.ts';
import { cpuSec } from '../common/processes.ts';
import type { LiveClip } from './clips.ts';
import type { LivePeer, LiveRun } from './peer.ts';

const COLUMNS = [
  '',
  'end of speech to text ms, p50 / p95 / longest',
  'first words ms, p50 / p95',
  'contradicted',
  'failed',
  'word error rate',
];

/** @param files the texts of the same clips as files */
export async function liveTable(
  clips: LiveClip[],
  runs: ReadonlyMap<LivePeer, LiveRun[]>,
  files: string[],
  rates: ErrorRates,
): Promise<string> {
  const errorRate = async (texts: string[]) =>
    percent(await rates.rate(clips.map(({ text }, i) => ({ text, language: 'en', heard: texts[i] ?? '' }))));
  const rows: string[][] = [];
  for (const [{ name }, all] of runs) {
    const first = all.flatMap(({ firstMs }) => firstMs ?? []);
    rows.push([
      name,
      spread(all.flatMap(({ finalMs }) => finalMs)),
      first.length === 0 ? '' : `${median(first).toFixed(0)} / ${percentile(first, 95).toFixed(0)}`,
      first.length === 0 ? '' : `${all.filter(({ contradicted }) => contradicted).length} of ${all.length}`,
      String(all.flatMap(({ failures }) => failures).length),
      await errorRate(all.map(({ text }) => text)),
    ]);
  }
  rows.push(['voxgate, the same clips as files', '', '', '', '', await errorRate(files)]);
  const seconds = sumOf(clips, (clip) => clip.seconds);
  return [
    `${clips.length} clips of 2 to 10 s, ${seconds.toFixed(0)} s together; one round.`,
    '',
    markdownTable(COLUMNS, rows),
  ].join('\n');
}

export function spread(ms: number[]): string {
  const figures = [median(ms), percentile(ms, 95), Math.max(...ms)];
  return figures.map((figure) => figure.toFixed(0)).join(' / ');
}

const ARTIFACTS = join(ROOT, 'build/live');

export function writeRuns(clips: LiveClip[], runs: ReadonlyMap<LivePeer, LiveRun[]>, files: string[]): void {
  const all = clips.map(({ name, seconds, text }, i) => {
    const heard = [...runs].map(([peer, list]) => [peer.name, list[i]]);
    return { name, seconds, text, file: files[i], ...Object.fromEntries(heard) };
  });
  mkdirSync(ARTIFACTS, { recursive: true });
  writeFileSync(join(ARTIFACTS, 'runs.json'), `${JSON.stringify(all, null, 1)}\n`);
}

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
