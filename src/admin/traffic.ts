/** The metrics on the dashboard: the snapshot and its sections, the data of the charts, and how the upstreams are. */
import { CATEGORIES, type Category } from '../category.ts';
import type { CategorySnapshot, MetricsSnapshot } from '../observability/metrics.ts';
import type { UpstreamHealth } from '../proxy/inventory.ts';
import type { AdminDeps } from './deps.ts';
import { CATEGORY_NAMES, duration, milliseconds, percent, ratio } from './views/format.ts';
import { type Html, html } from './views/html.ts';
import { meanings } from './views/layout.ts';

const RATE_SPAN_SEC = 180;

/** The data of the charts. @param onlyRate leaves out the last hour, which is long and changes slowly */
export const chartData = (metrics: AdminDeps['metrics'], onlyRate: boolean) => ({
  now_sec: Math.floor(Date.now() / 1000),
  rate: { step_sec: 1, counts: metrics.perSecond(RATE_SPAN_SEC) },
  ...(!onlyRate && { history: metrics.series() }),
});

/** The section with a tile for each category, over the window of the metrics. */
export interface Summary {
  version: string;
  cpuLevel: string;
  counting: boolean;
}

export function summaryView(snapshot: MetricsSnapshot, { version, cpuLevel, counting }: Summary): Html {
  const tiles = CATEGORIES.flatMap((name) => {
    const entry = snapshot.categories[name];
    return entry === undefined ? [] : [tile(name, entry)];
  });
  return html`<p class="soft summary-line">voxgate ${version}, up ${duration(snapshot.uptime_sec * 1000)}. ${cpuLevel !== '' && html`CPU instructions: <code>${cpuLevel}</code>. `}Figures cover the last ${span(snapshot.window_sec)}.</p>
${!counting && html`<p class="notice warn" data-key="off">Metrics are switched off: requests are not counted.</p>`}
${tiles.length > 0 && html`<div class="tiles" data-key="tiles">${tiles}</div>${meanings(MEANINGS)}`}`;
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
${figure('To slot p95', milliseconds(wait.p95))}
${entry.diarized !== undefined && figure('Diarized', entry.diarized)}
${figure('Slot busy', counts['503-busy'])}
${figure('Client left', counts['client-disconnect'])}
</dl>
${entry.window_truncated && html`<p class="note">Timings cover the newest requests only: there were more than can be kept.</p>`}
</article>`;
}

/** What each figure measures, where it can be misread. */
const MEANINGS: readonly (readonly [string, string])[] = [
  ['Errors', 'Share of 4xx and 5xx answers. Requests refused because the slot was busy do not count.'],
  ['RTF', 'Real-time factor: processing time for each second of audio. Below 1 is faster than real time.'],
  ['Latency', 'Time from arrival to the last byte of the answer.'],
  [
    'To slot',
    'Time from arrival until the request gets the slot, upload included. It can be long while no other request is running.',
  ],
  ['p50, p95, p99', 'Half, 95 % or 99 % of the requests took at most this long.'],
  ['Slot busy', 'Requests refused with 503 because another one held the slot.'],
  ['Client left', 'Requests whose client disconnected before the answer was complete.'],
  ['Diarized', 'Transcriptions with speakers told apart.'],
];

function figure(name: string, value: string | number, className = ''): Html {
  return html`<div><dt>${name}</dt><dd class="${className}">${value}</dd></div>`;
}

/** The section of the upstreams: whether each serves, why not, and since when. */
export const upstreamsView = (upstreams: readonly UpstreamHealth[]): Html =>
  html`<div class="card-head"><h2>Upstreams</h2><span class="note">the servers behind speech and chat</span></div>
<div class="table-scroll" data-key="table" tabindex="0" role="region" aria-label="Upstreams"><table class="cards upstreams" role="table"><thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Upstream</th><th role="columnheader" scope="col">State</th><th role="columnheader" scope="col">For</th></tr></thead>
<tbody role="rowgroup">${upstreams.map(upstreamRow)}</tbody></table></div>`;

function upstreamRow({ category, problem, isAbsent, since }: UpstreamHealth): Html {
  const [label, className] =
    problem === null ? ['up', 'badge good'] : isAbsent ? ['none', 'badge'] : ['down', 'badge bad'];
  const why = isAbsent ? 'no server at the default address, and none is set' : problem?.says;
  return html`<tr data-key="${category}" role="row"><th role="rowheader" scope="row">${CATEGORY_NAMES[category]}</th>
<td role="cell"><span class="${className}">${label}</span>${why !== undefined && html` <span class="note block">${why}</span>`}</td>
<td role="cell">${duration(Date.now() - since.getTime())} <span class="note stacked">since <time datetime="${since.toISOString()}">${since.toISOString().slice(11, 19)}</time></span></td></tr>`;
}
