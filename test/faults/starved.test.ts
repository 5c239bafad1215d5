/**
 * The system takes memory or descriptors away from a gateway that runs, with real engines: each request ends in an
 * envelope, the gateway goes on, and it serves again when it has them back.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { program } from '../program.ts';
import { until } from '../until.ts';
import { wav } from '../wav.ts';
import { writeWeights } from './fail-nth/weights.ts';

const MIB = 1024 * 1024;
const notLinux = process.platform !== 'linux' && 'limits are changed with prlimit, which is for Linux';
const model = process.env.VOXGATE_TEST_MODEL;
const noModel = model === undefined && 'VOXGATE_TEST_MODEL does not name a model file';

const tone = wav(
  Float32Array.from({ length: 16_000 }, (_, i) => 0.5 * Math.sin((2 * Math.PI * 440 * i) / 16_000)),
);

interface Gateway {
  base: string;
  child: ChildProcess;
  /** Sets a limit of the process that runs, as prlimit names it; null takes it away. */
  limit(resource: 'as' | 'nofile', value: number | null): void;
  printed(): string;
}

/** @param whisper the weights of Whisper; those of a very small model when absent */
async function start(t: TestContext, whisper?: string): Promise<Gateway> {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-starved-'));
  await writeWeights(dir);
  if (whisper !== undefined)
    for (const folder of ['weights', 'models'])
      copyFileSync(whisper, join(dir, folder, 'multilingual-base.bin'));
  const child = spawn(process.execPath, [...program('test/faults/fail-nth/gateway.ts'), dir], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data) => {
      printed = (printed + data).slice(-20_000);
    });
  t.after(async () => {
    child.kill('SIGKILL');
    await until('it is gone', () => child.exitCode !== null || child.signalCode !== null);
    rmSync(dir, { recursive: true, force: true });
  });
  await until('it listens', () => /listens on \d+/.test(printed) || child.exitCode !== null, 60_000);
  return {
    base: `http://127.0.0.1:${/listens on (\d+)/.exec(printed)?.[1]}`,
    child,
    limit(resource, value) {
      execFileSync('prlimit', [`--pid=${child.pid}`, `--${resource}=${value ?? 'unlimited'}:`]);
    },
    printed: () => printed,
  };
}

async function transcribe({ base }: Gateway, fields: Record<string, string> = {}): Promise<string> {
  const form = new FormData();
  for (const [key, value] of Object.entries({ model: 'multilingual-base', language: 'en', ...fields }))
    form.append(key, value);
  form.append('file', new Blob([Uint8Array.from(tone)]), 'tone.wav');
  const response = await fetch(`${base}/v1/audio/transcriptions`, {
    ...{ method: 'POST', body: form, signal: AbortSignal.timeout(60_000) },
  });
  const { error } = (await response.json()) as { error?: { code: string } };
  return response.ok ? 'served' : `${response.status} ${error?.code}`;
}

const health = async ({ base }: Gateway) => (await fetch(`${base}/health`)).status;

const addressSpace = ({ child }: Gateway) =>
  1024 * Number(/VmSize:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]);

const WORDS = { response_format: 'verbose_json', 'timestamp_granularities[]': 'word' };

test('with too little memory for a model requests are refused, and the words of a loaded one need little', {
  skip: notLinux || noModel,
}, async (t) => {
  const gateway = await start(t, model);
  gateway.limit('as', addressSpace(gateway) + 100 * MIB);
  for (let i = 0; i < 3; i++) {
    assert.equal(await transcribe(gateway), '503 out_of_memory', gateway.printed());
    assert.equal(await health(gateway), 200);
  }
  gateway.limit('as', null);
  assert.equal(await transcribe(gateway), 'served');
  gateway.limit('as', addressSpace(gateway) + 60 * MIB);
  assert.equal(await transcribe(gateway, WORDS), 'served');
});

test('with few descriptors requests are served or refused, and all are served when there are enough', {
  skip: notLinux,
}, async (t) => {
  const gateway = await start(t);
  /** The limit under which that many descriptors are free. */
  const leaving = (free: number) => {
    const taken = new Set(readdirSync(`/proc/${gateway.child.pid}/fd`).map(Number));
    let limit = 0;
    for (let found = 0; found < free || taken.has(limit); limit++) if (!taken.has(limit)) found += 1;
    return limit;
  };
  assert.equal(await transcribe(gateway), 'served');
  const seen: string[] = [];
  for (let free = 0; free <= 5; free++) {
    await fetch(`${gateway.base}/admin/api/reset-asr-state`, { method: 'POST' });
    gateway.limit('nofile', leaving(free));
    // The connection of the request before is used again, so that it needs no descriptor.
    seen.push(await transcribe(gateway));
    assert.equal(await health(gateway), 200);
    gateway.limit('nofile', 1024);
    assert.equal(await transcribe(gateway), 'served');
  }
  const refused = seen.filter((result) => result !== 'served');
  assert.deepEqual([...new Set(refused)], ['503 out_of_memory'], `no disk is full: ${seen.join()}`);
  assert.equal(seen.at(-1), 'served');
});
