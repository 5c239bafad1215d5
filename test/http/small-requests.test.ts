/**
 * Small requests that stopped earlier versions of the gateway are sent to the built one, as a process of its own: each
 * is answered in a moment and in little memory.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { leastOf } from '../cost.ts';
import { vorbisOfGigabytes } from '../hostile-audio.ts';
import { wav } from '../wav.ts';
import { type Served, serve } from './served.ts';

/** Earlier versions took seconds. Some of these start a process, which a busy machine makes slow. */
const MAX_MS = 250;
/** Wall time counts, and the machine may be busy with other work. */
const RUNS = 10;
const MAX_GROWTH_MIB = 50;

/** The most memory that a process has had since `forgetPeak`, MiB (VmHWM of proc_pid_status(5)). */
const peakMiB = ({ child }: Served) =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024;
/** Lets the peak start again at what the process has now (5 in proc_pid_clear_refs(5)). */
const forgetPeak = ({ child }: Served) => writeFileSync(`/proc/${child.pid}/clear_refs`, '5');

const speech = wav(new Float32Array(16_000), 16_000);

function formWith(name: string, value: string): FormData {
  const form = new FormData();
  form.append(name, value);
  form.append('file', new Blob([speech]), 'speech.wav');
  return form;
}

function formOf(file: Buffer): FormData {
  const form = new FormData();
  form.append('file', new Blob([file]), 'speech.ogg');
  return form;
}

const ROWS: [what: string, form: () => FormData, status?: number][] = [
  ['a temperature of 40,000 digits', () => formWith('temperature', `${'1'.repeat(40_000)}x`)],
  ['a temperature of a mebibyte', () => formWith('temperature', `${'1'.repeat(1024 * 1024)}x`)],
  ['a model of 60 KiB', () => formWith('model', 'a'.repeat(60 * 1024))],
  ['an index of 30 million', () => formWith('keywords[30000000]', 'x'), 200],
  ['the highest index', () => formWith('keywords[4294967294]', 'x'), 200],
  ['an index of 20 million in a single field', () => formWith('model[20000000]', 'x')],
  ['5,000 levels', () => formWith(`model${'[b]'.repeat(5000)}`, 'x')],
  ['5,000 levels of a field that is not known', () => formWith(`x${'[b]'.repeat(5000)}`, 'x'), 200],
  ['a Vorbis file of 3 kB that asks for gigabytes', () => formOf(vorbisOfGigabytes())],
];

test('small requests that stopped earlier versions are answered in a moment and in little memory', async (t) => {
  await using served = await serve();
  const send = (form: FormData) =>
    fetch(`${served.base}/v1/audio/transcriptions`, { method: 'POST', body: form });
  // The first requests compile and load code whose cost is not the request's.
  for (const [, form] of ROWS) await send(form());
  for (const [what, form, status = 400] of ROWS) {
    forgetPeak(served);
    const before = peakMiB(served);
    const ms = await leastOf(
      MAX_MS,
      async () => {
        const body = form();
        const startedAt = performance.now();
        const response = await send(body);
        const text = await response.text();
        assert.equal(response.status, status, `${what}: ${text}`);
        return performance.now() - startedAt;
      },
      RUNS,
    );
    const grown = peakMiB(served) - before;
    assert(ms < MAX_MS, `${what}: ${ms} ms`);
    assert(grown < MAX_GROWTH_MIB, `${what}: ${grown} MiB more`);
    t.diagnostic(`${what}: ${ms.toFixed(1)} ms, ${grown.toFixed(1)} MiB more`);
  }
});
