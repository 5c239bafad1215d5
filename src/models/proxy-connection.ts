/**
 * Reaches a host through the proxy that the environment names for it: HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, also in
 * lower case, and NO_PROXY with the hosts that need none.
 */
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { BlockList, isIP } from 'node:net';
import { unescape as percentDecoded } from 'node:querystring';
import type { Duplex } from 'node:stream';
import { getProxyForUrl } from 'proxy-from-env';

/** The host did not answer at all, so an immediate retry would only cost time. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK.addAddress('::1', 'ipv6');

/**
 * The proxy for a URL; null where none is named, and for this machine itself, which no proxy reaches.
 * @throws UnreachableError for a proxy of a kind that is not spoken, as of SOCKS
 */
export function proxyFor(url: URL): URL | null {
  if (isLoopback(hostOf(url))) return null;
  const named = getProxyForUrl(url.href);
  if (named === '') return null;
  const proxy = URL.canParse(named) ? new URL(named) : null;
  if (proxy?.protocol === 'http:' || proxy?.protocol === 'https:') return proxy;
  // The address may hold a password, so it is not told.
  throw new UnreachableError(
    `${url.host}: the proxy for it is no http or https URL (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY)`,
  );
}

/** How a request to a URL is begun. */
export const requestFor = ({ protocol }: URL) => (protocol === 'https:' ? requestHttps : requestHttp);

/** Whose certificate TLS asks for and checks. Node would take the name of the `Host` header, or of the proxy. */
export function identityOf(url: URL): { host: string; servername: string } {
  const host = hostOf(url);
  return { host, servername: isIP(host) === 0 ? host : '' };
}

/** The user and the password in a URL, as `Basic` has them; undefined for none. */
export function credentialsOf({ username, password }: URL): string | undefined {
  return username + password === ''
    ? undefined
    : [username, password].map((part) => percentDecoded(part)).join(':');
}

/** The options of a request to the proxy itself. */
export function requestTo(proxy: URL) {
  const credentials = credentialsOf(proxy);
  const authorization = `Basic ${Buffer.from(credentials ?? '').toString('base64')}`;
  return {
    ...identityOf(proxy),
    port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
    headers: credentials === undefined ? {} : { 'proxy-authorization': authorization },
  };
}

/**
 * Resolves with a connection to the host of an https: URL (CONNECT, RFC 9110, section 9.3.6). TLS is spoken on it next.
 * @throws UnreachableError when the proxy cannot be reached or refuses, `signal.reason` on an abort
 */
export function connectThrough(
  proxy: URL,
  url: URL,
  { signal, connectTimeoutMs }: { signal: AbortSignal; connectTimeoutMs: number },
): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    const { headers, ...peer } = requestTo(proxy);
    const authority = `${url.hostname}:${url.port || 443}`;
    const request = requestFor(proxy)({
      ...peer,
      method: 'CONNECT',
      path: authority,
      headers: { ...headers, host: authority },
      signal,
      agent: false,
    });
    const failed = (reason: string, cause?: unknown) => {
      clearTimeout(timer);
      const error = new UnreachableError(`the proxy ${proxy.host} ${reason}`, { cause });
      reject(signal.aborted ? signal.reason : error);
    };
    const timer = setTimeout(() => {
      failed('did not answer in time');
      request.destroy();
    }, connectTimeoutMs);
    request.on('connect', ({ statusCode }, socket) => {
      clearTimeout(timer);
      if (statusCode === 200) return resolve(socket);
      socket.destroy();
      failed(`refused to connect to ${authority} (${statusCode})`);
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      // A name without a scheme gets that of the URL that is asked for, and most proxies speak no TLS themselves.
      const hint = error.code === 'EPROTO' ? ': name one that speaks no TLS with http://' : '';
      failed(`cannot be reached (${error.code})${hint}`, error);
    });
    request.end();
  });
}

const isLoopback = (host: string): boolean =>
  /(^|\.)localhost$/i.test(host) ||
  (isIP(host) !== 0 && LOOPBACK.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4'));

/** Without the brackets of an IPv6 address. */
const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '');
