/**
 * Protects the gateway from pages of other sites. A gateway on a private address can still be reached by every browser
 * beside it: a page of another site can send it requests (cross-site request forgery), and a page whose name is made
 * to point here can read the answers (DNS rebinding). Both are refused by the `Origin` and `Host` that the browser
 * itself sends. Other clients send no `Origin` and pass.
 */
import cors from 'cors';
import type { Request, RequestHandler } from 'express';
import { GatewayError } from '../errors.ts';
import { type HostNameOptions, hostNames, hostnameOf } from './host-names.ts';

export interface ProtectionOptions extends HostNameOptions {
  /** Origins such as `https://example.org`, or `*` for all. */
  corsOrigins: readonly string[];
}

const READING = ['GET', 'HEAD', 'OPTIONS'];
/** Whether the process lives and works is no secret, and those who watch it use any name. */
const UNDER_ANY_NAME = ['/health', '/ready'];

export function protection(options: ProtectionOptions): RequestHandler[] {
  const { corsOrigins } = options;
  const anyOrigin = corsOrigins.includes('*');
  // Only the gateway's own pages may use the admin API: a site that may use the API may not control the gateway.
  const isAllowed = (origin: string, req: Request) =>
    !isAdmin(req) && (anyOrigin || corsOrigins.includes(origin));
  const isOwnName = hostNames(options);

  const refuse: RequestHandler = (req, _res, next) => {
    const origin = req.get('Origin');
    const changes = !READING.includes(req.method);
    if (changes && origin !== undefined && !isOwn(origin, req) && !isAllowed(origin, req)) {
      throw new GatewayError('cross_site', {});
    }
    // `X-Forwarded-Host` does not count: a page whose name points here can set any header except `Host`.
    const named = () => hostnameOf(`http://${req.get('Host') ?? 'localhost'}`) ?? '';
    if (!UNDER_ANY_NAME.includes(req.path) && !isOwnName(named())) {
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

/** Ignores case, so that the protection does not depend on how strictly the router compares paths. */
const isAdmin = (req: Request) => /^\/admin(\/|$)/i.test(req.path);

/**
 * Compares the name and port only, because behind a proxy that ends TLS the scheme differs. `req.host` is the name
 * that the browser sees: a trusted proxy forwards it when it does not keep `Host`.
 */
function isOwn(origin: string, req: Request): boolean {
  return origin.replace(/^https?:\/\//, '').toLowerCase() === req.host?.toLowerCase();
}
