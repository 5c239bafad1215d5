/**
 * Knows the names of this server. A page of another site can have its name made to point here (DNS rebinding), and
 * its browser then takes the gateway for a part of that site. The name in `Host` gives it away, because the browser
 * sets that itself.
 */
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { isLoopback } from '../../address.ts';

export interface HostNameOptions {
  /** The address the server listens on. */
  host: string;
  /** Origins such as `https://example.org` or `http://localhost:*` (any port), or `*` for all. */
  corsOrigins: readonly string[];
  /** Further names; `*` stands for all. */
  allowedHosts: readonly string[];
  hasKeys: boolean;
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
export function hostNames(options: HostNameOptions): (name: string) => boolean {
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
export function hostnameOf(url: string): string | null {
  try {
    return new URL(url).hostname.toLowerCase();
  } catch {
    return null;
  }
}
