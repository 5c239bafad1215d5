/** The Prometheus series have the right format, and no client can make new ones. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { createPrometheus } from '../../src/observability/prometheus.ts';
import { exchange } from './observability-fixtures.ts';

const FREE = () => ({ holder: null, heldForMs: 0, waiting: [] });

test('an exchange becomes series, in seconds', async () => {
  const prometheus = createPrometheus({ knownModels: ['m'], slot: FREE });
  prometheus.record(
    exchange({ model: 'm', latencyMs: 300, slotWaitMs: 20, audioSec: 4, rtf: 0.05, bytesIn: 7, bytesOut: 9 }),
  );
  prometheus.record(exchange({ class: 'client-disconnect', status: 499, speakers: 3, diarizationSec: 1.5 }));
  prometheus.record(exchange({ category: undefined }));
  const text = await prometheus.render();
  for (const line of [
    'voxgate_requests_total{category="asr",class="2xx",model="m"} 1',
    'voxgate_request_duration_seconds_bucket{le="0.25",category="asr",class="2xx"} 0',
    'voxgate_request_duration_seconds_bucket{le="0.5",category="asr",class="2xx"} 1',
    'voxgate_request_duration_seconds_sum{category="asr",class="2xx"} 0.3',
    'voxgate_slot_wait_seconds_sum{category="asr"} 0.02',
    'voxgate_real_time_factor_ratio_bucket{le="0.05",category="asr",model="m"} 1',
    'voxgate_audio_seconds_total{category="asr",model="m"} 4',
    'voxgate_speakers_bucket{le="2"} 0',
    'voxgate_speakers_bucket{le="3"} 1',
    'voxgate_speakers_count 1',
    'voxgate_diarization_seconds_sum 1.5',
    'voxgate_request_body_bytes_total{category="asr"} 17',
    'voxgate_response_body_bytes_total{category="asr"} 29',
  ]) {
    assert(text.includes(`${line}\n`), `missing: ${line}\n${text}`);
  }
  assert.match(prometheus.contentType, /^text\/plain; version=0\.0\.4/);
});

test('every line is of the exposition format, and every family has help and type once', async () => {
  const prometheus = createPrometheus({ knownModels: ['m'], slot: FREE });
  prometheus.record(exchange({ model: 'm', slotWaitMs: 1, audioSec: 1, rtf: 1 }));
  const lines = (await prometheus.render()).split('\n').filter((line) => line !== '');
  const sample =
    /^[a-z_][a-z0-9_]*(\{[a-zA-Z_]+="[^"]*"(,[a-zA-Z_]+="[^"]*")*\})? -?([0-9.e+-]+|Nan|[+-]Inf)( \d+)?$/i;
  for (const line of lines) assert(/^# (HELP|TYPE) /.test(line) || sample.test(line), line);
  const types = lines.filter((line) => line.startsWith('# TYPE ')).map((line) => line.split(' ')[2]);
  assert.equal(new Set(types).size, types.length);
  assert(types.includes('process_cpu_seconds_total') && types.includes('nodejs_eventloop_lag_seconds'));
});

test('a name that a client gives never becomes a label', async () => {
  const prometheus = createPrometheus({ knownModels: ['m'], slot: FREE });
  for (let n = 0; n < 1000; n += 1) prometheus.record(exchange({ model: `evil-${n}`, rtf: 1, audioSec: 1 }));
  prometheus.record(exchange({ model: undefined }));
  prometheus.modelLoaded('evil', 1);
  const text = await prometheus.render();
  assert(!text.includes('evil'));
  assert(text.includes('voxgate_requests_total{category="asr",class="2xx",model="other"} 1001\n'));
});

const WAITING = [
  { category: 'asr', requestId: 'a', waitedMs: 900 },
  { category: 'asr', requestId: 'b', waitedMs: 30 },
] as const;

test('models come and go, and the slot is asked at every scrape', async () => {
  let holder: 'llm' | null = null;
  const prometheus = createPrometheus({
    knownModels: ['m'],
    slot: () => ({ holder, heldForMs: holder ? 1500 : 0, waiting: holder ? WAITING : [] }),
  });
  prometheus.modelLoaded('m', 0.25);
  prometheus.modelLoaded('m', 0.05); // another takes its place
  prometheus.modelUnloaded('m');
  const first = await prometheus.render();
  assert(first.includes('voxgate_model_loaded{model="m"} 1\n'));
  assert(first.includes('voxgate_model_load_seconds_sum{model="m"} 0.3\n'));
  assert(first.includes('voxgate_slot_held{category="llm"} 0\n'));
  holder = 'llm';
  prometheus.modelUnloaded('m');
  const second = await prometheus.render();
  assert(second.includes('voxgate_model_loaded{model="m"} 0\n'));
  assert(second.includes('voxgate_slot_held{category="llm"} 1\n'));
  assert(second.includes('voxgate_slot_held{category="asr"} 0\n'));
  assert(second.includes('voxgate_slot_held_seconds 1.5\n'));
  assert(first.includes('voxgate_slot_longest_wait_seconds 0\n'));
  assert(second.includes('voxgate_slot_longest_wait_seconds 0.9\n'));
  assert(second.includes('voxgate_slot_waiting{category="asr"} 2\n'));
  assert(second.includes('voxgate_slot_waiting{category="tts"} 0\n'));
});

test('a figure that is no number is left out instead of thrown', async () => {
  const prometheus = createPrometheus({ knownModels: [], slot: FREE });
  prometheus.record(exchange({ rtf: Number.POSITIVE_INFINITY, audioSec: Number.NaN, latencyMs: -1 }));
  const text = await prometheus.render();
  assert(text.includes('voxgate_requests_total{category="asr",class="2xx",model="other"} 1\n'));
  assert(!text.includes('voxgate_audio_seconds_total{'));
});

test('two gateways in one process do not share series, and a closed one has none', async () => {
  const one = createPrometheus({ knownModels: [], slot: FREE });
  const two = createPrometheus({ knownModels: [], slot: FREE });
  one.record(exchange());
  assert(!(await two.render()).includes('voxgate_requests_total{'));
  one.close();
  assert(!(await one.render()).includes('voxgate_'));
  assert((await two.render()).includes('voxgate_slot_held{'));
});

test('the registry does not keep the process alive', () => {
  const source = new URL('../../src/observability/prometheus.ts', import.meta.url).href;
  const script = `
    const { createPrometheus } = await import(${JSON.stringify(source)});
    const p = createPrometheus({ knownModels: [], slot: () => ({ holder: null, heldForMs: 0, waiting: [] }) });
    await p.render();
    console.log('rendered');`;
  const out = execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
    timeout: 20_000,
    encoding: 'utf8',
  });
  assert.equal(out, 'rendered\n');
});
