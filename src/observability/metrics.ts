/**
 * The traffic of the last hour, for `GET /admin/api/metrics` and the dashboard (contract 2.4).
 *
 * - Counts, total, error rate, audio and percentiles all cover the same window, so that they describe the same
 *   traffic; Prometheus has the counters since the start. The window consists of whole seconds, ends with the current
 *   one, and holds the requests that ended in it.
 * - Percentiles are exact, by nearest rank, over the requests that were served. `503-busy` and `client-disconnect` are
 *   left out, so that load shedding does not look like speed. The slot wait covers all requests that took the slot.
 * - Memory is bounded: counts are exact, but percentiles use at most `capacity` samples of a category. When the window
 *   had more, they cover the newest samples and the snapshot has `window_truncated`.
 */
import { CATEGORIES, type Category } from '../category.ts';
import { type Exchange, TRAFFIC_CLASSES, type TrafficClass } from './exchange.ts';
import { percentiles } from './percentiles.ts';
import { createSamples, type Samples } from './samples.ts';
import { createTraffic, type Traffic } from './traffic.ts';

const RECENT = 50;
const SERIES_STEP_SEC = 10;
const SERIES_SPAN_SEC = 3600;
const MODEL_NAME_CHARS = 128;

/** A measured value; null when nothing was measured. */
type Figure = number | null;

export interface MetricsSample {
  request_id: string;
  /** The time of arrival, ISO 8601 in UTC. */
  at: string;
  model: string | null;
  status: number;
  class: TrafficClass;
  latency_ms: number;
  slot_wait_ms: number | null;
  /** The part of `slot_wait_ms` for which a request with `Prefer: wait` waited. */
  waited_ms?: number;
  audio_sec?: number;
  rtf?: number;
  speakers?: number;
  route?: string;
  provider: string;
}

export interface CategorySnapshot {
  total: number;
  counts: Record<TrafficClass, number>;
  /** (4xx + 5xx) / (2xx + 4xx + 5xx), the share of errors among the requests served; 0 when there were none. */
  error_rate: number;
  latency_ms: { p50: Figure; p95: Figure; p99: Figure; max: Figure };
  slot_wait_ms: { p50: Figure; p95: Figure; p99: Figure; max: Figure };
  audio_seconds: number;
  rtf: { p50: Figure; p95: Figure };
  /** The requests whose speakers were told apart; absent when there were none. */
  diarized?: number;
  /** Present only when the percentiles do not cover the whole window. */
  window_truncated?: true;
  /** The last 50 requests of every class, newest first, also when they are older than the window. */
  recent: MetricsSample[];
}

export interface MetricsSnapshot {
  uptime_sec: number;
  window_sec: number;
  slot: {
    held: boolean;
    holder: Category | null;
    held_for_ms: number;
    /** The requests that asked to wait, in the order in which they will be served. */
    waiting: { position: number; category: Category; request_id: string; waited_ms: number }[];
  };
  /** The categories that had traffic since the start. */
  categories: Partial<Record<Category, CategorySnapshot>>;
}

/** The values of each second, oldest first. */
export type RateSeries = Partial<Record<Category, Record<TrafficClass, number[]>>>;

/** The values of each step, oldest first. */
export interface HistorySeries {
  stepSec: number;
  categories: Partial<
    Record<
      Category,
      {
        counts: Record<TrafficClass, number[]>;
        latencyMs: { p50: Figure[]; p95: Figure[]; p99: Figure[] };
        rtfP50: Figure[];
      }
    >
  >;
}

/** The state of the slot and of the line before it. */
export interface SlotNow {
  holder: Category | null;
  heldForMs: number;
  waiting: readonly { category: Category; requestId: string; waitedMs: number }[];
}

export interface Metrics {
  /** Counts an exchange. One without a category is not inference and is left out. */
  record(exchange: Exchange): void;
  snapshot(slot: SlotNow): MetricsSnapshot;
  /** The requests in each of the last complete seconds. @param seconds is clamped to 1 to 600 */
  perSecond(seconds: number): RateSeries;
  /** The last hour in steps of 10 s. The last step is the current one, so its counts still grow. */
  series(): HistorySeries;
}

export interface MetricsOptions {
  windowSec: number;
  /** The number of samples of each category that percentiles can use. */
  capacity?: number;
  /** Milliseconds since the process started; they must not go back. */
  now?: () => number;
}

interface Kept {
  traffic: Traffic;
  samples: Samples;
  recent: MetricsSample[];
}

export function createMetrics({ windowSec, capacity = 32_768, now }: MetricsOptions): Metrics {
  const clock = now ?? (() => performance.now());
  const second = () => Math.floor(clock() / 1000);
  const kept = new Map<Category, Kept>();

  const begin = (category: Category): Kept => {
    const fresh: Kept = {
      traffic: createTraffic(Math.max(windowSec, SERIES_SPAN_SEC)),
      samples: createSamples(capacity),
      recent: [],
    };
    kept.set(category, fresh);
    return fresh;
  };

  /** A view of each category with traffic, in the order of CATEGORIES. */
  const each = <T>(view: (kept: Kept) => T): Partial<Record<Category, T>> => {
    const views: Partial<Record<Category, T>> = {};
    for (const category of CATEGORIES) {
      const entry = kept.get(category);
      if (entry !== undefined) views[category] = view(entry);
    }
    return views;
  };

  return {
    record(exchange) {
      if (exchange.category === undefined) return;
      const { traffic, samples, recent } = kept.get(exchange.category) ?? begin(exchange.category);
      const at = second();
      traffic.add(at, exchange.class, {
        audioSec: exchange.audioSec ?? 0,
        diarized: exchange.speakers === undefined ? 0 : 1,
      });
      const served = exchange.class !== '503-busy' && exchange.class !== 'client-disconnect';
      const { latencyMs, slotWaitMs = Number.NaN, rtf = Number.NaN } = exchange;
      if (served) samples.push(at, { latencyMs, slotWaitMs, rtf });
      else if (!Number.isNaN(slotWaitMs)) {
        samples.push(at, { latencyMs: Number.NaN, slotWaitMs, rtf: Number.NaN });
      }
      recent.unshift(toSample(exchange));
      if (recent.length > RECENT) recent.pop();
    },
    snapshot({ holder, heldForMs, waiting }) {
      const to = second();
      const from = to - windowSec + 1;
      return {
        uptime_sec: Math.round(clock()) / 1000,
        window_sec: windowSec,
        slot: {
          ...{ held: holder !== null, holder, held_for_ms: heldForMs },
          waiting: waiting.map(({ category, requestId, waitedMs }, before) => ({
            ...{ position: before + 1, category, request_id: requestId, waited_ms: waitedMs },
          })),
        },
        categories: each((entry) => summarize(entry, from, to)),
      };
    },
    perSecond(seconds) {
      const count = Math.min(600, Math.max(1, Math.floor(seconds)));
      return each(({ traffic }) => countSteps(traffic, second() - count, count, 1));
    },
    series() {
      const count = SERIES_SPAN_SEC / SERIES_STEP_SEC;
      const first = (Math.floor(second() / SERIES_STEP_SEC) + 1) * SERIES_STEP_SEC - SERIES_SPAN_SEC;
      return {
        stepSec: SERIES_STEP_SEC,
        categories: each(({ traffic, samples }) => {
          const counts = countSteps(traffic, first, count, SERIES_STEP_SEC);
          const steps = Array.from({ length: count }, (_, k) => {
            const from = first + k * SERIES_STEP_SEC;
            const to = from + SERIES_STEP_SEC - 1;
            return {
              latency: percentiles(samples.values('latencyMs', from, to), [50, 95, 99]),
              rtf: percentiles(samples.values('rtf', from, to), [50])[0],
            };
          });
          return {
            counts,
            latencyMs: {
              p50: steps.map((s) => s.latency[0]),
              p95: steps.map((s) => s.latency[1]),
              p99: steps.map((s) => s.latency[2]),
            },
            rtfP50: steps.map((s) => s.rtf),
          };
        }),
      };
    },
  };
}

function summarize({ traffic, samples, recent }: Kept, from: number, to: number): CategorySnapshot {
  const { counts, audioSec, diarized } = traffic.sum(from, to);
  const total = TRAFFIC_CLASSES.reduce((sum, name) => sum + counts[name], 0);
  const errors = counts['4xx'] + counts['5xx'];
  const served = errors + counts['2xx'];
  const spread = (column: 'latencyMs' | 'slotWaitMs') => {
    const [p50, p95, p99, max] = percentiles(samples.values(column, from, to), [50, 95, 99, 100]);
    return { p50, p95, p99, max };
  };
  const [p50, p95] = percentiles(samples.values('rtf', from, to), [50, 95]);
  return {
    total,
    counts,
    error_rate: served === 0 ? 0 : errors / served,
    latency_ms: spread('latencyMs'),
    slot_wait_ms: spread('slotWaitMs'),
    audio_seconds: Math.round(audioSec * 1000) / 1000,
    rtf: { p50, p95 },
    ...(diarized > 0 ? { diarized } : {}),
    ...(samples.truncatedSince(from) ? { window_truncated: true as const } : {}),
    recent: [...recent],
  };
}

function countSteps(traffic: Traffic, first: number, count: number, stepSec: number) {
  const steps = Array.from({ length: count }, (_, k) => {
    const from = first + k * stepSec;
    return traffic.sum(from, from + stepSec - 1).counts;
  });
  const named = TRAFFIC_CLASSES.map((name) => [name, steps.map((counts) => counts[name])]);
  return Object.fromEntries(named) as Record<TrafficClass, number[]>;
}

function toSample(exchange: Exchange): MetricsSample {
  const { audioSec, rtf, speakers, route, waitedMs } = exchange;
  return {
    request_id: exchange.requestId,
    at: exchange.at.toISOString(),
    // A client may send any name, and the recent samples must stay small.
    model: exchange.model?.slice(0, MODEL_NAME_CHARS) ?? null,
    status: exchange.status,
    class: exchange.class,
    latency_ms: exchange.latencyMs,
    slot_wait_ms: exchange.slotWaitMs ?? null,
    ...(waitedMs === undefined ? {} : { waited_ms: Math.round(waitedMs) }),
    ...(audioSec === undefined ? {} : { audio_sec: audioSec }),
    ...(rtf === undefined ? {} : { rtf }),
    ...(speakers === undefined ? {} : { speakers }),
    ...(route === undefined ? {} : { route }),
    provider: exchange.provider,
  };
}
