/** The routes of the metrics snapshot and of the data for the charts. */
import type { RequestHandler } from 'express';
import { TRAFFIC_CLASSES, type TrafficClass } from '../observability/exchange.ts';
import type { MetricsSnapshot, RateSeries } from '../observability/metrics.ts';
import { sendJson } from './answer.ts';
import type { AdminDeps } from './deps.ts';

type Deps = Pick<AdminDeps, 'metrics' | 'slot'>;

const RATE_SPAN_SEC = 180;

export function takeSnapshot({ metrics, slot }: Deps): MetricsSnapshot {
  return metrics.snapshot(slot.status());
}

export function metrics(deps: Deps): RequestHandler {
  return (_req, res) => sendJson(res, takeSnapshot(deps));
}

/** The data of the charts. `?only=rate` leaves out the last hour, which is long and changes slowly. */
export function series({ metrics }: Deps): RequestHandler {
  return (req, res) => {
    const rate = { step_sec: 1, counts: addUp(metrics.perSecond(RATE_SPAN_SEC)) };
    sendJson(res, {
      now_sec: Math.floor(Date.now() / 1000),
      rate,
      ...(req.query.only === 'rate' ? {} : { history: history(metrics) }),
    });
  };
}

/** The sums over all categories, by class; null when there is no category. */
function addUp(rates: RateSeries): Record<TrafficClass, number[]> | null {
  const all = Object.values(rates);
  if (all[0] === undefined) return null;
  const sum = (name: TrafficClass) =>
    Array.from({ length: RATE_SPAN_SEC }, (_, at) =>
      all.reduce((total, entry) => total + (entry[name][at] ?? 0), 0),
    );
  return Object.fromEntries(TRAFFIC_CLASSES.map((name) => [name, sum(name)])) as Record<
    TrafficClass,
    number[]
  >;
}

function history(metrics: Deps['metrics']) {
  const { stepSec, categories } = metrics.series();
  const views = Object.entries(categories).map(([name, { latencyMs, rtfP50 }]) => {
    const { p50, p95, p99 } = latencyMs;
    const latency_ms = { p50: rounded(p50, 0), p95: rounded(p95, 0), p99: rounded(p99, 0) };
    return [name, { latency_ms, rtf_p50: rounded(rtfP50, 3) }];
  });
  return { step_sec: stepSec, categories: Object.fromEntries(views) };
}

const rounded = (values: readonly (number | null)[], digits: number) =>
  values.map((value) => (value === null ? null : Number(value.toFixed(digits))));
