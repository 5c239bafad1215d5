/** The section of the newest requests of all categories, by their time of arrival. */
import { CATEGORIES, type Category } from '../../category.ts';
import type { TrafficClass } from '../../observability/exchange.ts';
import type { MetricsSample, MetricsSnapshot } from '../../observability/metrics.ts';
import { milliseconds, ratio, seconds } from './format.ts';
import { type Html, html } from './html.ts';

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
    ? html`<p class="empty soft" data-key="empty">No requests yet: try the <a href="/playground">playground</a>.</p>`
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
      ? html`<a href="/admin/captures/${encodeURIComponent(id)}" data-key="link"><code>${id}</code></a>`
      : html`<code data-key="id">${id}</code>`
  }</td></tr>`;
}
