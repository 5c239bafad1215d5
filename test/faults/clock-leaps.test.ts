/**
 * The wall clock leaps a day forwards and two days back while the gateway works: what takes time is measured by a clock
 * that does not leap, and only dates follow.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { MetricsSnapshot } from '../../src/observability/metrics.ts';
import { compilePreloadLibrary } from '../preload-library.ts';
import { program } from '../program.ts';
import { until } from '../until.ts';
import { wav } from '../wav.ts';
import { writeWeights } from './fail-nth/weights.ts';

const DAY_SEC = 86_400;
const KEY = 'k1';
const authorized = { Authorization: `Bearer ${KEY}` };
const tone = wav(
  Float32Array.from({ length: 16_000 }, (_, i) => 0.5 * Math.sin((2 * Math.PI * 440 * i) / 16_000)),
);

/** Runs a gateway whose wall clock `leap` shifts. Returns a reason where that cannot be done. */
async function start(t: TestContext) {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-clock-'));
  let gateway: ChildProcess | undefined;
  t.after(async () => {
    // It must be gone first: what it writes into the folder would make the removal fail.
    gateway?.kill('SIGKILL');
    await until('it is gone', () => !gateway || gateway.exitCode !== null || gateway.signalCode !== null);
    rmSync(dir, { recursive: true, force: true });
  });
  const library = compilePreloadLibrary(new URL('./leap-clock.c', import.meta.url), dir);
  if (library.skip !== false) return library.skip;
  await writeWeights(dir);
  const clock = join(dir, 'clock');
  const leap = (sec: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(sec));
    writeFileSync(clock, bytes, { flag: 'r+' }); // a mapped file must keep its size
  };
  writeFileSync(clock, Buffer.alloc(8));
  const child = spawn(process.execPath, [...program('test/faults/fail-nth/gateway.ts'), dir], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...{ ...process.env, LD_PRELOAD: library.path, VOXGATE_CLOCK_LEAP: clock, SVC_API_KEY: KEY, TZ: 'UTC' },
      ...{
        SVC_OBS_PAYLOAD_ENABLED: '1',
        SVC_MODEL_KEEP_ALIVE_SEC: '600',
        SVC_MAX_HOLD_SEC: '300',
        SVC_TRUST_PROXY: 'loopback',
      },
    },
  });
  gateway = child;
  let printed = '';
  child.stdout.on('data', (data) => {
    printed += data;
  });
  await until('it listens', () => /listens on \d+/.test(printed) || child.exitCode !== null, 60_000);
  const base = `http://127.0.0.1:${/listens on (\d+)/.exec(printed)?.[1]}`;
  return { base, dir, leap, printed: () => printed };
}

async function form(): Promise<{ headers: Record<string, string>; body: Buffer }> {
  const data = new FormData();
  for (const [key, value] of Object.entries({ model: 'multilingual-base', language: 'en' }))
    data.append(key, value);
  data.append('file', new Blob([Uint8Array.from(tone)]), 'tone.wav');
  const whole = new Request('http://x', { method: 'POST', body: data });
  const type = whole.headers.get('content-type') ?? '';
  const body = Buffer.from(await whole.arrayBuffer());
  return { headers: { ...authorized, 'Content-Type': type, 'Content-Length': String(body.length) }, body };
}

/** Sends a transcription. `between` happens when one half of it has arrived. */
async function transcribe(base: string, between: () => void = () => undefined): Promise<number> {
  const { headers, body } = await form();
  return new Promise((resolve, reject) => {
    const sent = request(`${base}/v1/audio/transcriptions`, { method: 'POST', headers }, (response) => {
      response.resume().once('end', () => resolve(response.statusCode ?? 0));
    });
    sent.once('error', reject);
    sent.write(body.subarray(0, body.length / 2), () => {
      setImmediate(() => {
        between();
        sent.end(body.subarray(body.length / 2));
      });
    });
  });
}

/** The lines of the access log, with the day in the name of their file. */
function logged(dir: string): { day: string; ts: string; status: number; latency_ms: number }[] {
  return readdirSync(join(dir, 'logs')).flatMap((name) =>
    readFileSync(join(dir, 'logs', name), 'utf8')
      .split('\n')
      .slice(0, -1) // of a line that is being written, the end is missing
      .map((line) => ({ day: name.slice('access-'.length, -'.jsonl'.length), ...JSON.parse(line) })),
  );
}

test('a wall clock that leaps changes dates, and no deadline, rate, session or measurement', async (t) => {
  const gateway = await start(t);
  if (typeof gateway === 'string') return t.skip(gateway);
  const { base, dir, leap } = gateway;
  const ask = (path: string, headers: Record<string, string>) => fetch(base + path, { headers });
  const signedIn = await fetch(`${base}/admin/session`, {
    ...{
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ key: KEY }),
    },
  });
  const Cookie = signedIn.headers.get('set-cookie')?.split(';', 1)[0] ?? '';
  assert.equal(await transcribe(base), 200);

  for (const [i, sec] of [DAY_SEC, -DAY_SEC].entries()) {
    const guesser = `203.0.113.${i}`;
    const guess = (key: string) =>
      ask('/v1/models', { Authorization: `Bearer ${key}`, 'X-Forwarded-For': guesser });
    const began = performance.now();
    for (let wrong = 0; wrong < 10; wrong++) await guess(`wrong ${wrong}`);
    const refused = await guess('one more');
    assert.equal(refused.status, 429);

    assert.equal(
      await transcribe(base, () => leap(sec)),
      200,
      'the upload under way is neither late nor stalled',
    );
    const still = await guess('one more');
    assert(
      still.status === 429 || performance.now() - began > 50_000,
      'wrong keys are remembered for a minute',
    );
    assert(Number(still.headers.get('retry-after')) <= Number(refused.headers.get('retry-after')));
    const metrics = await ask('/admin/api/metrics', { Cookie });
    assert.equal(metrics.status, 200, 'the session goes on');
    const { uptime_sec, categories, slot } = (await metrics.json()) as MetricsSnapshot;
    assert(uptime_sec > 0 && uptime_sec < 3600, `${uptime_sec} s`);
    assert(slot.held_for_ms < 60_000);
    assert.equal(categories.asr?.total, i + 2, 'what was counted before is still in the window');
    assert((categories.asr?.latency_ms.max ?? -1) < 60_000);
    await until('the chart has every request', async () => {
      const answer = await ask('/admin/api/series?only=rate', { Cookie });
      const { rate } = (await answer.json()) as { rate: { counts: { '2xx': number[] } } };
      return rate.counts['2xx'].reduce((sum, count) => sum + count, 0) === i + 2;
    });
  }
  const today = Date.now();
  const isOf = (sec: number) => (line: { ts: string }) =>
    Math.abs(Date.parse(line.ts) - today - sec * 1000) < 600_000;
  await until('the log has lines of each day', () =>
    [0, DAY_SEC, -DAY_SEC].every((sec) => logged(dir).some(isOf(sec))),
  );
  const lines = logged(dir);
  for (const { day, ts, latency_ms } of lines) {
    assert.equal(day, ts.slice(0, 10), 'a line stands in the file of its own day');
    assert(latency_ms >= 0 && latency_ms < 60_000, `${latency_ms} ms`);
  }
  assert.doesNotMatch(gateway.printed(), /"level":"error"/);
});
