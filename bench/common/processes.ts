/** Processes that the benches start, and what the kernel counts of them. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';

export interface MeasuredProcess extends AsyncDisposable {
  /** User and system time of all its threads so far. */
  cpuSec(): number;
  /** Peak resident set, as the kernel counted it (VmHWM), MiB; NaN when it has ended. */
  peakMegabytes(): number;
}

/** A process that runs elsewhere, of which nothing is known. */
export const UNMEASURED: MeasuredProcess = {
  cpuSec: () => Number.NaN,
  peakMegabytes: () => Number.NaN,
  [Symbol.asyncDispose]: async () => undefined,
};

/** Ends the child when it is disposed of. */
export function measured(child: ChildProcess): MeasuredProcess & { pid: number } {
  // A child that could not be started is noticed by its missing answer.
  const exited = once(child, 'exit').catch(() => undefined);
  const pid = child.pid ?? 0;
  return {
    pid,
    cpuSec: () => cpuSec(pid),
    peakMegabytes: () => Math.round(megabytes(pid, 'VmHWM')),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

/** Resolves when the address answers, and ends the process that does not answer there in time. */
export async function answers(url: string, child: ChildProcess): Promise<void> {
  // On a busy machine Node alone takes seconds to start.
  const deadline = performance.now() + 60_000;
  while (performance.now() < deadline) {
    const isUp = await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isUp) return;
    await sleep(5);
  }
  child.kill();
  throw new Error(`${url} did not answer within 60 s`);
}

/** The last 2000 characters that a stream has given. Libraries print much, of which only the end is of interest. */
export function endOf(stream: NodeJS.ReadableStream): () => string {
  let end = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    end = (end + chunk).slice(-2000);
  });
  return () => end.trim();
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

export const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** User and system time of a running process, all threads. */
export function cpuSec(pid: number): number {
  return ticksSec(pid, 11);
}

/** The same for the processes that this one started and that have ended. */
export function childrenCpuSec(): number {
  return ticksSec('self', 13);
}

/** The field and the one behind it, in ticks of 10 ms (https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html). */
function ticksSec(pid: number | 'self', field: number): number {
  const stat = readProc(pid, 'stat');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[field]) + Number(fields[field + 1])) / 100;
}

/**
 * Memory in MiB, as the kernel counts it (https://man7.org/linux/man-pages/man5/proc_pid_status.5.html): resident now,
 * at its peak, or resident and in no file. NaN for a process that has ended.
 */
export function megabytes(pid: number | 'self', field: 'VmRSS' | 'VmHWM' | 'Anonymous'): number {
  const text = readProc(pid, field === 'Anonymous' ? 'smaps_rollup' : 'status');
  return Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(text)?.[1]) / 1024;
}

function readProc(pid: number | 'self', file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}
