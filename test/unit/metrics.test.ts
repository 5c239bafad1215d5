/** The metrics have a rolling window: these tests say who is counted, for how long, and in how much memory. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { TrafficClass } from '../../src/observability/exchange.ts';
import { createMetrics } from '../../src/observability/metrics.ts';
import { percentiles } from '../../src/observability/rolling-window.ts';
import { isToggleKey } from '../../src/observability/toggles.ts';
import { exchange } from './observability-fixtures.ts';

const FREE = { holder: null, heldForMs: 0, waiting: [] };

function world(options: { windowSec?: number; capacity?: number } = {}) {
  let ms = 0;
  const metrics = createMetrics({ windowSec: 3600, ...options, now: () => ms });
  return { metrics, at: (sec: number) => (ms = sec * 1000) };
}

test('percentiles are those of a sorted list, by nearest rank', () => {
  assert.deepEqual(percentiles([4, 1, 3, 2], [25, 50, 75, 76]), [1, 2, 3, 4]);
  assert.deepEqual(percentiles([10, 9, 100], [1, 50, 99, 100]), [9, 10, 100, 100]);
  assert.deepEqual(percentiles([7], [1, 100]), [7, 7]);
  assert.deepEqual(percentiles([], [50, 95]), [null, null]);
});

test('the snapshot has the documented shape', () => {
  const { metrics, at } = world();
  at(12.5);
  const full = {
    model: 'm',
    slotWaitMs: 7,
    waitedMs: 4.4,
    audioSec: 2,
    rtf: 0.5,
    route: 'auto:hint',
    speakers: 3,
  };
  metrics.record(exchange({ ...full, requestId: 'first' }));
  metrics.record(exchange({ requestId: 'second', status: 400, class: '4xx', latencyMs: 5 }));
  const waiting = [{ category: 'asr' as const, requestId: 'w1', waitedMs: 7, isLive: false }];
  assert.deepEqual(JSON.parse(JSON.stringify(metrics.snapshot({ holder: 'tts', heldForMs: 40, waiting }))), {
    uptime_sec: 12.5,
    window_sec: 3600,
    slot: {
      held: true,
      holder: 'tts',
      held_for_ms: 40,
      waiting: [{ position: 1, category: 'asr', request_id: 'w1', waited_ms: 7 }],
    },
    categories: {
      asr: {
        total: 2,
        counts: { '2xx': 1, '4xx': 1, '5xx': 0, '503-busy': 0, 'client-disconnect': 0 },
        error_rate: 0.5,
        latency_ms: { p50: 5, p95: 100, p99: 100, max: 100 },
        slot_wait_ms: { p50: 7, p95: 7, p99: 7, max: 7 },
        audio_seconds: 2,
        rtf: { p50: 0.5, p95: 0.5 },
        diarized: 1,
        recent: [
          {
            request_id: 'second',
            at: '2026-03-04T05:06:07.000Z',
            model: null,
            status: 400,
            class: '4xx',
            latency_ms: 5,
            slot_wait_ms: null,
            provider: 'multilingual',
          },
          {
            request_id: 'first',
            at: '2026-03-04T05:06:07.000Z',
            model: 'm',
            status: 200,
            class: '2xx',
            latency_ms: 100,
            slot_wait_ms: 7,
            waited_ms: 4,
            audio_sec: 2,
            rtf: 0.5,
            speakers: 3,
            route: 'auto:hint',
            provider: 'multilingual',
          },
        ],
      },
    },
  });
});

test('only inference is counted, and only categories with traffic appear', () => {
  const { metrics } = world();
  metrics.record(exchange({ category: undefined }));
  assert.deepEqual(metrics.snapshot(FREE).categories, {});
  metrics.record(exchange({ category: 'llm' }));
  metrics.record(exchange({ category: 'asr' }));
  assert.deepEqual(Object.keys(metrics.snapshot(FREE).categories), ['asr', 'llm']);
});

test('shed load and clients that leave are no errors and do not improve the latency', () => {
  const { metrics } = world();
  const ends: [TrafficClass, number][] = [
    ['2xx', 200],
    ['2xx', 200],
    ['5xx', 502],
    ['503-busy', 503],
    ['503-busy', 503],
    ['503-busy', 503],
    ['client-disconnect', 499],
  ];
  for (const [as, status] of ends) {
    const quick = as === '503-busy' || as === 'client-disconnect';
    metrics.record(exchange({ class: as, status, latencyMs: quick ? 1 : 900 }));
  }
  metrics.record(exchange({ class: 'client-disconnect', status: 499, latencyMs: 1, slotWaitMs: 3 }));
  const asr = metrics.snapshot(FREE).categories.asr;
  assert.equal(asr?.total, 8);
  assert.equal(asr?.error_rate, 1 / 3, 'of the three that were served');
  assert.deepEqual(asr?.latency_ms, { p50: 900, p95: 900, p99: 900, max: 900 });
  assert.deepEqual(asr?.slot_wait_ms, { p50: 3, p95: 3, p99: 3, max: 3 });
  assert.equal(asr?.recent.length, 8);
});

test('the error rate is 0 where no request was served', () => {
  const { metrics } = world();
  metrics.record(exchange({ class: '503-busy', status: 503 }));
  metrics.record(exchange({ class: 'client-disconnect', status: 499 }));
  const asr = metrics.snapshot(FREE).categories.asr;
  assert.deepEqual([asr?.total, asr?.error_rate], [2, 0]);
});

test('traffic leaves with the window, counts and percentiles together, but the category stays', () => {
  const { metrics, at } = world({ windowSec: 60 });
  metrics.record(exchange({ latencyMs: 500, audioSec: 3 }));
  at(30);
  metrics.record(exchange({ latencyMs: 10, audioSec: 1 }));
  at(59.9);
  assert.equal(metrics.snapshot(FREE).categories.asr?.total, 2);
  assert.equal(metrics.snapshot(FREE).categories.asr?.latency_ms.max, 500);
  at(60);
  const later = metrics.snapshot(FREE).categories.asr;
  assert.deepEqual([later?.total, later?.latency_ms.max, later?.audio_seconds], [1, 10, 1]);
  at(100_000);
  const empty = metrics.snapshot(FREE).categories.asr;
  assert.deepEqual([empty?.total, empty?.error_rate, empty?.latency_ms.p50], [0, 0, null]);
  assert.equal(empty?.recent.length, 2);
});

test('a second does not count requests from exactly a window before it', () => {
  const { metrics, at } = world();
  at(10);
  metrics.record(exchange({ audioSec: 5 }));
  at(3610);
  assert.equal(metrics.snapshot(FREE).categories.asr?.total, 0);
  metrics.record(exchange({ audioSec: 1 }));
  const asr = metrics.snapshot(FREE).categories.asr;
  assert.deepEqual([asr?.total, asr?.audio_seconds], [1, 1]);
});

test('recent holds the last 50, newest first, with names of bounded length', () => {
  const { metrics } = world();
  for (let n = 0; n < 120; n += 1) metrics.record(exchange({ requestId: `r${n}`, model: 'x'.repeat(5000) }));
  const recent = metrics.snapshot(FREE).categories.asr?.recent ?? [];
  assert.equal(recent.length, 50);
  assert.deepEqual([recent[0]?.request_id, recent[49]?.request_id], ['r119', 'r70']);
  assert.equal(recent[0]?.model?.length, 128);
});

test('beyond the capacity the percentiles are of the newest, and the snapshot says so', () => {
  const { metrics, at } = world({ windowSec: 60, capacity: 10 });
  for (let n = 1; n <= 10; n += 1) metrics.record(exchange({ latencyMs: n }));
  assert.equal(metrics.snapshot(FREE).categories.asr?.window_truncated, undefined);
  metrics.record(exchange({ latencyMs: 11 }));
  const asr = metrics.snapshot(FREE).categories.asr;
  assert.deepEqual([asr?.window_truncated, asr?.total, asr?.latency_ms.p50], [true, 11, 6]);
  for (let n = 0; n < 100; n += 1) metrics.record(exchange({ class: '503-busy', status: 503 }));
  assert.equal(
    metrics.snapshot(FREE).categories.asr?.latency_ms.p50,
    6,
    'shed load displaced what was served',
  );
  at(61);
  metrics.record(exchange());
  assert.equal(metrics.snapshot(FREE).categories.asr?.window_truncated, undefined);
});

test('counts, percentiles and window agree with a naive record of everything', () => {
  const step = fc.record({
    wait: fc.integer({ min: 0, max: 40 }),
    as: fc.constantFrom<TrafficClass>('2xx', '4xx', '5xx', '503-busy', 'client-disconnect'),
    latencyMs: fc.integer({ min: 0, max: 50 }),
    rtf: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 80 }), (steps) => {
      const { metrics, at } = world({ windowSec: 60 });
      let now = 0;
      const all = steps.map((s) => {
        now += s.wait;
        at(now);
        metrics.record(exchange({ class: s.as, latencyMs: s.latencyMs, rtf: s.rtf }));
        return { ...s, sec: now };
      });
      const inside = all.filter((s) => s.sec > now - 60);
      const served = inside.filter((s) => s.as !== '503-busy' && s.as !== 'client-disconnect');
      const asr = metrics.snapshot(FREE).categories.asr;
      assert.equal(asr?.total, inside.length);
      assert.equal(asr?.counts['4xx'], inside.filter((s) => s.as === '4xx').length);
      const of = (values: number[]) => percentiles(values, [50, 95]);
      assert.deepEqual([asr?.latency_ms.p50, asr?.latency_ms.p95], of(served.map((s) => s.latencyMs)));
      assert.deepEqual([asr?.rtf.p50, asr?.rtf.p95], of(served.flatMap((s) => s.rtf ?? [])));
    }),
  );
});

test('requests per second are those of the last complete seconds, oldest first', () => {
  const { metrics, at } = world();
  at(100);
  metrics.record(exchange());
  at(102.2);
  metrics.record(exchange());
  metrics.record(exchange({ category: 'tts', class: '4xx', status: 400 }));
  at(102.9);
  assert.deepEqual(metrics.perSecond(3)?.['2xx'], [0, 1, 0]);
  at(103);
  assert.deepEqual(metrics.perSecond(3)?.['2xx'], [1, 0, 1]);
  assert.deepEqual(metrics.perSecond(3)?.['4xx'], [0, 0, 1]);
});

test('the history of the last hour comes in steps of 10 s for every window', () => {
  const { metrics, at } = world({ windowSec: 30 });
  at(5);
  metrics.record(exchange({ latencyMs: 1, rtf: 0.1 }));
  metrics.record(exchange({ latencyMs: 3 }));
  at(35);
  metrics.record(exchange());
  at(3599);
  metrics.record(exchange({ latencyMs: 8, class: '5xx', status: 500 }));
  const { step_sec, categories } = metrics.series();
  assert.equal(step_sec, 10);
  const asr = categories.asr;
  assert.deepEqual([asr?.latency_ms.p50[0], asr?.latency_ms.p99[0], asr?.latency_ms.p95[359]], [1, 3, 8]);
  assert.deepEqual([asr?.latency_ms.p50[1], asr?.rtf_p50[0]], [null, 0.1]);
  at(3610);
  assert.equal(metrics.series().categories.asr?.latency_ms.p50[0], null);
});

test('a million requests take no memory, and a full snapshot little time', () => {
  const { metrics, at } = world();
  const one = { asr: exchange(), tts: exchange({ category: 'tts' }), llm: exchange({ category: 'llm' }) };
  const fill = (count: number, from: number) => {
    for (let n = 0; n < count; n += 1) {
      at(from + n / 2000);
      const next = n % 3 === 0 ? one.asr : n % 3 === 1 ? one.tts : one.llm;
      next.latencyMs = (n * 7919) % 10_007;
      next.slotWaitMs = n % 97;
      next.rtf = (n % 89) / 100;
      metrics.record(next);
    }
  };
  const memory = () => process.memoryUsage().heapUsed + process.memoryUsage().arrayBuffers;
  fill(200_000, 0);
  metrics.snapshot(FREE);
  const before = memory();
  fill(1_000_000, 100);
  assert(memory() - before < 50 * 1024 * 1024, `grew by ${memory() - before} bytes`);

  const took = Array.from({ length: 9 }, () => {
    const start = performance.now();
    metrics.snapshot(FREE);
    return performance.now() - start;
  }).sort((a, b) => a - b);
  // An idle machine takes an eighth of this. The best of nine counts, because tests share the processor.
  assert((took[0] ?? 0) < 250, `a snapshot took ${took[0]} ms`);
});

test('toggles are known by name', () => {
  assert(isToggleKey('payload') && !isToggleKey('toString') && !isToggleKey(undefined));
});

test('each percentile is of its own rank, in the snapshot and in the series', () => {
  const { metrics, at } = world();
  at(5);
  for (let n = 1; n <= 100; n += 1) metrics.record(exchange({ latencyMs: n, slotWaitMs: n, rtf: n }));
  const { latency_ms, slot_wait_ms, rtf, diarized } = metrics.snapshot(FREE).categories.asr ?? {};
  const spread = { p50: 50, p95: 95, p99: 99, max: 100 };
  assert.deepEqual(
    [latency_ms, slot_wait_ms, rtf, diarized],
    [spread, spread, { p50: 50, p95: 95 }, undefined],
  );
  const { latency_ms: latency, rtf_p50 } = metrics.series().categories.asr ?? {};
  assert.deepEqual(
    [latency?.p50.at(-1), latency?.p95.at(-1), latency?.p99.at(-1), rtf_p50?.at(-1)],
    [50, 95, 99, 50],
  );
});
