/**
 * Checks the API keys. When keys are set, every path needs one, except health, the description of the API and the
 * pages without data. Where there are admin keys, `/admin` and `/metrics` want one of those. A client sends the key as
 * `Authorization: Bearer`; `keysOf` has the other ways. The dashboard sends it once and then has a session, which opens
 * nothing but `/admin`. A client secret opens nothing but `/v1/realtime`.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import express, { type NextFunction, type Request, type Response } from 'express';
import type { Logger } from 'winston';
import type { Config } from '../../config/config.ts';
import { GatewayError } from '../../errors.ts';
import { keyFinder, removeKeys } from '../../gateway-keys.ts';
import type { Budgets } from '../../limits/budgets.ts';
import { createKeyGuesses } from '../../limits/key-guesses.ts';
import { networkOf } from '../../limits/network.ts';
import { notesOf } from '../observe.ts';
import { caseSensitiveRouter } from '../route-table.ts';
import { forwardedPrefix } from '../server/forwarded-prefix.ts';
import { WHISPER_ASR } from '../whisper-asr.ts';
import { createTokens, type Tokens } from './tokens.ts';

/** What every client secret begins with, as OpenAI's do. */
export const SECRET_PREFIX = 'ek_';

const COOKIE = 'voxgate_session';
/** Other names under which clients send a key: `api-key` is that of Azure's packages. */
const OTHER_KEY_HEADERS = ['api-key', 'x-api-key'];

export type ApiKeys = ReturnType<typeof createApiKeys>;

/** Whether a request below `/admin` has a session, as the session router noted. */
export const hasSession = (res: Response): boolean => res.locals.hasSession === true;

/** What the live session of a request with a client secret begins with, as it was when the secret was made. */
export const settingsOfSecret = (res: Response) => res.locals.settingsOfSecret;

interface ApiKeyParts {
  /** When there are none, every request passes that needs no admin key. */
  keys: Pick<Config, 'apiKeys' | 'adminKeys' | 'keyNames'>;
  limits: Budgets['access'];
  /** Finds the settings of a live session by the client secret that stands for them. */
  secrets: Pick<Tokens<object>, 'find'>;
  log: Logger;
}

export function createApiKeys({ keys: config, limits, secrets, log }: ApiKeyParts) {
  const sessions = createTokens<true>({ most: limits.sessions });
  const keys = [...config.apiKeys, ...config.adminKeys];
  const users = config.apiKeys.length > 0 ? keys : [];
  const admins = config.adminKeys.length > 0 ? config.adminKeys : config.apiKeys;
  const isAdmin = (req: Request) => req.baseUrl === '/admin' || req.baseUrl === '/metrics';
  const check = createKeyCheck(config.keyNames, limits, log);
  const checkUser = check(users);
  const checkAdmin = check(admins);
  /**
   * A wrong secret does not count as a wrong key: a secret is too long to guess, and a page may go on sending one that
   * has expired.
   */
  const isSecret = (key = '') =>
    key.startsWith(SECRET_PREFIX) && !keys.some((known) => known.startsWith(SECRET_PREFIX));

  const session = caseSensitiveRouter();
  session.use('/admin', (req, res, next) => {
    res.locals.hasSession = admins.length > 0 && sessions.find(tokenOf(req)) !== undefined;
    next();
  });
  session.post('/admin/session', express.json({ limit: limits.sessionBytes }), (req, res) => {
    if (admins.length > 0) {
      if (typeof req.body?.key !== 'string' || req.body.key === '') throw unauthorized();
      checkAdmin.nameOfKey(req, [req.body.key]);
      const owner = { network: networkOf(req.ip ?? ''), lifetimeMs: limits.lifetimeMs };
      res.cookie(COOKIE, sessions.issue(true, owner), {
        ...cookieOptions(req),
        secure: req.secure,
        maxAge: limits.lifetimeMs,
      });
    }
    res.status(204).end();
  });
  session.delete('/admin/session', (req, res) => {
    sessions.end(tokenOf(req));
    res.clearCookie(COOKIE, cookieOptions(req));
    res.status(204).end();
  });

  return {
    /**
     * `POST /admin/session {"key": …}` begins a session, whose token is in a cookie, and `DELETE` ends it. For what is
     * below `/admin` it notes whether the request has a session, for `require` and for the pages. It comes first.
     */
    session,
    /**
     * Lets a request with a valid key, session or client secret pass, without the session and the secret, because they are
     * for the gateway alone. The keys are taken out where requests are forwarded (`gateway-keys.ts`).
     * @throws GatewayError `invalid_api_key`, `invalid_client_secret`, or `too_many_keys` for a wrong key after too many
     *   others from the same address
     */
    require(req: Request, res: Response, next: NextFunction) {
      dropOwnCookie(req);
      const presented = keysOf(req);
      const own = presented.filter((key) => secrets.find(key) !== undefined);
      removeKeys(req.headers, keyFinder(own));
      if (own[0] !== undefined && isLive(req)) {
        res.locals.settingsOfSecret = secrets.find(own[0]);
        return next();
      }
      const checked = isAdmin(req) ? checkAdmin : checkUser;
      // A secret that has expired is refused also where no key is needed: the session would have other settings.
      if (checked.isOpen && !(isLive(req) && presented.some(isSecret))) return next();
      if (req.baseUrl === '/admin' && hasSession(res)) return next();
      try {
        if (presented.length === 0) throw unauthorized();
        if (presented.some(isSecret) && !presented.some(checked.isKey))
          throw new GatewayError('invalid_client_secret', {});
        notesOf(res).key = checked.nameOfKey(req, presented);
      } catch (error) {
        res.setHeader('WWW-Authenticate', 'Bearer realm="voxgate"');
        throw error;
      }
      next();
    },
  };
}

const WARN_EVERY_MS = 60_000;

/**
 * Compares keys with the gateway's, and bounds how many wrong ones may come from an address, whatever they are for.
 * @returns a function of the keys that are right for one purpose
 */
function createKeyCheck(names: Config['keyNames'], limits: Budgets['access'], log: Logger) {
  const countWrong = createKeyGuesses(limits);
  // Digests are compared instead of keys: they all have one length, and where they differ says nothing about the key.
  const digest = (text: string) => createHmac('sha256', 'voxgate').update(text).digest();
  let warnedAt = Number.NEGATIVE_INFINITY;
  const warn = (address: string) => {
    if (performance.now() - warnedAt < WARN_EVERY_MS) return;
    warnedAt = performance.now();
    log.warn('A client sends a wrong key; further ones are not named for a minute', { address });
  };
  return (keys: readonly string[]) => {
    const digests = keys.map(digest);
    const isKey = (text: string) => {
      const asked = digest(text);
      return digests.reduce((found, known) => timingSafeEqual(asked, known) || found, false);
    };
    return {
      isOpen: keys.length === 0,
      isKey,
      /**
       * The name of the right one. Refuses keys of which all are wrong, and counts each. One that is not the gateway's
       * may be for an upstream.
       */
      nameOfKey(req: Request, presented: readonly string[]) {
        const right = presented.find(isKey);
        if (right !== undefined) return names.get(right);
        const address = req.ip ?? '';
        warn(address);
        for (const wrong of presented) countWrong(address, digest(wrong).toString('base64'));
        throw unauthorized();
      },
    };
  };
}

/** The keys that a request presents, in the ways that its path allows. */
const keysOf = (req: Request): string[] =>
  [
    credentialsOf(req, 'Bearer'),
    ...OTHER_KEY_HEADERS.map((name) => req.get(name)),
    keyOfPassword(req),
    keyOfSubprotocol(req),
  ].flatMap((key) => key?.trim() ?? []);

/** Whether a request is for the route that is a WebSocket. */
const isLive = (req: Request) => /^\/v1\/realtime\/?$/.test(req.baseUrl + req.path);

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
  if (!isLive(req)) return undefined;
  const names = req.get('Sec-WebSocket-Protocol') ?? '';
  const [, encoded] = /(?:^|,)\s*voxgate-api-key-base64url\.([\w-]+)/.exec(names) ?? [];
  if (encoded !== undefined) return Buffer.from(encoded, 'base64url').toString();
  return /(?:^|,)\s*openai-insecure-api-key\.([^\s,]+)/.exec(names)?.[1];
}

/** The browser sends the cookie to the dashboard only, and never with a request that began on another site. */
const cookieOptions = (req: Request) =>
  ({ path: `${forwardedPrefix(req)}/admin`, httpOnly: true, sameSite: 'strict' }) as const;

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
