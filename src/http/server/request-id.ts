/**
 * Gives every request an id: the caller's if it is well-formed, else 16 hex digits. The answer carries it (contract
 * 2.6).
 */
import { randomUUID } from 'node:crypto';
import type { RequestHandler } from 'express';
import type { HoldsKey } from '../../gateway-keys.ts';

/** The ids that a caller may choose (contract 2.6). */
export const REQUEST_ID = /^[A-Za-z0-9\-_:.]{1,128}$/;

export function newRequestId(): string {
  return randomUUID().replaceAll('-', '').slice(0, 16);
}

/** @param holdsKey an id with a key in it is replaced, because ids stand in logs, and upstreams get them */
export function requestId(holdsKey: HoldsKey): RequestHandler {
  return (req, res, next) => {
    const given = req.get('X-Request-ID');
    const id = given !== undefined && REQUEST_ID.test(given) && !holdsKey(given) ? given : newRequestId();
    res.locals.requestId = id;
    res.setHeader('X-Request-ID', id);
    next();
  };
}
