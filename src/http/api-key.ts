/**
 * Checks the API keys. When keys are set, every path needs one, except health, the description of the API and the
 * pages without data. A client sends the key as `Authorization: Bearer`, or the session cookie that it got for the key.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import express, { type Request, type RequestHandler, type Router } from 'express';
import { GatewayError } from '../errors.ts';
import { caseSensitiveRouter } from './route-table.ts';

const COOKIE = 'voxgate_session';
const SESSION_SEC = 30 * 86_400;

export interface ApiKeys {
  /** Lets a request with a valid key or session pass; refuses others with GatewayError `invalid_api_key`. */
  require: RequestHandler;
  /** `POST /admin/session {"key": …}` sets the session cookie, and `DELETE` clears it. */
  session: Router;
}

/** @param keys the valid keys; when empty, every request passes */
export function createApiKeys(keys: readonly string[]): ApiKeys {
  // Digests are compared instead of keys: they all have one length, and where they differ says nothing about the key.
  const digest = (text: string) => createHmac('sha256', 'voxgate').update(text).digest();
  const digests = keys.map(digest);
  const isKey = (text: string) => {
    const asked = digest(text);
    return digests.reduce((found, known) => timingSafeEqual(asked, known) || found, false);
  };
  // The cookie is derived from the key and does not contain it. Reading the cookie from a browser's storage does not
  // reveal the key, and the cookie is worth nothing once the key has changed.
  const sessionOf = (key: string) => createHmac('sha256', key).update('session').digest('hex');
  const isSession = (value: string) =>
    keys.some((key) => timingSafeEqual(digest(value), digest(sessionOf(key))));

  const session = caseSensitiveRouter();
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
        delete req.headers.authorization; // the key is for the gateway, so no upstream gets it
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
