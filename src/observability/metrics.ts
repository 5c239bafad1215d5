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
import { excerpt } from '../errors.ts';
import { type Exchange, TRAFFIC_CLASSES, type TrafficClass } from './exchange.ts';
import { createRollingWindow, type Measurement, percentiles, type RollingWindow } from './rolling-window.ts';

/** Those of a snapshot (contract 2.4.4), and those that the dashboard searches. */
const RECENT = 50;
const MAX_SAMPLES = 200;
const SERIES_STEP_SEC = 10;
const SERIES_SPAN_SEC = 3600;
const MODEL_NAME_CHARS = 128;
const MESSAGE_CHARS = 200;

/** A measured value; null when nothing was measured. */
type Figure = number | null;

/** A request, as it stands in a snapshot. */
export type MetricsSample = ReturnType<typeof toSample>;
/** The figures of a category in the window. */
export type CategorySnapshot = ReturnType<typeof summarize>;

/** The state of the slot and of the line before it. */
export interface SlotNow {
  holder: Category | null;
  heldForMs: number;
  waiting: readonly { category: Category; requestId: string; waitedMs: number; isLive: boolean }[];
}

export type MetricsSnapshot = ReturnType<Metrics['snapshot']>;
export type Metrics = ReturnType<typeof createMetrics>;

export interface MetricsOptions {
  windowSec: number;
  /** The number of samples of each category that percentiles can use. */
  capacity?: number;
  /** Milliseconds since the process started; they must not go back. */
  now?: () => number;
}

interface Window {
  window: RollingWindow;
  recent: MetricsSample[];
}

export function createMetrics({
  windowSec,
  capacity = 32_768,
  now = () => performance.now(),
}: MetricsOptions) {
  const second = () => Math.floor(now() / 1000);
  const windows = new Map<Category, Window>();

  const begin = (category: Category): Window => {
    const fresh: Window = {
      window: createRollingWindow({ spanSec: Math.max(windowSec, SERIES_SPAN_SEC), capacity }),
      recent: [],
    };
    windows.set(category, fresh);
    return fresh;
  };

  /** A view of each category with traffic, in the order of CATEGORIES. */
  const each = <T>(view: (windows: Window) => T): Partial<Record<Category, T>> => {
    const views: Partial<Record<Category, T>> = {};
    for (const category of CATEGORIES) {
      const entry = windows.get(category);
      if (entry !== undefined) views[category] = view(entry);
    }
    return views;
  };

  return {
    /** Counts an exchange. One without a category is not inference and is left out. */
    record(exchange: Exchange): void {
      if (exchange.category === undefined) return;
      const { window, recent } = windows.get(exchange.category) ?? begin(exchange.category);
      const at = second();
      window.count(at, exchange.class, {
        audioSec: exchange.audioSec ?? 0,
        diarized: exchange.speakers === undefined ? 0 : 1,
      });
      const served = exchange.class !== '503-busy' && exchange.class !== 'client-disconnect';
      const { latencyMs, slotWaitMs, rtf } = exchange;
      if (served) window.measure({ second: at, latencyMs, slotWaitMs, rtf });
      else if (slotWaitMs !== undefined) window.measure({ second: at, slotWaitMs });
      recent.unshift(toSample(exchange));
      if (recent.length > MAX_SAMPLES) recent.pop();
    },
    snapshot(slot: SlotNow) {
      const to = second();
      const from = to - windowSec + 1;
      return {
        uptime_sec: Math.round(now()) / 1000,
        window_sec: windowSec,
        slot: slotToWire(slot),
        /** The categories that had traffic since the start. */
        categories: each((entry) => summarize(entry, from, to)),
      };
    },
    /** The latest requests of a category that are kept, newest first. */
    recent: (category: Category): readonly MetricsSample[] => windows.get(category)?.recent ?? [],
    /** The requests of all categories in each of the last complete seconds, oldest first; null before the first one. */
    perSecond: (seconds: number) =>
      windows.size === 0 ? null : perSecond([...windows.values()], second() - seconds, seconds),
    /** The last hour in steps of 10 s, oldest first, of which the last is the current one; rounded for a chart. */
    series() {
      const first = (Math.floor(second() / SERIES_STEP_SEC) + 1) * SERIES_STEP_SEC - SERIES_SPAN_SEC;
      return { step_sec: SERIES_STEP_SEC, categories: each(({ window }) => historyOf(window, first)) };
    },
  };
}

const slotToWire = ({ holder, heldForMs, waiting }: SlotNow) => ({
  held: holder !== null,
  holder,
  held_for_ms: heldForMs,
  /** The requests that asked to wait, in the order in which they will be served. */
  waiting: waiting.map(({ category, requestId, waitedMs }, before) => ({
    position: before + 1,
    category,
    request_id: requestId,
    waited_ms: waitedMs,
  })),
});

function perSecond(windows: readonly Window[], from: number, seconds: number) {
  const counted = Array.from({ length: seconds }, (_, i) =>
    windows.map(({ window }) => window.sum(from + i, from + i).counts),
  );
  const sums = (name: TrafficClass) =>
    counted.map((counts) => counts.reduce((sum, each) => sum + each[name], 0));
  return Object.fromEntries(TRAFFIC_CLASSES.map((name) => [name, sums(name)])) as Record<
    TrafficClass,
    number[]
  >;
}

function historyOf(window: RollingWindow, first: number) {
  const count = SERIES_SPAN_SEC / SERIES_STEP_SEC;
  const steps = Array.from({ length: count }, (): Measurement[] => []);
  for (const measurement of window.measured(first, first + SERIES_SPAN_SEC - 1)) {
    steps[Math.floor((measurement.second - first) / SERIES_STEP_SEC)]?.push(measurement);
  }
  const of = (column: 'latencyMs' | 'rtf', rank: number, digits: number) =>
    steps.map((step) => rounded(percentiles(valuesOf(step, column), [rank])[0], digits));
  return {
    latency_ms: { p50: of('latencyMs', 50, 0), p95: of('latencyMs', 95, 0), p99: of('latencyMs', 99, 0) },
    rtf_p50: of('rtf', 50, 3),
  };
}

const rounded = (value: Figure, digits: number): Figure =>
  value === null ? null : Number(value.toFixed(digits));

function valuesOf(measured: readonly Measurement[], column: 'latencyMs' | 'slotWaitMs' | 'rtf'): number[] {
  return measured.map((one) => one[column] ?? Number.NaN).filter(Number.isFinite);
}

function summarize({ window, recent }: Window, from: number, to: number) {
  const { counts, audioSec, diarized } = window.sum(from, to);
  const measured = window.measured(from, to);
  const total = TRAFFIC_CLASSES.reduce((sum, name) => sum + counts[name], 0);
  const errors = counts['4xx'] + counts['5xx'];
  const served = errors + counts['2xx'];
  const spread = (column: 'latencyMs' | 'slotWaitMs') => {
    const [p50, p95, p99, max] = percentiles(valuesOf(measured, column), [50, 95, 99, 100]);
    return { p50, p95, p99, max };
  };
  const [p50, p95] = percentiles(valuesOf(measured, 'rtf'), [50, 95]);
  return {
    total,
    counts,
    /** (4xx + 5xx) / (2xx + 4xx + 5xx), the share of errors among the requests served; 0 when there were none. */
    error_rate: served === 0 ? 0 : errors / served,
    latency_ms: spread('latencyMs'),
    slot_wait_ms: spread('slotWaitMs'),
    audio_seconds: Math.round(audioSec * 1000) / 1000,
    rtf: { p50, p95 },
    /** The requests whose speakers were told apart; absent when there were none. */
    ...(diarized > 0 && { diarized }),
    /** Only when the percentiles do not cover the whole window. */
    ...(window.truncatedSince(from) && { window_truncated: true }),
    /** The last 50 requests of every class, newest first, also when they are older than the window. */
    recent: recent.slice(0, RECENT),
  };
}

/** JSON leaves out the undefined members. */
function toSample(exchange: Exchange) {
  const { waitedMs, errorMessage } = exchange;
  return {
    request_id: exchange.requestId,
    /** The time of arrival, ISO 8601 in UTC. */
    at: exchange.at.toISOString(),
    // A client may send any name, and the recent samples must stay small.
    model: exchange.model?.slice(0, MODEL_NAME_CHARS) ?? null,
    status: exchange.status,
    class: exchange.class,
    latency_ms: exchange.latencyMs,
    slot_wait_ms: exchange.slotWaitMs ?? null,
    /** The part of `slot_wait_ms` for which a request with `Prefer: wait` waited. */
    waited_ms: waitedMs === undefined ? undefined : Math.round(waitedMs),
    audio_sec: exchange.audioSec,
    rtf: exchange.rtf,
    speakers: exchange.speakers,
    route: exchange.route,
    /** The name of the key that the request had. */
    key: exchange.key,
    client_ip: exchange.clientIp,
    /** The code of a failure, and what the client was told, cut to 200 characters. */
    code: exchange.errorCode,
    message: errorMessage === undefined ? undefined : excerpt(errorMessage, MESSAGE_CHARS),
    provider: exchange.provider,
  };
}
