/**
 * The connections to a host: through the proxy that the environment names for it (HTTPS_PROXY, HTTP_PROXY and
 * ALL_PROXY, also in lower case, and NO_PROXY with the hosts that need none), or straight to it. undici's own reader of
 * the environment knows no ALL_PROXY and no address without a scheme, would ask the proxy for this machine too, and
 * writes a warning into the log.
 */
import { BlockList, isIP } from 'node:net';
import { unescape as percentDecoded } from 'node:querystring';
import { getProxyForUrl } from 'proxy-from-env';
import type { Dispatcher, Pool } from 'undici';

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
  if (isLoopback(url.hostname.replace(/^\[|\]$/g, ''))) return null;
  const named = getProxyForUrl(url.href);
  if (named === '') return null;
  const proxy = URL.canParse(named) ? new URL(named) : null;
  if (proxy?.protocol === 'http:' || proxy?.protocol === 'https:') return proxy;
  // The address may hold a password, so it is not told.
  throw new UnreachableError(
    `${url.host}: the proxy for it is no http or https URL (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY)`,
  );
}

const isLoopback = (host: string): boolean =>
  /(^|\.)localhost$/i.test(host) ||
  (isIP(host) !== 0 && LOOPBACK.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4'));

/** The user and the password in a URL as a header has them; undefined for none. */
export function basicOf({ username, password }: URL): string | undefined {
  if (username + password === '') return undefined;
  const credentials = [username, password].map((part) => percentDecoded(part)).join(':');
  return `Basic ${Buffer.from(credentials).toString('base64')}`;
}

/** undici is loaded with the first download, because it takes 18 MB. */
export async function openConnections(
  url: URL,
  proxy: URL | null,
  connectTimeoutMs: number,
): Promise<Dispatcher> {
  const { Agent, Pool, ProxyAgent } = await import('undici');
  const limits = { timeout: connectTimeoutMs };
  if (proxy === null) return new Agent({ connect: limits });

  /** Connections of the proxy to the host. Its failures are told from those of the host. */
  class Tunnels extends Pool {
    override async connect(options: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData> {
      const data = await super.connect(options).catch((error: NodeJS.ErrnoException) => {
        throw proxyError(proxy as URL, error);
      });
      if (data.statusCode === 200) return data;
      data.socket.on('error', () => undefined).destroy();
      throw new UnreachableError(
        `the proxy ${proxy?.host} refused to connect to ${options.path} (${data.statusCode})`,
      );
    }
  }

  const token = basicOf(proxy);
  return new ProxyAgent({
    uri: proxy.origin,
    ...(token === undefined ? {} : { token }),
    proxyTls: limits,
    requestTls: limits,
    proxyTunnel: url.protocol === 'https:', // many proxies connect to no port but 443
    clientFactory: (origin, options) =>
      new Tunnels(origin, { ...(options as Pool.Options), headersTimeout: connectTimeoutMs }),
  });
}

function proxyError(proxy: URL, error: NodeJS.ErrnoException): UnreachableError {
  if (error.code === 'UND_ERR_CONNECT_TIMEOUT' || error.code === 'UND_ERR_HEADERS_TIMEOUT')
    return new UnreachableError(`the proxy ${proxy.host} did not answer in time`, { cause: error });
  // A name without a scheme gets that of the URL that is asked for, and most proxies speak no TLS themselves.
  const hint =
    error.code === 'ERR_SSL_WRONG_VERSION_NUMBER' ? ': name one that speaks no TLS with http://' : '';
  return new UnreachableError(`the proxy ${proxy.host} cannot be reached (${error.code})${hint}`, {
    cause: error,
  });
}
