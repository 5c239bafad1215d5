/**
 * Protects the gateway from pages of other sites. A gateway on a private address can still be reached by every browser
 * beside it: a page of another site can send it requests (cross-site request forgery), and a page whose name is made
 * to point here can read the answers (DNS rebinding). Both are refused by the `Origin` and `Host` that the browser
 * itself sends. Other clients send no `Origin` and pass.
 */
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import cors from 'cors';
import type { Request, RequestHandler } from 'express';
import { isLoopback } from '../../address.ts';
import { GatewayError } from '../../errors.ts';

interface ProtectionOptions {
  /** The address the server listens on. */
  host: string;
  /** Origins such as `https://example.org` or `http://localhost:*` (any port), or `*` for all. */
  corsOrigins: readonly string[];
  /** Further names; `*` stands for all. */
  allowedHosts: readonly string[];
  hasKeys: boolean;
}

const READING = ['GET', 'HEAD'];
/** Fetch Metadata (W3C), section 2.4. */
const OTHER_SITES = ['cross-site', 'same-site'];
/** Health is not a secret, and monitors may use any host name. */
const UNDER_ANY_NAME = ['/health', '/ready'];

export function protection(options: ProtectionOptions): RequestHandler[] {
  const { corsOrigins } = options;
  const anyOrigin = corsOrigins.includes('*');
  // Only the gateway's own pages may use the admin API: a site that may use the API may not control the gateway.
  const isAllowed = (origin: string, req: Request) =>
    !isAdmin(req) && (anyOrigin || corsOrigins.some((site) => isOfSite(origin, site)));
  const isOwnName = hostNames(options);
  /** A browser says so in `Origin`, and in `Sec-Fetch-Site` when a page only embeds the answer. */
  const isForeign = (req: Request) => {
    const origin = req.get('Origin');
    if (origin !== undefined) return !isOwn(origin, req) && !isAllowed(origin, req);
    // A site that may use the API may embed its answers too, and this field does not say which site it is.
    return corsOrigins.length === 0 && OTHER_SITES.includes(req.get('Sec-Fetch-Site') ?? '');
  };

  const refuse: RequestHandler = (req, _res, next) => {
    if (isForeign(req) && !isHarmless(req)) throw new GatewayError('cross_site', {});
    // `X-Forwarded-Host` does not count: a page whose name points here can set any header except `Host`.
    const named = () => hostnameOf(`http://${req.get('Host') ?? 'localhost'}`) ?? '';
    if (!UNDER_ANY_NAME.includes(req.path) && !isOwnName(named())) {
      throw new GatewayError('unknown_host', {});
    }
    next();
  };

  const share = cors({
    origin: anyOrigin ? '*' : true, // the origin that asks: `isAllowed` has judged it
    exposedHeaders: [
      'X-Request-ID',
      'X-Voxgate-Model',
      'X-Voxgate-Route',
      'Retry-After',
      'X-Should-Retry',
      'Preference-Applied',
    ],
    maxAge: 600,
  });
  const shareWithAllowed: RequestHandler = (req, res, next) => {
    const origin = req.get('Origin');
    if (corsOrigins.length > 0 && !anyOrigin) res.vary('Origin');
    if (origin !== undefined && isAllowed(origin, req)) share(req, res, next);
    else next();
  };
  return [refuse, shareWithAllowed];
}

/**
 * Top-level domains for private networks. The public DNS answers no name below them, so an attacker cannot register one
 * (RFC 6761, RFC 6762, RFC 8375, and the resolution of ICANN on `internal` of 2024-07-29).
 */
const PRIVATE_DOMAIN = /\.(localhost|local|internal|home\.arpa)$/;

/**
 * Returns whether a name in lower case, without a port, is one of this server. On loopback these are the names of
 * loopback and those in the settings. On other addresses a name also passes that no stranger can make point here. With
 * keys it may have any name there: a page of another site has no key, and its browser sends it no session.
 */
function hostNames(options: ProtectionOptions): (name: string) => boolean {
  const { host, corsOrigins, allowedHosts, hasKeys } = options;
  const onLoopback = isLoopback(host);
  if (allowedHosts.includes('*') || (hasKeys && !onLoopback)) return () => true;
  const known = new Set([
    host.toLowerCase(),
    ...corsOrigins.map((origin) => hostnameOf(origin.replace(/:\*$/, '')) ?? ''),
    ...allowedHosts.map((name) => name.toLowerCase()),
  ]);
  const own = hostname().toLowerCase();
  const isPrivate = (name: string) =>
    name === own ||
    !name.includes('.') ||
    PRIVATE_DOMAIN.test(name) ||
    isIP(name.replace(/^\[|\]$/g, '')) > 0;
  return (name) =>
    isLoopback(name) ||
    name.endsWith('.localhost') ||
    known.has(name) ||
    (!onLoopback && name !== '' && isPrivate(name));
}

/** The host name in a URL, in lower case; null if it is not a URL. */
function hostnameOf(url: string): string | null {
  try {
    return new URL(url).hostname.toLowerCase();
  } catch {
    return null;
  }
}

/** @param site may have any port, as `http://localhost:*` */
function isOfSite(origin: string, site: string): boolean {
  if (!site.endsWith(':*')) return origin === site;
  const anyPort = site.slice(0, -2);
  return (
    origin === anyPort || (origin.startsWith(`${anyPort}:`) && /^\d+$/.test(origin.slice(anyPort.length + 1)))
  );
}

/**
 * Whether a page of another site may make this request, because it changes nothing and tells the page nothing. The
 * browser keeps an answer from the page when it has sent `Origin`. Without it, the page could run or show the answer.
 */
function isHarmless(req: Request): boolean {
  if (req.method === 'OPTIONS') return true;
  if (!READING.includes(req.method)) return false;
  if (UNDER_ANY_NAME.includes(req.path)) return true;
  // Browsers let every page open a WebSocket anywhere, and read what comes from it.
  const takesSlot = /^\/v1\/(audio\/|realtime|responses\/)/i.test(req.path);
  const isLink = req.get('Sec-Fetch-Dest') === 'document';
  return !takesSlot && (isLink || req.get('Origin') !== undefined);
}

/** Ignores case, so that the protection does not depend on how strictly the router compares paths. */
const isAdmin = (req: Request) => /^\/admin(\/|$)/i.test(req.path);

/**
 * Compares the name and port only, because behind a proxy that ends TLS the scheme differs. `req.host` is the name
 * that the browser sees: a trusted proxy forwards it when it does not keep `Host`. A browser leaves the usual port of a
 * scheme out of `Origin`, and some proxies write it into `Host`.
 */
function isOwn(origin: string, req: Request): boolean {
  const [scheme] = /^https?:\/\//.exec(origin) ?? [];
  const asked = `${scheme}${req.host}`;
  if (scheme === undefined || !URL.canParse(origin) || !URL.canParse(asked)) return false;
  return new URL(origin).host === new URL(asked).host;
}
