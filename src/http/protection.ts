/**
 * Who may ask. A gateway on a private address is still reached by every browser beside it: a page of another site
 * can send it requests (cross-site request forgery), and one whose name is made to point here can read the answers
 * (DNS rebinding). Both are refused by what the browser itself says, `Origin` and `Host`; other clients send no
 * `Origin`, and are let in.
 */
import cors from 'cors';
import type { Request, RequestHandler } from 'express';
import { GatewayError } from '../errors.ts';

export interface ProtectionOptions {
  /** The address the server listens on. */
  host: string;
  /** `https://example.org`, or `*`. */
  corsOrigins: readonly string[];
}

const READING = ['GET', 'HEAD', 'OPTIONS'];
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|::1|::ffff:127(\.\d{1,3}){3})$/i;

export function protection({ host, corsOrigins }: ProtectionOptions): RequestHandler[] {
  const anyOrigin = corsOrigins.includes('*');
  // The admin room is for its own pages only: a site that may use the API may not steer the gateway.
  const isAllowed = (origin: string, req: Request) =>
    !isAdmin(req) && (anyOrigin || corsOrigins.includes(origin));
  const known = new Set([host.toLowerCase(), ...corsOrigins.map((origin) => hostnameOf(origin) ?? '')]);
  const isKnown = (name: string) => LOOPBACK.test(name) || name.endsWith('.localhost') || known.has(name);
  const guardsHost = LOOPBACK.test(host);

  const refuse: RequestHandler = (req, _res, next) => {
    const origin = req.get('Origin');
    const changes = !READING.includes(req.method);
    if (changes && origin !== undefined && !isOwn(origin, req) && !isAllowed(origin, req)) {
      throw new GatewayError('cross_site', {});
    }
    // Behind a public address any name may be ours; on loopback only those of this machine are.
    const isPrivate = changes || isAdmin(req);
    // Not what a proxy is said to have forwarded: a page whose name points here can send any header but this one.
    const named = () => hostnameOf(`http://${req.get('Host') ?? 'localhost'}`) ?? '';
    if (guardsHost && isPrivate && !isKnown(named())) {
      throw new GatewayError('unknown_host', {});
    }
    next();
  };

  const share = cors({
    origin: anyOrigin ? '*' : [...corsOrigins],
    exposedHeaders: ['X-Request-ID', 'X-Voxgate-Model', 'X-Voxgate-Route', 'Retry-After', 'X-Should-Retry'],
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

/** Compares without case, so that what is protected does not depend on how strictly the router compares. */
const isAdmin = (req: Request) => /^\/admin(\/|$)/i.test(req.path);

/**
 * Behind a proxy that ends TLS the scheme differs; the name and port are what the browser sees, as a trusted proxy
 * says where it does not keep `Host`.
 */
function isOwn(origin: string, req: Request): boolean {
  return origin.replace(/^https?:\/\//, '').toLowerCase() === req.host?.toLowerCase();
}

function hostnameOf(url: string): string | null {
  try {
    return new URL(url).hostname.toLowerCase();
  } catch {
    return null;
  }
}
