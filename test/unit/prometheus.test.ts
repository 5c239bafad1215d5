/** The Prometheus series have the right format, and no client can make new ones. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { BUDGETS } from '../../src/limits/budgets.ts';
import { createPrometheus, type UpstreamNow } from '../../src/observability/prometheus.ts';
import { exchange, IDLE } from './observability-fixtures.ts';

test('an exchange becomes series, in seconds', async () => {
  const prometheus = createPrometheus({ ...IDLE, knownModels: ['m'] });
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
  const prometheus = createPrometheus({ ...IDLE, knownModels: ['m'] });
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
  const prometheus = createPrometheus({ ...IDLE, knownModels: ['m'] });
  for (let n = 0; n < 1000; n += 1) prometheus.record(exchange({ model: `evil-${n}`, rtf: 1, audioSec: 1 }));
  prometheus.record(exchange({ model: undefined }));
  prometheus.modelLoaded('evil', 1);
  const text = await prometheus.render();
  assert(!text.includes('evil'));
  assert(text.includes('voxgate_requests_total{category="asr",class="2xx",model="other"} 1001\n'));
});

const WAITING = [
  { category: 'asr', requestId: 'a', waitedMs: 900, isLive: false },
  { category: 'asr', requestId: 'b', waitedMs: 30, isLive: true },
] as const;

test('an answer is counted by how it ended, and its stages are timed as far as it came', async () => {
  const prometheus = createPrometheus(IDLE);
  const stagesMs = { text: 200, slot: 0, chat: 300, speech: 100 };
  prometheus.answered({ status: 'completed', reason: '', stagesMs, firstAudioMs: 600 });
  prometheus.answered({ status: 'cancelled', reason: 'turn_detected', stagesMs: { slot: 40 } });
  const text = await prometheus.render();
  for (const line of [
    'voxgate_conversation_answers_total{status="completed",reason=""} 1',
    'voxgate_conversation_answers_total{status="cancelled",reason="turn_detected"} 1',
    'voxgate_conversation_first_audio_seconds_sum 0.6',
    'voxgate_conversation_first_audio_seconds_count 1',
    'voxgate_conversation_stage_seconds_sum{stage="slot"} 0.04',
    'voxgate_conversation_stage_seconds_count{stage="slot"} 2',
    'voxgate_conversation_stage_seconds_count{stage="speech"} 1',
  ])
    assert(text.includes(`${line}\n`), `missing: ${line}`);
});

test('models come and go, and the slot is asked at every scrape', async () => {
  let holder: 'llm' | null = null;
  const prometheus = createPrometheus({
    ...IDLE,
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
  assert(second.includes('voxgate_slot_waiting{category="asr",source="request"} 1\n'));
  assert(second.includes('voxgate_slot_waiting{category="asr",source="live"} 1\n'));
  assert(second.includes('voxgate_slot_waiting{category="tts",source="live"} 0\n'));
});

test('calls of an upstream are counted by the models that it lists, up to a bound', async () => {
  const { maxUpstreamModels } = BUDGETS.metrics;
  const listed = ['llama3:latest', ...Array.from({ length: maxUpstreamModels }, (_, n) => `listed-${n}`)];
  const nameOf = (category: string, model: string) =>
    category === 'llm' ? listed.find((name) => name.split(':')[0] === model) : undefined;
  const prometheus = createPrometheus({ ...IDLE, upstreams: { ...IDLE.upstreams, nameOf } });
  for (const model of ['llama3', 'made-up', ...listed.slice(1)])
    for (const path of ['/v1/chat/completions', '/v1/embeddings'])
      prometheus.record(exchange({ category: 'llm', path, model }));
  prometheus.record(exchange({ category: 'asr', model: 'listed-0' }));
  const text = await prometheus.render();
  const labels = new Map(
    [...text.matchAll(/^voxgate_requests_total\{(category="\w+"),.*model="(.+)"\} (\d+)$/gm)].map(
      ([, category, model, count]) => [`${category} ${model}`, count],
    ),
  );
  assert.equal(labels.get('category="llm" llama3:latest'), '2');
  assert.equal(labels.get('category="llm" listed-0'), '2');
  assert.equal(labels.get('category="llm" other'), '4', 'a made up name, and one above the bound');
  assert.equal(labels.get('category="asr" other'), '1');
  assert.equal(labels.size, maxUpstreamModels + 2);
});

test('upstreams, live sessions and the build are told at every scrape', async () => {
  let problem: UpstreamNow['problem'] = null;
  const prometheus = createPrometheus({
    ...IDLE,
    liveSessions: () => [{ protocol: 'wyoming' }, { protocol: 'wyoming' }],
    upstreams: {
      ...IDLE.upstreams,
      health: async () => [
        { category: 'llm', problem, isAbsent: false },
        { category: 'tts', problem: { kind: 'refused' }, isAbsent: true },
      ],
    },
  });
  const serving = await prometheus.render();
  assert(serving.includes('voxgate_upstream_up{upstream="llm"} 1\n'));
  assert(serving.includes('voxgate_upstream_problem{upstream="llm",cause="tls"} 0\n'));
  assert(!serving.includes('upstream="tts"'), 'an upstream that is meant to be absent alarms nobody');
  assert(serving.includes('voxgate_live_sessions{protocol="realtime"} 0\n'));
  assert(serving.includes('voxgate_live_sessions{protocol="wyoming"} 2\n'));
  assert(serving.includes('voxgate_build_info{version="1.2.3",cpu="avx2",device="cpu"} 1\n'));
  problem = { kind: 'tls' };
  const failing = await prometheus.render();
  assert(failing.includes('voxgate_upstream_up{upstream="llm"} 0\n'));
  assert(failing.includes('voxgate_upstream_problem{upstream="llm",cause="tls"} 1\n'));
  assert(failing.includes('voxgate_upstream_problem{upstream="llm",cause="refused"} 0\n'));
});

test('a figure that is no number is left out instead of thrown', async () => {
  const prometheus = createPrometheus(IDLE);
  prometheus.record(exchange({ rtf: Number.POSITIVE_INFINITY, audioSec: Number.NaN, latencyMs: -1 }));
  const text = await prometheus.render();
  assert(text.includes('voxgate_requests_total{category="asr",class="2xx",model="other"} 1\n'));
  assert(!text.includes('voxgate_audio_seconds_total{'));
});

test('two gateways in one process do not share series, and a closed one has none', async () => {
  const one = createPrometheus(IDLE);
  const two = createPrometheus(IDLE);
  one.record(exchange());
  assert(!(await two.render()).includes('voxgate_requests_total{'));
  one.close();
  assert(!(await one.render()).includes('voxgate_'));
  assert((await two.render()).includes('voxgate_slot_held{'));
});

test('the registry does not keep the process alive', () => {
  const source = new URL('../../src/observability/prometheus.ts', import.meta.url).href;
  const fixtures = new URL('./observability-fixtures.ts', import.meta.url).href;
  const script = `
    const { createPrometheus } = await import(${JSON.stringify(source)});
    const { IDLE } = await import(${JSON.stringify(fixtures)});
    const p = createPrometheus(IDLE);
    await p.render();
    console.log('rendered');`;
  const out = execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
    timeout: 20_000,
    encoding: 'utf8',
  });
  assert.equal(out, 'rendered\n');
});
