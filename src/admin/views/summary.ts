/** The section with a tile for each category, over the window of the metrics. */
import { CATEGORIES, type Category } from '../../category.ts';
import type { CategorySnapshot, MetricsSnapshot } from '../../observability/metrics.ts';
import { CATEGORY_NAMES } from './categories.ts';
import { duration, milliseconds, percent, ratio } from './format.ts';
import { type Html, html } from './html.ts';

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
    ? html`<div class="card empty" data-key="empty"><p>No requests yet: try the <a href="/playground">playground</a>.</p></div>`
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
