/** The latest requests on the dashboard: who asked for what, and what became of it. They can be filtered and searched. */
import type { Request } from 'express';
import { CATEGORIES, type Category } from '../category.ts';
import type { TrafficClass } from '../observability/exchange.ts';
import type { MetricsSample } from '../observability/metrics.ts';
import type { AdminDeps } from './deps.ts';
import { soughtIn } from './form.ts';
import { CATEGORY_NAMES, counted, milliseconds, ratio, seconds } from './views/format.ts';
import { type Html, html } from './views/html.ts';

/** The most rows. */
const MOST = 50;

interface Row extends MetricsSample {
  category: Category;
}

type Filter = [label: string, takes: (row: Row) => boolean];
const ofCategory = (name: Category): Filter => [CATEGORY_NAMES[name], ({ category }) => category === name];

/** The kinds of requests that can be shown alone. */
export const FILTERS = {
  all: ['All', () => true],
  failed: ['Failed', ({ class: outcome }) => outcome === '4xx' || outcome === '5xx'],
  asr: ofCategory('asr'),
  tts: ofCategory('tts'),
  llm: ofCategory('llm'),
  busy: ['Slot busy', ({ class: outcome }) => outcome === '503-busy'],
} satisfies Record<string, Filter>;
export const SHOWN_REQUESTS = Object.keys(FILTERS) as (keyof typeof FILTERS)[];

/** The requests that the query asks for: `show` is their kind, and `search` a text in them. */
export function requestsView(
  { metrics, toggles }: Pick<AdminDeps, 'metrics' | 'toggles'>,
  req: Request,
): Html {
  const { show } = req.query;
  const [, takes] = FILTERS[SHOWN_REQUESTS.find((name) => name === show) ?? 'all'];
  const sought = soughtIn(req);
  const all = CATEGORIES.flatMap((category) =>
    metrics.recent(category).map((sample): Row => ({ ...sample, category })),
  ).sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0));
  const found = all.filter((row) => takes(row) && (sought === '' || textOf(row).includes(sought)));
  return listView(found, all.length, toggles.payload);
}

/** What a search looks at: all that a row shows but its figures. */
const textOf = (row: Row) =>
  [row.request_id, row.category, row.model, row.status, row.code, row.message]
    .concat([row.client_ip, row.key, row.route, row.provider])
    .join(' ')
    .toLowerCase();

const BADGES: Readonly<Record<TrafficClass, [label: string, className: string]>> = {
  '2xx': ['', 'good'],
  '4xx': ['', 'warn'],
  '5xx': ['', 'bad'],
  '503-busy': [' busy', 'accent'],
  'client-disconnect': [' left', ''],
};

interface Column {
  name: string;
  /** A number's column is aligned at its end. */
  className?: string;
  /** What the figure measures, where its name does not say it. */
  meaning?: string;
  cell(row: Row, capturing: boolean): string | Html;
}

const COLUMNS: readonly Column[] = [
  { name: 'Time', cell: ({ at }) => html`<time datetime="${at}">${at.slice(11, 19)}</time>` },
  { name: 'Answer', className: 'answer', cell: answer },
  {
    name: 'Model',
    className: 'model',
    cell: ({ model, category, route }) =>
      html`${model ?? '–'}<span class="note">${category}${route !== undefined && `, ${route}`}</span>`,
  },
  {
    name: 'Client',
    className: 'client',
    cell: ({ client_ip, key }) =>
      html`${client_ip ?? '–'}${key !== undefined && html`<span class="note">key ${key}</span>`}`,
  },
  {
    name: 'Took',
    className: 'number',
    meaning: 'Time from arrival to the last byte of the answer.',
    cell: ({ latency_ms }) => milliseconds(latency_ms),
  },
  {
    name: 'Time to slot',
    className: 'number',
    meaning: 'Time from arrival until the request got the slot, upload included.',
    cell: ({ slot_wait_ms }) => milliseconds(slot_wait_ms),
  },
  {
    name: 'Audio',
    className: 'number',
    meaning: 'Length of the audio that was transcribed.',
    cell: ({ audio_sec, speakers }) =>
      html`${seconds(audio_sec)}${speakers !== undefined && html` <span class="note">${counted(speakers, 'speaker')}</span>`}`,
  },
  {
    name: 'RTF',
    className: 'number',
    meaning: 'Real-time factor: processing time for each second of audio. Below 1 is faster than real time.',
    cell: ({ rtf }) => ratio(rtf),
  },
  {
    name: 'Request',
    className: 'request',
    cell: ({ request_id: id }, capturing) =>
      capturing
        ? html`<a href="admin/captures/${encodeURIComponent(id)}" data-key="link"><code>${id}</code></a>`
        : html`<code data-key="id">${id}</code>`,
  },
];

export const MEANINGS_OF_REQUESTS = COLUMNS.flatMap(({ name, meaning }) =>
  meaning === undefined ? [] : [[name, meaning] as const],
);

/** @param all how many requests there are, found or not */
function listView(found: readonly Row[], all: number, capturing: boolean): Html {
  if (all === 0)
    return html`<p class="empty soft" data-key="empty">No requests yet. Try the <a href="playground">playground</a>.</p>`;
  const rows = found.slice(0, MOST);
  const counts = found.length > MOST ? `latest ${MOST} of ${found.length}` : counted(found.length, 'request');
  return html`<p class="note" data-key="counts">${counts}${
    found.length < all && `, of the latest ${all}`
  }${capturing && rows.length > 0 && '; each request id links to its capture'}</p>
${
  rows.length === 0
    ? html`<p class="empty soft" data-key="none">No matching requests.</p>`
    : html`<div class="table-scroll" data-key="table" tabindex="0" role="region" aria-label="Latest requests"><table class="cards requests" role="table">
<thead role="rowgroup"><tr role="row">${COLUMNS.map(
        ({ name, className }) => html`<th role="columnheader" scope="col" class="${className}">${name}</th>`,
      )}</tr></thead>
<tbody role="rowgroup">${rows.map((row) => rowView(row, capturing))}</tbody></table></div>`
}`;
}

/**
 * On a narrow screen each row is a card (admin.css), with the label of a cell before it. A table that is displayed as
 * something else is none to a screen reader, so that the roles are written out.
 */
function rowView(row: Row, capturing: boolean): Html {
  const { request_id: id, category, at } = row;
  return html`<tr data-key="${category} ${id} ${Date.parse(at)}" role="row">${COLUMNS.map(
    ({ name, className, cell }) =>
      html`<td role="cell" class="${className}" data-label="${name}">${cell(row, capturing)}</td>`,
  )}</tr>`;
}

function answer({ status, class: outcome, code, message }: Row): Html {
  const [label, className] = BADGES[outcome];
  return html`<span class="badge ${className}">${status}${label}</span>${
    code !== undefined && outcome !== '503-busy' && html` <code>${code}</code>`
  }${message !== undefined && outcome !== '503-busy' && html`<span class="note message">${message}</span>`}`;
}
