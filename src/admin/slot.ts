/** The routes of the inference slot on the dashboard: show its holder, and stop that request. */
import type { RequestHandler } from 'express';
import { sendEither, sendHtml } from './answer.ts';
import type { AdminDeps } from './deps.ts';
import { readForm } from './form.ts';
import { slotView } from './views/slot.ts';

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
