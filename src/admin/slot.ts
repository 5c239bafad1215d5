/** The inference slot on the dashboard: who holds it and who waits, and the button that stops that request and no other. */
import type { RequestHandler } from 'express';
import { sendEither, sendHtml } from './answer.ts';
import type { AdminDeps, SlotAndLine } from './deps.ts';
import { readForm } from './form.ts';
import { button, outcome } from './views/actions.ts';
import { CATEGORY_NAMES, duration } from './views/format.ts';
import { type Html, html } from './views/html.ts';

type Deps = Pick<AdminDeps, 'slot' | 'log'>;

export function slot(deps: Deps): RequestHandler {
  return (_req, res) => sendHtml(res, slotView(deps.slot.status()));
}

/** With `request_id` it stops only that request, because meanwhile another one may have taken the slot. */
export function stopSlot({ slot, log }: Deps): RequestHandler {
  return async (req, res) => {
    const { request_id: meant } = await readForm(req, res);
    const { requestId } = slot.status();
    const stopped = (meant === undefined || meant === requestId) && slot.stopHolder();
    if (stopped) log.info('request stopped by the operator', { requestId });
    const said = stopped ? 'It was told to stop.' : 'It had ended already; nothing was stopped.';
    sendEither(
      req,
      res,
      () => slotView(slot.status(), said),
      () => ({ stopped }),
    );
  };
}

/** Only the line with the holder is announced, because a screen reader would otherwise read every second. */
function slotView({ holder, requestId, heldForMs, waiting }: SlotAndLine, said: string | null = null): Html {
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
      confirm: `Stop the ${CATEGORY_NAMES[holder].toLowerCase()} request that is being served? Its client gets an error.`,
    })
  }</div>
${outcome(said)}
<p class="slot-state ${holder === null ? 'free' : 'busy'}" role="status">${who}</p>
${
  holder === null
    ? html`<p class="soft" data-key="idle">The next request is served at once.</p>`
    : html`<p class="slot-facts" data-key="held">for <b>${duration(heldForMs)}</b> <span class="soft">by request</span> <code>${requestId}</code></p>`
}
${waiting.length > 0 && waitingView(waiting)}`;
}

const waitingView = (waiting: SlotAndLine['waiting']): Html =>
  html`<h3 data-key="waiting-title">Waiting, the next one first</h3>
<ol class="waiting" data-key="waiting" aria-label="Requests that wait for the slot">${waiting.map(
    ({ category, requestId, waitedMs }) =>
      html`<li data-key="waits-${requestId}">${CATEGORY_NAMES[category]} <span class="soft">for</span> <b>${duration(waitedMs)}</b> <code>${requestId}</code></li>`,
  )}</ol>`;
