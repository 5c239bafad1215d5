/**
 * One GET that follows redirects. It does not use fetch for two reasons: fetch cannot distinguish a slow connection
 * from a slow answer, although a hub that cannot be reached must fail within seconds, and it hides the headers of the
 * first redirect.
 */
import type { ClientRequest, IncomingMessage } from 'node:http';
import { request as requestHttps } from 'node:https';
import { connect as connectTls } from 'node:tls';
import {
  connectThrough,
  credentialsOf,
  identityOf,
  proxyFor,
  requestFor,
  requestTo,
  UnreachableError,
} from './proxy-connection.ts';

export interface GetOptions {
  headers: Record<string, string>;
  /** A bearer token, which is sent to the origin of the first URL only. */
  token?: string | undefined;
  signal: AbortSignal;
  connectTimeoutMs: number;
  answerTimeoutMs: number;
}

export interface GetAnswer {
  response: IncomingMessage;
  /** The value of a header (name in lower case) in the first response that has it, redirects included. */
  header(name: string): string | undefined;
}

const MAX_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/**
 * Resolves with the first answer that is not a redirect, with any status; the caller reads or destroys its body.
 * @throws UnreachableError when the host accepts no connection, Error for other failures, `signal.reason` on an abort
 */
export async function httpGet(url: string, options: GetOptions): Promise<GetAnswer> {
  const first = new URL(url);
  const seen: IncomingMessage[] = [];
  let target = first;
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const headers = { ...options.headers };
    if (options.token && target.origin === first.origin) headers.authorization = `Bearer ${options.token}`;
    const response = await send(target, headers, options);
    seen.push(response);
    const location = response.headers.location;
    if (!REDIRECTS.has(response.statusCode ?? 0) || location === undefined) {
      return { response, header: (name) => firstHeader(seen, name) };
    }
    response.destroy(); // the body of a redirect may never end
    const next = new URL(location, target);
    if (next.protocol !== target.protocol && next.protocol !== 'https:') {
      throw new Error(`${target.host} redirects from ${target.protocol} to ${next.protocol}`);
    }
    target = next;
  }
  throw new Error(`${first.host} redirects more than ${MAX_REDIRECTS} times`);
}

async function send(
  url: URL,
  headers: Record<string, string>,
  options: GetOptions,
): Promise<IncomingMessage> {
  const proxy = proxyFor(url);
  const common = { headers, signal: options.signal, agent: false };
  if (proxy === null) return answerOf(requestFor(url)(url, common), url, options);
  if (url.protocol === 'https:') {
    const socket = await connectThrough(proxy, url, options);
    const createConnection = () => connectTls({ socket, ...identityOf(url) });
    // Without an agent Node takes 80 for the usual port, and names it in `Host`.
    const own = { ...common, agent: undefined, defaultPort: 443, createConnection };
    return answerOf(requestHttps(url, own), url, options);
  }
  const { headers: forProxy, ...peer } = requestTo(proxy);
  const path = url.origin + url.pathname + url.search;
  const all = { ...common, ...peer, path, headers: { ...headers, ...forProxy, host: url.host } };
  return answerOf(requestFor(proxy)({ ...all, auth: credentialsOf(url) }), proxy, options);
}

/** @param peer the host that the request is sent to */
function answerOf(request: ClientRequest, peer: URL, options: GetOptions): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => request.destroy(new UnreachableError(`${peer.host} did not accept a connection in time`)),
      options.connectTimeoutMs,
    );
    const connected = () => {
      clearTimeout(timer);
      request.setTimeout(options.answerTimeoutMs, () =>
        request.destroy(new Error(`${peer.host} did not answer within ${options.answerTimeoutMs} ms`)),
      );
    };
    request.on('socket', (socket) => {
      socket.once(peer.protocol === 'https:' ? 'secureConnect' : 'connect', connected);
    });
    request.on('response', (response) => {
      clearTimeout(timer);
      // The reader of the body watches for stalls.
      request.setTimeout(0);
      resolve(response);
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      reject(options.signal.aborted ? options.signal.reason : namedError(peer, error));
    });
    request.end();
  });
}

const NO_CONNECTION = new Set(['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH']);

function namedError(peer: URL, error: NodeJS.ErrnoException): Error {
  if (error instanceof UnreachableError) return error;
  if (error.code && NO_CONNECTION.has(error.code)) {
    return new UnreachableError(`${peer.host} cannot be reached (${error.code})`, { cause: error });
  }
  return new Error(`${peer.host}: ${error.message || error.code}`, { cause: error });
}

function firstHeader(responses: readonly IncomingMessage[], name: string): string | undefined {
  for (const { headers } of responses) {
    const value = headers[name];
    if (typeof value === 'string') return value;
  }
  return undefined;
}
