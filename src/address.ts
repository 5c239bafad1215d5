/** Addresses: of this machine, of a gateway as a client writes them, and as bases of paths. */
import type { Server } from 'node:http';

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|::1|::ffff:127(\.\d{1,3}){3})$/i;

/** True for a name or an address that only this machine reaches. */
export const isLoopback = (host: string): boolean => LOOPBACK.test(host);

/** @param host a name or an address; an IPv6 address gets its brackets */
export function baseUrl(host: string, port: number, scheme = 'http'): string {
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The address to connect to, for one that is listened at: "any address" is reached at the loopback. */
export const reachable = (host: string): string => ({ '0.0.0.0': '127.0.0.1', '::': '::1' })[host] ?? host;

/** The base URL that the gateway sends its own requests to, as a replay does; null before it listens. */
export function ownBaseUrl(server: Server): string | null {
  const address = server.address();
  if (address === null || typeof address === 'string') return null;
  return baseUrl(reachable(address.address), address.port);
}

/** The URL without the slashes at its end, so that a path which starts with a slash can be appended. */
export function withoutTrailingSlashes(url: string): string {
  return url.replace(/(?<!\/)\/+$/, '');
}
