/** The inference slot on the dashboard: who holds it and who waits, and the button that stops that request and no other. */
import type { RequestHandler } from 'express';
import type { LiveStatus } from '../limits/live-places.ts';
import { sendEither } from './answer.ts';
import type { AdminDeps, LiveNow, SlotAndLine, UploadNow } from './deps.ts';
import { readForm } from './form.ts';
import { button, outcome } from './views/actions.ts';
import { CATEGORY_NAMES, counted, duration, milliseconds } from './views/format.ts';
import { type Html, html } from './views/html.ts';

type Deps = Pick<AdminDeps, 'slot' | 'log' | 'live' | 'uploads'>;

/** With `request_id` it stops only that request, because meanwhile another one may have taken the slot. */
export function stopSlot(deps: Deps): RequestHandler {
  const { slot, log } = deps;
  return async (req, res) => {
    const { request_id: meant } = await readForm(req, res);
    const { requestId } = slot.status();
    const stopped = (meant === undefined || meant === requestId) && slot.stopHolder();
    if (stopped) log.info('request stopped by the operator', { requestId });
    const said = stopped ? 'Stopping the request.' : 'The request had already ended. Nothing was stopped.';
    sendEither(req, res, slotView(deps, said), { stopped });
  };
}

/** Only the line with the holder is announced, because a screen reader would otherwise read every second. */
export function slotView({ slot, live, uploads }: Deps, said: string | null = null): Html {
  const { holder, requestId, heldForMs, waiting } = slot.status();
  const who = holder === null ? 'Free' : `Busy: ${CATEGORY_NAMES[holder].toLowerCase()}`;
  return html`<div class="card-head"><h2>Inference slot</h2>${
    holder !== null &&
    button({
      label: 'Stop',
      fullLabel: 'Stop the request that holds the slot',
      className: 'small danger',
      post: 'admin/api/slot/stop',
      section: 'slot',
      key: `stop-${requestId}`,
      values: { request_id: requestId ?? '' },
      confirm: `Stop the ${CATEGORY_NAMES[holder].toLowerCase()} request in progress? Its client gets an error.`,
    })
  }</div>
${outcome(said)}
<p class="slot-state ${holder === null ? 'free' : 'busy'}" role="status">${who}</p>
${
  holder === null
    ? html`<p class="soft" data-key="idle">Nothing is running. One request at a time gets the slot.</p>`
    : html`<p class="slot-facts" data-key="held">for <b>${duration(heldForMs)}</b> <span class="soft">by request</span> <code>${requestId}</code></p>`
}
${waiting.length > 0 && waitingView(waiting)}
${underWayView(live(), uploads())}`;
}

const waitingView = (waiting: SlotAndLine['waiting']): Html =>
  html`<h3 data-key="waiting-title">Waiting, next one first</h3>
<ol class="waiting" data-key="waiting" aria-label="Requests waiting for the slot">${waiting.map(
    ({ category, requestId, waitedMs, isLive }) =>
      html`<li data-key="waits-${requestId}">${CATEGORY_NAMES[category]}${isLive && ', live'} <span class="soft">for</span> <b>${duration(waitedMs)}</b> <code>${requestId}</code></li>`,
  )}</ol>`;

/** The most that are listed; their number is always told. */
const LISTED = 8;
const PROTOCOLS = { realtime: 'Realtime', wyoming: 'Wyoming' } as const;
const STATES = {
  waiting: 'waiting for speech',
  hearing: 'hearing speech',
  transcribing: 'transcribing',
  answering: 'answering',
} as const;
/** The stages of an answer. */
const STAGES: Readonly<Record<string, string>> = {
  text: 'transcription',
  slot: 'wait for the slot',
  chat: 'first word',
  speech: 'first audio',
};

function underWayView(live: readonly LiveNow[], uploads: readonly UploadNow[]): Html | null {
  const rows = [...live.map(liveRow), ...uploads.map(uploadRow)];
  if (rows.length === 0) return null;
  const counts = [
    ...(live.length > 0 ? [counted(live.length, 'live session')] : []),
    ...(uploads.length > 0 ? [counted(uploads.length, 'upload')] : []),
  ];
  return html`<h3 data-key="under-way-title">${counts.join(', ')}</h3>
<ul class="waiting" data-key="under-way" aria-label="Live sessions and uploads">${rows.slice(0, LISTED)}${
    rows.length > LISTED && html`<li class="soft">and ${rows.length - LISTED} more</li>`
  }</ul>`;
}

const uploadRow = ({ network, behindMs }: UploadNow): Html =>
  html`<li>Upload <span class="badge">${behindMs() === null ? 'received' : 'receiving'}</span> <span class="note block">from <code>${network}</code></span></li>`;

function liveRow(session: LiveNow): Html {
  const { kind, state, lastError, lastAnswer } = session.status();
  return html`<li>${PROTOCOLS[session.protocol]} ${kind} <span class="badge${state !== 'waiting' && ' accent'}">${STATES[state]}</span> <span class="note block">from <code>${session.network}</code>, last audio ${duration(session.idleMs())} ago</span>${
    lastAnswer !== null && html` <span class="note block">Last answer: ${answerText(lastAnswer)}</span>`
  }${
    lastError !== null &&
    html` <span class="note block">Last error: <code>${lastError.code}</code> ${duration(Date.now() - lastError.at.getTime())} ago. ${lastError.says}</span>`
  }</li>`;
}

const answerText = ({ status, stages }: NonNullable<LiveStatus['lastAnswer']>) =>
  [status, ...stages.map(({ name, ms }) => `${STAGES[name] ?? name} ${milliseconds(ms)}`)].join(', ');
