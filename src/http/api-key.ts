/**
 * With keys set, everything but health, the API's description and the empty pages wants one: as
 * `Authorization: Bearer`, or as the cookie that the dashboard was given for it.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import express, { type Request, type RequestHandler, type Router } from 'express';
import { GatewayError } from '../errors.ts';

const COOKIE = 'voxgate_session';
const SESSION_SEC = 30 * 86_400;

export interface ApiKeys {
  /** Lets through whoever carries a key. */
  require: RequestHandler;
  /** `POST /admin/session {"key": …}` gives the cookie; `DELETE` takes it away. */
  session: Router;
}

/** @param keys none: open to everyone */
export function createApiKeys(keys: readonly string[]): ApiKeys {
  // Compared as digests: of one length whatever was sent, and telling nothing about where they differ.
  const digest = (text: string) => createHmac('sha256', 'voxgate').update(text).digest();
  const digests = keys.map(digest);
  const isKey = (text: string) => {
    const asked = digest(text);
    return digests.reduce((found, known) => timingSafeEqual(asked, known) || found, false);
  };
  // The cookie is not the key: who reads it from a browser's store cannot use the API with other clients' tools
  // after the keys have changed, and the key itself is not in it.
  const sessionOf = (key: string) => createHmac('sha256', key).update('session').digest('hex');
  const isSession = (value: string) =>
    keys.some((key) => timingSafeEqual(digest(value), digest(sessionOf(key))));

  const session = express.Router();
  session.post('/admin/session', express.json({ limit: '8kb' }), (req, res) => {
    const key = typeof req.body?.key === 'string' ? req.body.key : '';
    if (keys.length > 0 && !isKey(key)) throw unauthorized();
    if (keys.length > 0) {
      res.cookie(COOKIE, sessionOf(key), {
        httpOnly: true,
        sameSite: 'strict',
        secure: req.secure,
        maxAge: SESSION_SEC * 1000,
      });
    }
    res.status(204).end();
  });
  session.delete('/admin/session', (_req, res) => {
    res.clearCookie(COOKIE);
    res.status(204).end();
  });

  return {
    session,
    require(req, res, next) {
      if (keys.length === 0) return next();
      const bearer = /^Bearer\s+(\S.*)$/i.exec(req.get('Authorization') ?? '')?.[1];
      if (bearer !== undefined && isKey(bearer.trim())) {
        delete req.headers.authorization; // it is for the gateway: no upstream needs to know it
        return next();
      }
      if (isSession(cookieOf(req))) return next();
      res.setHeader('WWW-Authenticate', 'Bearer realm="voxgate"');
      throw unauthorized();
    },
  };
}

function unauthorized(): GatewayError {
  return new GatewayError('invalid_api_key', {});
}

function cookieOf(req: Request): string {
  const pairs = (req.get('Cookie') ?? '').split(';').map((pair) => pair.trim());
  const own = pairs.find((pair) => pair.startsWith(`${COOKIE}=`));
  return own?.slice(COOKIE.length + 1) ?? '';
}
