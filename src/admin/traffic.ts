/** The metrics on the dashboard: the snapshot and its sections, the data of the charts, and how the upstreams are. */
import type { RequestHandler } from 'express';
import { CATEGORIES, type Category } from '../category.ts';
import { TRAFFIC_CLASSES, type TrafficClass } from '../observability/exchange.ts';
import type {
  CategorySnapshot,
  MetricsSample,
  MetricsSnapshot,
  RateSeries,
} from '../observability/metrics.ts';
import type { UpstreamHealth } from '../proxy/inventory.ts';
import { sendHtml, sendJson } from './answer.ts';
import type { AdminDeps } from './deps.ts';
import { CATEGORY_NAMES, duration, milliseconds, percent, ratio, seconds } from './views/format.ts';
import { type Html, html } from './views/html.ts';

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

/** The section of the newest requests of all categories, by their time of arrival. */
const SHOWN = 50;

const BADGES: Readonly<Record<TrafficClass, [label: string, className: string]>> = {
  '2xx': ['', 'good'],
  '4xx': ['', 'warn'],
  '5xx': ['', 'bad'],
  '503-busy': [' busy', 'accent'],
  'client-disconnect': [' left', ''],
};

export function requestsView({ categories }: MetricsSnapshot, capturing: boolean): Html {
  const rows = CATEGORIES.flatMap((category) =>
    (categories[category]?.recent ?? []).map((sample) => ({ category, sample })),
  )
    .sort((a, b) => Date.parse(b.sample.at) - Date.parse(a.sample.at))
    .slice(0, SHOWN);
  return html`<div class="card-head"><h2>Recent requests</h2>${
    rows.length > 0 &&
    html`<span class="note">${capturing ? 'each request id leads to its capture' : `the last ${SHOWN}`}</span>`
  }</div>
${
  rows.length === 0
    ? html`<p class="empty soft" data-key="empty">No requests yet: try the <a href="playground">playground</a>.</p>`
    : html`<div class="table-scroll" data-key="table" tabindex="0" role="region" aria-label="Recent requests"><table class="requests">
<thead><tr><th scope="col">Time</th><th scope="col">Kind</th><th scope="col">Model</th><th scope="col">Status</th><th scope="col" class="number">Latency</th><th scope="col" class="number">Slot wait</th><th scope="col" class="number">Audio</th><th scope="col" class="number">RTF</th><th scope="col">Route</th><th scope="col">Request</th></tr></thead>
<tbody>${rows.map(({ category, sample }) => row(category, sample, capturing))}</tbody></table></div>`
}`;
}

function row(category: Category, sample: MetricsSample, capturing: boolean): Html {
  const id = sample.request_id;
  const [label, className] = BADGES[sample.class];
  return html`<tr data-key="${category} ${id} ${Date.parse(sample.at)}">
<td><time datetime="${sample.at}">${sample.at.slice(11, 19)}</time></td><td>${category}</td>
<td class="model"${sample.model !== null && sample.model.length > 24 && html` title="${sample.model}"`}>${sample.model ?? '–'}</td><td><span class="badge ${className}">${sample.status}${label}</span></td>
<td class="number">${milliseconds(sample.latency_ms)}</td><td class="number">${milliseconds(sample.slot_wait_ms)}</td>
<td class="number">${seconds(sample.audio_sec)}${sample.speakers !== undefined && html` <span class="note">${sample.speakers} speaker${sample.speakers !== 1 && 's'}</span>`}</td><td class="number">${ratio(sample.rtf)}</td>
<td class="soft">${sample.route ?? '–'}</td><td>${
    capturing
      ? html`<a href="admin/captures/${encodeURIComponent(id)}" data-key="link"><code>${id}</code></a>`
      : html`<code data-key="id">${id}</code>`
  }</td></tr>`;
}

/** The section with a tile for each category, over the window of the metrics. */
export interface Summary {
  version: string;
  cpuLevel: string;
  counting: boolean;
  audioProblem: string | null;
}

export function summaryView(
  snapshot: MetricsSnapshot,
  { version, cpuLevel, counting, audioProblem }: Summary,
): Html {
  const tiles = CATEGORIES.flatMap((name) => {
    const entry = snapshot.categories[name];
    return entry === undefined ? [] : [tile(name, entry)];
  });
  return html`<p class="soft summary-line">voxgate ${version}, up ${duration(snapshot.uptime_sec * 1000)}. ${cpuLevel !== '' && html`The CPU computes with <code>${cpuLevel}</code>. `}Figures cover the last ${span(snapshot.window_sec)}.</p>
${!counting && html`<p class="notice warn" data-key="off">Metrics are switched off: no request is counted.</p>`}
${audioProblem !== null && html`<p class="notice warn" data-key="audio">Some audio cannot be read: ${audioProblem}.</p>`}
${
  tiles.length === 0
    ? html`<div class="card empty" data-key="empty"><p>No requests yet: try the <a href="playground">playground</a>.</p></div>`
    : html`<div class="tiles" data-key="tiles">${tiles}</div>`
}`;
}

const span = (sec: number) => (sec === 3600 ? 'hour' : duration(sec * 1000).replace(/ 0 (s|min)$/, ''));

function tile(name: Category, entry: CategorySnapshot): Html {
  const { counts, latency_ms: latency, slot_wait_ms: wait } = entry;
  const errors = counts['4xx'] + counts['5xx'];
  return html`<article class="card tile" data-key="${name}" aria-label="${CATEGORY_NAMES[name]}">
<div class="card-head"><h2>${CATEGORY_NAMES[name]}</h2><code class="soft">${name}</code></div>
<dl class="figures main-figures">
${figure('Requests', entry.total)}
${figure('Errors', percent(entry.error_rate), errors > 0 ? 'bad' : '')}
${name === 'asr' && figure('RTF p50', ratio(entry.rtf.p50))}
</dl>
<dl class="figures">
${figure('Latency p50', milliseconds(latency.p50))}
${figure('p95', milliseconds(latency.p95))}
${figure('p99', milliseconds(latency.p99))}
${figure('Slot wait p95', milliseconds(wait.p95))}
${entry.diarized !== undefined && figure('Diarized', entry.diarized)}
${figure('Busy', counts['503-busy'])}
${figure('Client left', counts['client-disconnect'])}
</dl>
${entry.window_truncated && html`<p class="note">Latency covers the newest requests only, because there were more than can be kept.</p>`}
</article>`;
}

function figure(name: string, value: string | number, className = ''): Html {
  return html`<div><dt>${name}</dt><dd class="${className}">${value}</dd></div>`;
}

/** The section of the upstreams: whether each serves, why not, and since when. */
export function showUpstreams({ upstreams }: Pick<AdminDeps, 'upstreams'>): RequestHandler {
  return async (_req, res) => sendHtml(res, upstreamsView(await upstreams.health()));
}

const upstreamsView = (upstreams: readonly UpstreamHealth[]): Html =>
  html`<div class="card-head"><h2>Upstreams</h2><span class="note">what speech and chat are passed on to</span></div>
<div class="table-scroll" data-key="table" tabindex="0" role="region" aria-label="Upstreams"><table><thead><tr><th scope="col">Upstream</th><th scope="col">State</th><th scope="col">Why</th><th scope="col">For</th></tr></thead>
<tbody>${upstreams.map(upstreamRow)}</tbody></table></div>`;

function upstreamRow({ category, problem, isAbsent, since }: UpstreamHealth): Html {
  const [label, className] =
    problem === null ? ['serves', 'badge good'] : isAbsent ? ['none', 'badge'] : ['down', 'badge bad'];
  const why = isAbsent ? 'nothing is at the default address, and no setting names another' : problem?.says;
  return html`<tr data-key="${category}"><th scope="row">${CATEGORY_NAMES[category]}</th>
<td><span class="${className}">${label}</span></td><td>${why === undefined ? '–' : why}</td>
<td title="since ${since.toISOString()}">${duration(Date.now() - since.getTime())}</td></tr>`;
}
