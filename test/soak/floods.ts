/**
 * Floods of every kind at once against `voxgate serve --supervised` with real weights, while an honest client asks for
 * /health and transcribes. Nothing may end the server, every transcription must be served, and the memory must stay
 * where it was when the floods had been going for a while.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ATTACKS } from '../http/attack-process.ts';
import { serve } from '../http/served.ts';
import { program } from '../program.ts';
import { JFK } from '../wav.ts';

const FLOODS: readonly (keyof typeof ATTACKS)[] = [
  'every live flood at once',
  'bodies that are parked',
  'a line of waiting requests without bodies',
];

interface FloodReport {
  transcriptions: number;
  /** What was answered to the honest client instead of a text. */
  failures: string[];
  transcriptionMs: number;
  /** The 99th percentile of the time of /health in each stretch, and of the bystander's, milliseconds. */
  healthMs: number[];
  bystanderMs: number[];
  /** The resident memory of the server in each stretch, MiB. */
  memoryMiB: number[];
  /** The processes that have been the server; one if it was never started again. */
  servers: number[];
  /** The attackers that ended before they were told to. */
  ended: string[];
}

const PROGRAM = program('test/http/attack-process.ts');
const STRETCH_MS = 30_000;
const HEALTH_LIMIT_MS = 100;
/** Of the median memory in the last third of the time to that in the first. Large messages come and go. */
const MAX_GROWTH = 1.1;
/** The floods come from 127.0.0.5, and who is honest from here. */
const HONEST = '127.0.0.9';
/** A request that is refused because another one holds the slot waits for its turn. */
const PREFER = 'wait=20';
const SETTINGS = { SVC_MAX_WAIT_SEC: '20', SVC_MODEL_DOWNLOAD: 'off', SVC_MODEL_DEFAULT_SIZE: 'base' };

export async function floods({ seconds }: { seconds: number }): Promise<FloodReport> {
  await using served = await serve(SETTINGS, ['dist/main.js', 'serve', '--supervised']);
  const report: FloodReport = {
    transcriptions: 0,
    failures: [],
    transcriptionMs: 0,
    healthMs: [],
    bystanderMs: [],
    memoryMiB: [],
    servers: [],
    ended: [],
  };
  const children: ChildProcess[] = [];
  let isOver = false;
  const begin = async (...args: string[]): Promise<{ child: ChildProcess; said: unknown }> => {
    const child = spawn(process.execPath, [...PROGRAM, ...args], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    children.push(child);
    child.once('exit', (code, signal) => {
      if (!isOver) report.ended.push(`${args[0]} has ended: ${code ?? signal}`);
    });
    const [said] = await once(child, 'message');
    return { child, said };
  };
  try {
    await transcribe(served.port); // what is loaded at the first request is not the floods' doing
    const bystander = await begin('bystander');
    for (const attack of FLOODS) await begin(attack, String(served.port));
    const prober = await begin('prober', String(served.port), String(bystander.said));
    for (const end = Date.now() + 1000 * seconds; Date.now() < end; ) {
      const said = once(prober.child, 'message');
      await stretch(served.port, Math.min(STRETCH_MS, end - Date.now()), report);
      prober.child.send('report');
      const [figures] = await said;
      report.healthMs.push(Math.round(figures.healthMs));
      report.bystanderMs.push(Math.round(figures.bystanderMs));
      report.failures.push(...figures.failures);
      const server = childOf(served.child.pid ?? 0);
      if (!report.servers.includes(server)) report.servers.push(server);
      report.memoryMiB.push(memoryMiB(server));
    }
    return report;
  } finally {
    isOver = true;
    for (const child of children) child.kill('SIGKILL');
  }
}

/** What must not be. A stretch in which the machine itself was slow, as the bystander shows, says nothing of /health. */
export function faultsOf(report: FloodReport): string[] {
  const { failures, servers, ended, healthMs, bystanderMs, memoryMiB } = report;
  const slow = healthMs.filter((ms, i) => ms > HEALTH_LIMIT_MS + 3 * (bystanderMs[i] ?? 0));
  const third = Math.ceil(memoryMiB.length / 3);
  const [warm, late] = [median(memoryMiB.slice(0, third)), median(memoryMiB.slice(-third))];
  return [
    ...failures,
    ...ended,
    ...(servers.length === 1 ? [] : [`the server was started ${servers.length} times`]),
    ...slow.map((ms) => `/health took ${ms} ms`),
    ...(late <= warm * MAX_GROWTH ? [] : [`the memory grew from ${warm} to ${late} MiB`]),
  ];
}

async function stretch(port: number, forMs: number, report: FloodReport): Promise<void> {
  for (const end = Date.now() + forMs; Date.now() < end; await sleep(500)) {
    const startedAt = performance.now();
    const { status, text } = await transcribe(port).catch((error) => ({ status: 0, text: String(error) }));
    report.transcriptionMs = Math.max(report.transcriptionMs, Math.round(performance.now() - startedAt));
    report.transcriptions += 1;
    if (status !== 200 || !text.includes('country')) report.failures.push(`${status} ${text.slice(0, 300)}`);
  }
}

/** Transcribes on a connection of its own. */
async function transcribe(port: number): Promise<{ status: number; text: string }> {
  const form = new FormData();
  form.set('file', new Blob([readFileSync(JFK)]), 'jfk.flac');
  form.set('model', 'multilingual-base');
  const upload = new Response(form);
  const body = Buffer.from(await upload.arrayBuffer());
  return await new Promise((resolve, reject) => {
    const headers = {
      'Content-Type': upload.headers.get('content-type') ?? '',
      'Content-Length': body.length,
      Prefer: PREFER,
    };
    const signal = AbortSignal.timeout(60_000);
    const sent = request(
      {
        host: '127.0.0.1',
        port,
        path: '/v1/audio/transcriptions',
        method: 'POST',
        headers,
        agent: false,
        localAddress: HONEST,
        signal,
      },
      (res) => {
        let text = '';
        res.on('data', (data) => {
          text += data;
        });
        res.once('end', () => resolve({ status: res.statusCode ?? 0, text })).once('error', reject);
      },
    );
    sent.once('error', reject).end(body);
  });
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

/** 0 while there is none. */
function childOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0] ?? 0);
}

function memoryMiB(pid: number): number {
  const [, kib = ''] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Math.round(Number(kib) / 1024);
}
