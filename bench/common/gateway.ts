/** The benches run the built gateway as a process of its own, as operators do. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RAW = ['-ar', '16000', '-ac', '1', '-f', 's16le'] as const;

export interface GatewayProcess extends AsyncDisposable {
  base: string;
  pid: number;
  /** Time from the start of the process to the first answer of `/health`. */
  startedInMs: number;
  /** Peak resident set, as the kernel counted it (VmHWM). */
  peakMegabytes(): number;
  /** User and system time of all its threads so far. */
  cpuSec(): number;
}

export async function startGatewayProcess(env: Record<string, string> = {}): Promise<GatewayProcess> {
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  const startedAt = performance.now();
  const child = spawn(process.execPath, ['dist/main.js', 'serve'], {
    cwd: ROOT,
    env: { ...process.env, SVC_PORT: String(port), SVC_LOG_LEVEL: 'error', ...env },
    stdio: 'inherit',
  });
  const exited = once(child, 'exit');
  const pid = child.pid ?? 0;
  // On a busy machine Node alone takes seconds to start.
  await answers(`${base}/health`, 60_000).catch((error: unknown) => {
    child.kill();
    throw error;
  });
  return {
    base,
    pid,
    startedInMs: performance.now() - startedAt,
    peakMegabytes: () => peakMegabytes(pid),
    cpuSec: () => cpuSec(pid),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}

export async function answers(url: string, limitMs = 60_000): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (performance.now() < deadline) {
    const ok = await fetch(url).then(
      (response) => response.ok,
      () => false,
    );
    if (ok) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  throw new Error(`${url} did not answer within ${limitMs / 1000} s`);
}

/** Peak resident set of a running process, MiB; NaN when it has ended. */
export function peakMegabytes(pid: number): number {
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(readProc(pid, 'status'))?.[1]) / 1024);
}

/** User and system time of a running process, all threads. */
export function cpuSec(pid: number): number {
  return ticksSec(pid, 'utime');
}

/** The same for the processes that this one started and that have ended. */
export function childrenCpuSec(): number {
  return ticksSec('self', 'cutime');
}

/**
 * Reads ticks of 10 ms (https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html); system time stands behind user
 * time.
 */
function ticksSec(pid: number | 'self', field: 'utime' | 'cutime'): number {
  const stat = readProc(pid, 'stat');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const at = field === 'utime' ? 11 : 13;
  return (Number(fields[at]) + Number(fields[at + 1])) / 100;
}

export function readProc(pid: number | 'self', file: 'stat' | 'status' | 'smaps_rollup'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  return ((sorted[Math.ceil(half) - 1] ?? Number.NaN) + (sorted[Math.floor(half)] ?? Number.NaN)) / 2;
}

/** Takes the nearest rank. */
export function percentile(values: number[], p: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((p / 100) * sorted.length) - 1)] ?? Number.NaN;
}

/** Names a file to ffmpeg, which does not know short GSM without a header by its content. */
const inputOf = (audio: string) => [...(audio.endsWith('.gsm') ? ['-f', 'gsm'] : []), '-i', audio];

/** Decodes to 16 kHz mono, 16 bits, with ffmpeg. */
export function samplesOf(audio: string): Buffer {
  return execFileSync('ffmpeg', ['-v', 'error', ...inputOf(audio), ...RAW, '-'], { maxBuffer: 1e9 });
}

/** The same for many short files in one process, because starting it takes longer than decoding one. */
export function samplesOfAll(audios: readonly string[]): Buffer[] {
  const folder = mkdtempSync(join(tmpdir(), 'voxgate-samples-'));
  try {
    const outputs = audios.flatMap((_, i) => ['-map', `${i}:a:0`, ...RAW, join(folder, `${i}.raw`)]);
    execFileSync('ffmpeg', ['-v', 'error', ...audios.flatMap(inputOf), ...outputs], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    return audios.map((_, i) => readFileSync(join(folder, `${i}.raw`)));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
