/**
 * This is the dashboard: htmx asks for the sections, and this file puts them in politely and says what went wrong.
 */
import { createCharts } from './admin/charts.js';
import { createGateway } from './admin/gateway.js';
import { putIn } from './admin/polite.js';
import { showInTab } from './admin/tab.js';

const { htmx } = globalThis;
const LINGER_MS = 8000;
const RATE_MS = 2000;
const HISTORY_MS = 10_000;
/** The state is asked for so seldom while the page is hidden, for the sake of its tab. */
const HIDDEN_MS = 15_000;

const gateway = createGateway(refresh);
const isPoll = ({ requestConfig }) => requestConfig.verb === 'get';

function refresh() {
  for (const section of document.querySelectorAll('[data-polled]')) htmx.trigger(section, 'refresh');
  void charts?.drawAll();
}

/* Sections that arrive */

htmx.defineExtension('polite', {
  isInlineSwap: (style) => style === 'polite',
  handleSwap(style, target, fragment) {
    if (style !== 'polite') return false;
    for (const time of fragment.querySelectorAll('time')) localize(time);
    const added = putIn(target, fragment);
    for (const element of target.querySelectorAll('[data-linger]')) letGo(element);
    const { tab, title } = target.querySelector('[data-tab]')?.dataset ?? {};
    if (tab !== undefined) showInTab(tab, title);
    return added;
  },
});

/** Shows the time in the reader's own time zone, with the day when that is not today. */
function localize(time) {
  const at = new Date(time.dateTime);
  const today = at.toDateString() === new Date().toDateString();
  const day = today ? '' : `${at.toLocaleDateString([], { day: 'numeric', month: 'short' })} `;
  time.textContent = day + at.toLocaleTimeString([], { hourCycle: 'h23' });
}

const leaving = new WeakSet();
function letGo(element) {
  if (leaving.has(element)) return;
  leaving.add(element);
  setTimeout(() => element.remove(), LINGER_MS);
}

/* Failures, for which htmx itself swaps nothing */

let stateAskedAt = 0;
/** A hidden page asks for nothing but what its tab shows, and for that seldom. */
function isUnseen({ elt }) {
  if (!document.hidden && elt.id !== 'state') return false;
  if (document.hidden && (elt.id !== 'state' || performance.now() - stateAskedAt < HIDDEN_MS)) return true;
  stateAskedAt = performance.now();
  return false;
}
document.addEventListener('htmx:beforeRequest', (event) => {
  // A locked page (no accepted key) sends no polls: nothing of their answers could be shown.
  if (isPoll(event.detail) && (gateway.isLocked || isUnseen(event.detail))) event.preventDefault();
});
document.addEventListener('htmx:afterRequest', ({ detail }) => {
  if (detail.xhr.status > 0) gateway.reachable();
});
for (const name of ['htmx:sendError', 'htmx:timeout']) {
  document.addEventListener(name, ({ detail }) => {
    if (isPoll(detail)) gateway.unreachable();
    else gateway.fail('Cannot reach the gateway. Nothing was done.');
  });
}
document.addEventListener('htmx:responseError', ({ detail }) => {
  gateway.refused(detail.xhr.status, detail.xhr.responseText, !isPoll(detail));
});
for (const filter of document.querySelectorAll('form[role="search"]'))
  filter.addEventListener('submit', (event) => event.preventDefault());
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) refresh();
});

/* Questions that are asked before an action */

const confirmation = document.getElementById('confirm-dialog');
/** Holds the request that the open question is about. */
let asked = null;
document.addEventListener('htmx:confirm', (event) => {
  const { question, elt, issueRequest } = event.detail;
  if (!question) return;
  event.preventDefault();
  document.getElementById('confirm-text').textContent = question;
  document.getElementById('confirm-yes').textContent = elt.dataset.confirmLabel;
  confirmation.returnValue = 'no';
  asked = { elt, issueRequest };
  confirmation.showModal();
});
confirmation.addEventListener('close', () => {
  // The close event comes late: by then the next question may be open.
  if (confirmation.open || confirmation.returnValue !== 'yes') return;
  if (asked.elt.isConnected) asked.issueRequest(true);
  else gateway.fail('That has already ended. Nothing was done.');
});

/* Charts */

const charts = document.getElementById('chart-rate') === null ? null : createCharts(askForSeries);

async function askForSeries(query) {
  if (document.hidden || gateway.isLocked) return null;
  try {
    const response = await fetch(`admin/api/series${query}`, { signal: AbortSignal.timeout(8000) });
    if (response.ok) return await response.json();
    gateway.refused(response.status, await response.text(), false);
  } catch {
    // The sections are asked for more often and report the failure.
  }
  return null;
}

if (charts !== null) {
  void charts.drawAll();
  setInterval(charts.drawRate, RATE_MS);
  setInterval(charts.drawAll, HISTORY_MS);
}
