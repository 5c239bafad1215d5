/**
 * Runs a gateway in a process of its own under mixed traffic with faults, and counts what comes of it. Nothing may come
 * that no action expects, and at the end the process must be as large as it was when it had warmed up.
 */
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { json } from '../http/harness.ts';
import { SCRIPTED, type Served, serve } from '../http/served.ts';
import { until } from '../until.ts';
import { type Client, nextAction, type Outcome } from './actions.ts';
import { createRandom } from './random.ts';
import { startFaultyUpstream } from './upstream.ts';

export interface SoakOptions {
  seconds: number;
  seed: number;
}

export interface Size {
  memoryMiB: number;
  descriptors: number;
  threads: number;
}

export interface SoakReport {
  /** The number of requests, by action and outcome. */
  counts: Map<string, Map<Outcome, number>>;
  /** Outcomes that no action expects. */
  unexpected: string[];
  /** The size of the process after a fifth of the time, at the end, and how large its memory was at most. */
  warm: Size;
  end: Size;
  peakMiB: number;
  exitCode: number | null;
  /** The last errors of the operator's log. */
  log: string;
}

const CLIENTS = 6;
/** What holds the slot in vain is cut after this time. */
const UPSTREAM_SILENCE_SEC = '0.5';

/** The state of a connection in /proc/net/tcp (include/net/tcp_states.h of Linux). */
const ESTABLISHED = '01';

/** A connection that the fetch of this process keeps for its next request is nothing that the gateway has forgotten. */
function descriptorsOf(pid: number, port: number): number {
  const ofPort = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const rows = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const kept = rows
    .filter(([, local, , state]) => local?.endsWith(ofPort) && state === ESTABLISHED)
    .map((row) => `socket:[${row[9]}]`);
  const open = readdirSync(`/proc/${pid}/fd`).filter((name) => {
    try {
      return !kept.includes(readlinkSync(`/proc/${pid}/fd/${name}`));
    } catch {
      return false; // closed since it was listed
    }
  });
  return open.length;
}

function sizeOf({ child: { pid = 0 }, port }: Served): Size {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const value = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1]);
  return {
    memoryMiB: Math.round(value('VmRSS') / 1024),
    descriptors: descriptorsOf(pid, port),
    threads: value('Threads'),
  };
}

/** A file may go at any moment, so none is looked at by its name. */
const filesBelow = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());

/** @throws Error when the gateway ends, or when it does not come to rest afterwards */
export async function soak({ seconds, seed }: SoakOptions): Promise<SoakReport> {
  const folder = mkdtempSync(join(tmpdir(), 'voxgate-soak-'));
  const spool = join(folder, 'spool');
  const random = createRandom(seed);
  await using upstream = await startFaultyUpstream(createRandom(seed + 1));
  const served = await serve(
    {
      ...{
        SVC_TMP_DIR: spool,
        SVC_OBS_LOG_DIR: join(folder, 'logs'),
        SVC_OBS_PAYLOAD_DIR: join(folder, 'payloads'),
      },
      ...{ SVC_TTS_UPSTREAM_URL: upstream.base, SVC_LLM_BACKEND_URL: upstream.base, SVC_LOG_LEVEL: 'error' },
      ...{ SVC_TTS_TIMEOUT_SEC: UPSTREAM_SILENCE_SEC, SVC_LLM_TIMEOUT_SEC: UPSTREAM_SILENCE_SEC },
      ...{ SVC_OBS_PAYLOAD_MAX_GB: '0.01', SVC_OBS_ACCESS_LOG_ENABLED: '1' },
    },
    SCRIPTED,
  );
  const counts: SoakReport['counts'] = new Map();
  const unexpected: string[] = [];
  const endsAt = performance.now() + seconds * 1000;

  async function client(of: Client): Promise<void> {
    while (performance.now() < endsAt && served.child.exitCode === null) {
      // Without a pause nearly every request would find the slot held.
      await sleep(of.random.below(60));
      const action = nextAction(of.random);
      const outcome = await action.run(of);
      const byOutcome = counts.get(action.name) ?? new Map<Outcome, number>();
      byOutcome.set(outcome, (byOutcome.get(outcome) ?? 0) + 1);
      counts.set(action.name, byOutcome);
      if (!action.expected.includes(outcome)) unexpected.push(`${action.name}: ${outcome}`);
    }
  }

  try {
    const clients = Array.from({ length: CLIENTS }, () =>
      client({ base: served.base, random: createRandom(random.below(2 ** 31)) }),
    );
    await Promise.race([sleep(seconds * 200), served.ended]);
    const warm = sizeOf(served);
    let peakMiB = warm.memoryMiB;
    const watch = setInterval(() => {
      if (served.child.exitCode === null) peakMiB = Math.max(peakMiB, sizeOf(served).memoryMiB);
    }, 500);
    await Promise.all(clients).finally(() => clearInterval(watch));
    if (served.child.exitCode !== null) throw new Error(`The gateway ended:\n${served.log().slice(-5000)}`);
    const isFree = async () => !(await json(await fetch(`${served.base}/admin/api/metrics`))).slot.held;
    await until('the slot is free', isFree, 20_000);
    await until('the spool is empty', () => filesBelow(spool).length === 0, 20_000);
    await until('descriptors are closed', () => sizeOf(served).descriptors <= warm.descriptors + 2, 20_000);
    const end = sizeOf(served);
    await served[Symbol.asyncDispose]();
    const log = served.log().slice(-5000);
    return { counts, unexpected, warm, end, peakMiB, exitCode: served.child.exitCode, log };
  } finally {
    served.child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What is wrong with a soak; empty if nothing is. */
export function findFaults({ counts, unexpected, warm, end, exitCode, log }: SoakReport): string[] {
  const rows: [string, boolean][] = [
    ...[...new Set(unexpected)].map((what): [string, boolean] => [`not expected: ${what}\n${log}`, true]),
    [`threads grew from ${warm.threads} to ${end.threads}`, end.threads > warm.threads + MAX_MORE_THREADS],
    [
      `memory grew from ${warm.memoryMiB} to ${end.memoryMiB} MiB`,
      end.memoryMiB > warm.memoryMiB + MAX_GROWTH_MIB,
    ],
    [`the exit code is ${exitCode}`, exitCode !== 0],
    ['no transcription succeeded', (counts.get('transcribe')?.get(200) ?? 0) === 0],
  ];
  return rows.filter(([, isWrong]) => isWrong).map(([what]) => what);
}

/** The heap of Node grows until a collection is worth its while, and shrinks late. */
const MAX_GROWTH_MIB = 150;
/** The pools of Node and of the decoders begin their threads when they need them first, four each. */
const MAX_MORE_THREADS = 4;

/** The report as a Markdown table. */
export function writeReport({ counts, warm, end, peakMiB }: SoakReport): string {
  const rows = [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1));
  let sum = 0;
  const lines = rows.map(([name, outcomes]) => {
    const parts = [...outcomes].toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1));
    const total = parts.reduce((all, [, count]) => all + count, 0);
    sum += total;
    return `| ${name} | ${total} | ${parts.map(([outcome, count]) => `${outcome}: ${count}`).join(', ')} |`;
  });
  const size = ({ memoryMiB, descriptors, threads }: Size) =>
    `${memoryMiB} MiB, ${descriptors} descriptors, ${threads} threads`;
  return [
    '| Requests | Count | Outcomes |',
    '| --- | --- | --- |',
    ...lines,
    `| all | ${sum} | |`,
    '',
    `Warm: ${size(warm)}. End: ${size(end)}. Memory at most: ${peakMiB} MiB.`,
  ].join('\n');
}
