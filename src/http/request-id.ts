/** Every request has an id: the caller's when it is well-formed, else 16 hex digits; always echoed (contract 2.6). */
import { randomUUID } from 'node:crypto';
import type { RequestHandler } from 'express';

/** Contract 2.6. */
export const REQUEST_ID = /^[A-Za-z0-9\-_:.]{1,128}$/;

export function newRequestId(): string {
  return randomUUID().replaceAll('-', '').slice(0, 16);
}

export function requestId(): RequestHandler {
  return (req, res, next) => {
    const given = req.get('X-Request-ID');
    const id = given !== undefined && REQUEST_ID.test(given) ? given : newRequestId();
    res.locals.requestId = id;
    res.setHeader('X-Request-ID', id);
    next();
  };
}
