/**
 * Runs an attack against a gateway while an honest client transcribes and a prober asks for /health. Both must be
 * served: every transcription succeeds, and 99 of 100 answers of /health come within 100 ms. A bystander (a trivial
 * server in a process of its own) shows what the machine adds: a turn of the gateway waits for the processor several
 * times as often as the bystander, so three of its times are taken off. On a quiet machine that is a few milliseconds.
 * A process that ends before it is told to fails the test: an attack that is over is no attack.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { OtherBudgets } from '../../src/limits/budgets.ts';
import { program } from '../program.ts';
import type { ATTACKS } from './attack-process.ts';
import { form, startGateway, toneWav } from './harness.ts';

const HEALTH_LIMIT_MS = 100;
/** Other work on the machine comes and goes, and the attack stays: /health must be fast in one of so many stretches. */
const STRETCHES = 3;
/** The honest client rests between its requests, so that the gateway is not busy with it alone. */
const PAUSE_MS = 50;
const LONGEST_MS = 10_000;
const PROGRAM = program('test/http/attack-process.ts');

export interface Report {
  transcriptions: number;
  /** How often /health was asked, and the 99th percentile of its time and of the bystander's. */
  asked: number;
  healthMs: number;
  bystanderMs: number;
}

interface Figures extends Omit<Report, 'transcriptions'> {
  failures: string[];
}

interface Options {
  forMs: number;
  env?: Record<string, string>;
  headers?: Record<string, string>;
  budgets?: OtherBudgets;
  /** Where the honest client comes from. */
  from?: string;
}

/** Transcribes on a connection of its own: one that waits for its next request may have to give way to others. */
function send(base: string, headers: Record<string, string>, body: Buffer, localAddress: string) {
  return new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
    const signal = AbortSignal.timeout(LONGEST_MS);
    const options = {
      ...{ method: 'POST', agent: false, signal, localAddress },
      headers: { ...headers, 'Content-Length': body.length },
    };
    const req = request(`${base}/v1/audio/transcriptions`, options, (res) => {
      let text = '';
      res.on('data', (data) => {
        text += data;
      });
      res.once('end', () => resolve({ status: res.statusCode, text })).once('error', reject);
    });
    req.once('error', reject).end(body);
  });
}

export async function underAttack(attack: keyof typeof ATTACKS, options: Options): Promise<Report> {
  const { forMs, env = {}, headers = {}, budgets = {}, from = '127.0.0.1' } = options;
  await using gateway = await startGateway({ env: { SVC_WYOMING_PORT: '0', ...env }, budgets });
  const { port } = new URL(gateway.base);
  const upload = new Response(form(toneWav(1)));
  const type = upload.headers.get('content-type') ?? '';
  const body = Buffer.from(await upload.arrayBuffer());
  const transcribe = async () => {
    const { status, text } = await send(gateway.base, { ...headers, 'Content-Type': type }, body, from);
    assert.deepEqual([status, JSON.parse(text || '{}').text], [200, 'Hello there.'], text);
  };
  await transcribe(); // what is loaded at the first request is not the attack's doing
  const children: ChildProcess[] = [];
  /** The processes that ended before they were told to. */
  const ended: string[] = [];
  const begin = async (...args: string[]) => {
    const child = spawn(process.execPath, [...PROGRAM, ...args], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    children.push(child);
    child.once('exit', (code, signal) => ended.push(`${args[0]}: ${code ?? signal}`));
    const over = once(child, 'exit').then(() => assert.deepEqual(ended, []));
    const said = await Promise.race([once(child, 'message').then(([said]) => said as unknown), over]);
    return { child, said };
  };
  try {
    const bystander = await begin('bystander');
    await begin(attack, port, String(gateway.wyomingPort));
    const prober = await begin('prober', port, String(bystander.said));
    /** Transcribes for `forMs`, and until the prober has asked often enough. */
    const stretch = async (): Promise<Report> => {
      const reports: Figures[] = [];
      prober.child.once('message', (said) => reports.push(said as Figures));
      const timer = setTimeout(() => prober.child.send('report'), forMs);
      let transcriptions = 0;
      try {
        for (; reports.length === 0; transcriptions++) {
          await transcribe();
          await sleep(PAUSE_MS);
          assert.deepEqual(ended, []);
        }
      } finally {
        clearTimeout(timer);
      }
      const [{ failures, ...report }] = reports as [Figures];
      assert.deepEqual(failures, [], 'every request for /health is answered');
      return { ...report, transcriptions };
    };
    const missed: string[] = [];
    while (missed.length < STRETCHES) {
      const report = await stretch();
      assert.equal(gateway.logged.filter((line) => line.includes('"level":"error"')).join(''), '');
      const allowed = HEALTH_LIMIT_MS + 3 * report.bystanderMs;
      if (report.healthMs <= allowed) return report;
      missed.push(`${report.healthMs} ms of ${allowed}`);
    }
    throw new assert.AssertionError({ message: `/health needed ${missed.join(', ')}` });
  } finally {
    for (const child of children) child.kill('SIGKILL');
  }
}
