/**
 * The timeout of request bodies: ends a request whose body is not complete in time. The deadline holds for every
 * request, so that a new endpoint need not think of it. It is lifted only for uploads and forwarded bodies, which may
 * take long and have limits of their own on how slowly they come.
 */
import type { Request, RequestHandler, Response } from 'express';
import { setDeadline } from '../../limits/deadline.ts';
import { hasBody } from '../upload/request-body.ts';

/** @param late called once, when the body is still incomplete `bodyMs` after the head of the request */
export function setBodyDeadline(req: Request, res: Response, bodyMs: number, late: () => void): void {
  if (!hasBody(req)) return;
  const lift = setDeadline(bodyMs, () => {
    if (!req.complete) late();
  });
  deadlines.set(req, lift);
  res.once('close', lift);
}

const deadlines = new WeakMap<Request, () => void>();

export function liftBodyDeadline(req: Request): void {
  deadlines.get(req)?.();
}

/** For routes whose handler watches the pace of the body itself. */
export const ownPace: RequestHandler = (req, _res, next) => {
  liftBodyDeadline(req);
  next();
};
