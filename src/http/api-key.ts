/**
 * Checks the API keys. When keys are set, every path needs one, except health, the description of the API and the
 * pages without data. A client sends the key as `Authorization: Bearer`; `keyOf` has the two exceptions. The dashboard
 * sends it once and then has a session, which opens nothing but `/admin`.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import express, { type Request, type RequestHandler, type Response, type Router } from 'express';
import type { Budgets } from '../budgets.ts';
import { GatewayError } from '../errors.ts';
import { createKeyGuesses } from './key-guesses.ts';
import { caseSensitiveRouter } from './route-table.ts';
import { createSessions } from './sessions.ts';
import { WHISPER_ASR } from './whisper-asr.ts';

const COOKIE = 'voxgate_session';
/** Other names under which clients send a key. The gateway takes none of them, and no upstream may get its key. */
const OTHER_KEY_HEADERS = ['api-key', 'x-api-key'];

export interface ApiKeys {
  /**
   * Lets a request with a valid key or session pass, without the key and the session, which are for the gateway alone.
   * @throws GatewayError `invalid_api_key`, or `too_many_keys` after too many wrong ones from the same address
   */
  require: RequestHandler;
  /**
   * `POST /admin/session {"key": …}` begins a session, whose token is in a cookie, and `DELETE` ends it. For what is
   * below `/admin` it notes whether the request has a session, for `require` and for the pages. It comes first.
   */
  session: Router;
}

/** Whether a request below `/admin` has a session, as the session router noted. */
export const hasSession = (res: Response): boolean => res.locals.hasSession === true;

/** @param keys the valid keys; when empty, every request passes */
export function createApiKeys(keys: readonly string[], limits: Budgets['access']): ApiKeys {
  const sessions = createSessions(limits);
  const guesses = createKeyGuesses(limits);
  // Digests are compared instead of keys: they all have one length, and where they differ says nothing about the key.
  const digest = (text: string) => createHmac('sha256', 'voxgate').update(text).digest();
  const digests = keys.map(digest);
  const isKey = (text: string) => {
    const asked = digest(text);
    return digests.reduce((found, known) => timingSafeEqual(asked, known) || found, false);
  };
  /** Refuses a wrong key, and counts it. */
  const check = (req: Request, key: string) => {
    const address = req.ip ?? '';
    guesses.assertMayTry(address);
    if (isKey(key)) return;
    guesses.wrong(address);
    throw unauthorized();
  };

  const session = caseSensitiveRouter();
  session.use('/admin', (req, res, next) => {
    res.locals.hasSession = keys.length > 0 && sessions.isOpen(tokenOf(req));
    next();
  });
  session.post('/admin/session', express.json({ limit: limits.sessionBytes }), (req, res) => {
    if (keys.length > 0) {
      if (typeof req.body?.key !== 'string' || req.body.key === '') throw unauthorized();
      check(req, req.body.key);
      res.cookie(COOKIE, sessions.begin(), {
        ...COOKIE_OPTIONS,
        secure: req.secure,
        maxAge: limits.lifetimeMs,
      });
    }
    res.status(204).end();
  });
  session.delete('/admin/session', (req, res) => {
    sessions.end(tokenOf(req));
    res.clearCookie(COOKIE, COOKIE_OPTIONS);
    res.status(204).end();
  });

  return {
    session,
    require(req, res, next) {
      dropOwnCookie(req);
      if (keys.length === 0) return next();
      for (const name of OTHER_KEY_HEADERS) if (isKey(req.get(name) ?? '')) delete req.headers[name];
      if (req.baseUrl === '/admin' && hasSession(res)) return next();
      try {
        const key = keyOf(req);
        if (key === undefined) throw unauthorized();
        check(req, key.trim());
      } catch (error) {
        res.setHeader('WWW-Authenticate', 'Bearer realm="voxgate"');
        throw error;
      }
      delete req.headers.authorization;
      next();
    },
  };
}

/** The key that a request presents, in one of the ways that its path allows. */
const keyOf = (req: Request) => credentialsOf(req, 'Bearer') ?? keyOfPassword(req) ?? keyOfSubprotocol(req);

function credentialsOf(req: Request, scheme: string): string | undefined {
  const [, name, credentials] = /^(\S+)\s+(\S.*)$/.exec(req.get('Authorization') ?? '') ?? [];
  return name?.toLowerCase() === scheme.toLowerCase() ? credentials : undefined;
}

/**
 * Bazarr has a field for the address and none for a key, but its library makes HTTP Basic of `http://user:KEY@host`
 * (RFC 7617, section 2). The user may be any. No answer asks for Basic, so that no browser keeps the key and sends it
 * by itself.
 */
function keyOfPassword(req: Request): string | undefined {
  if (!WHISPER_ASR.includes(req.baseUrl)) return undefined;
  const pair = Buffer.from(credentialsOf(req, 'Basic') ?? '', 'base64').toString();
  return /^[^:]*:(.+)$/.exec(pair)?.[1];
}

/**
 * A page cannot set headers for a WebSocket, so OpenAI's protocol has the key among the names of subprotocols. A name is a
 * token, and not every key is one, so a name of ours has it in base64url. Only the route that is a WebSocket takes it
 * there.
 */
function keyOfSubprotocol(req: Request): string | undefined {
  if (req.baseUrl + req.path !== '/v1/realtime') return undefined;
  const names = req.get('Sec-WebSocket-Protocol') ?? '';
  const [, encoded] = /(?:^|,)\s*voxgate-api-key-base64url\.([\w-]+)/.exec(names) ?? [];
  if (encoded !== undefined) return Buffer.from(encoded, 'base64url').toString();
  return /(?:^|,)\s*openai-insecure-api-key\.([^\s,]+)/.exec(names)?.[1];
}

/** The browser sends the cookie to the dashboard only, and never with a request that began on another site. */
const COOKIE_OPTIONS = { path: '/admin', httpOnly: true, sameSite: 'strict' } as const;

function unauthorized(): GatewayError {
  return new GatewayError('invalid_api_key', {});
}

const cookiesOf = (req: Request) => (req.get('Cookie') ?? '').split(';').map((pair) => pair.trim());
const isOwnCookie = (pair: string) => pair.startsWith(`${COOKIE}=`);

function tokenOf(req: Request): string {
  return (
    cookiesOf(req)
      .find(isOwnCookie)
      ?.slice(COOKIE.length + 1) ?? ''
  );
}

/** Takes the session out of the request. Other cookies may be meant for an upstream. */
function dropOwnCookie(req: Request): void {
  const all = cookiesOf(req);
  const others = all.filter((pair) => !isOwnCookie(pair));
  if (others.length === 0) delete req.headers.cookie;
  else if (others.length < all.length) req.headers.cookie = others.join('; ');
}
