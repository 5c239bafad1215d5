/** Addresses: of this machine, of a gateway as a client writes them, and as bases of paths. */
import type { Server } from 'node:http';

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\]|::1|::ffff:127(\.\d{1,3}){3})$/i;

/** The path of a Unix socket that is written as `unix:/run/voxgate.sock`; undefined for any other address. */
export const socketPathOf = (address: string): string | undefined => /^unix:(.*)$/.exec(address)?.[1];

/** True for a name, an address or a Unix socket that only this machine reaches. */
export const isLoopback = (host: string): boolean => LOOPBACK.test(host) || socketPathOf(host) !== undefined;

/** @param host a name, an address or a Unix socket; an IPv6 address gets its brackets */
export function baseUrl(host: string, port: number, scheme = 'http'): string {
  if (socketPathOf(host) !== undefined) return host;
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The address to connect to, for one that is listened at: "any address" is reached at the loopback. */
export const reachable = (host: string): string => ({ '0.0.0.0': '127.0.0.1', '::': '::1' })[host] ?? host;

/** How a client of Node reaches the gateway at this base: what its URLs begin with, and its Unix socket if it has one. */
export function reachedAt(base: string): { url: string; socketPath: string | undefined } {
  const socketPath = socketPathOf(base);
  return { url: socketPath === undefined ? withoutTrailingSlashes(base) : 'http://localhost', socketPath };
}

/** The base that the gateway sends its own requests to, as a replay does; null before it listens. */
export function ownBaseUrl(server: Server, host: string): string | null {
  if (socketPathOf(host) !== undefined) return server.listening ? host : null;
  const address = server.address();
  if (address === null || typeof address === 'string') return null;
  return baseUrl(reachable(address.address), address.port);
}

/** The URL without the slashes at its end, so that a path which starts with a slash can be appended. */
export function withoutTrailingSlashes(url: string): string {
  return url.replace(/(?<!\/)\/+$/, '');
}
