/**
 * Checks before a byte of the body is read whether the gateway is stopping and whether the slot is held, so that an
 * upload is refused at once. The slot is not taken yet, because a slow upload must not hold it.
 *
 * A request with `Prefer: wait=N` (RFC 7240, section 4.3) waits here in the queue, for at most N seconds, if the operator
 * allows it. The operator may also let those wait that do not ask.
 */
import type { Request, RequestHandler, Response } from 'express';
import type { Slot } from '../engine/slot.ts';
import type { Ticket, WaitingLine } from '../engine/waiting-line.ts';
import { networkOf } from '../limits/network.ts';
import { notesOf } from './observe.ts';
import { liftBodyDeadline } from './server/body-deadline.ts';
import { clientSignal, onceOver } from './server/client-signal.ts';
import type { GracefulStop } from './server/graceful-stop.ts';

export interface AdmissionDeps {
  slot: Slot;
  line: WaitingLine;
  gracefulStop: GracefulStop;
  shutdown: AbortSignal;
  /** The longest wait that a request may ask for; 0 = none may wait. */
  maxWaitSec: number;
  /** The wait of a request that asks for none. */
  defaultWaitSec: number;
}

export function admission(deps: AdmissionDeps): RequestHandler {
  const { slot, line, gracefulStop, shutdown, maxWaitSec, defaultWaitSec } = deps;
  return async (req, res, next) => {
    gracefulStop.assertServing();
    const notes = notesOf(res);
    const asked = preferredWaitSec(req);
    const waitSec = asked === undefined ? defaultWaitSec : Math.min(asked, maxWaitSec);
    const ticket = line.ticket({
      category: notes.category ?? 'asr',
      requestId: notes.requestId,
      network: networkOf(req.ip ?? ''),
      waitMs: waitSec * 1000,
      onWaited(ms) {
        notes.waitedMs = (notes.waitedMs ?? 0) + ms;
      },
    });
    res.locals.ticket = ticket;
    if (waitSec > 0) {
      if (asked !== undefined) res.setHeader('Preference-Applied', `wait=${waitSec}`);
      liftBodyDeadline(req); // the body is not read while the request waits
      onceOver(res, ticket.end);
      await ticket.comesUp(clientSignal(res, shutdown));
    } else {
      slot.assertFree();
    }
    next();
  };
}

/** The ticket of a request that passed `admission`. */
export function ticketOf(res: Response): Ticket {
  return res.locals.ticket;
}

/** The seconds of `Prefer: wait`; undefined when it is absent or has no meaning (RFC 7240, section 2: it is ignored). */
export function preferredWaitSec(req: Pick<Request, 'get'>): number | undefined {
  for (const preference of (req.get('Prefer') ?? '').split(',')) {
    const [, seconds] = /^\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;|$)/i.exec(preference) ?? [];
    if (seconds !== undefined) return Number(seconds); // the first one counts
  }
  return undefined;
}
