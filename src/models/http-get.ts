/**
 * One GET that follows redirects. It does not use fetch, which hides the headers of the first redirect: a hub names the
 * size and the hash of a file there.
 */
import type { Dispatcher } from 'undici';
import { basicOf, openConnections, proxyFor, UnreachableError } from './proxy-connection.ts';

export interface GetOptions {
  headers: Record<string, string>;
  /** A bearer token, which is sent to the origin of the first URL only. */
  token?: string | undefined;
  signal: AbortSignal;
  connectTimeoutMs: number;
  answerTimeoutMs: number;
}

type Response = Dispatcher.ResponseData;

export type GetAnswer = Awaited<ReturnType<typeof httpGet>>;

const MAX_REDIRECTS = 5;
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/**
 * Resolves with the first answer that is not a redirect, with any status; the caller reads or destroys its body.
 * @throws UnreachableError when the host accepts no connection, Error for other failures, `signal.reason` on an abort
 */
export async function httpGet(url: string, options: GetOptions) {
  const first = new URL(url);
  const seen: Response[] = [];
  let target = first;
  for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
    const headers = { ...options.headers };
    if (options.token && target.origin === first.origin) headers.authorization = `Bearer ${options.token}`;
    const response = await send(target, headers, options);
    seen.push(response);
    const { location } = response.headers;
    if (!REDIRECTS.has(response.statusCode) || typeof location !== 'string') {
      return {
        response,
        /** The value of a header (name in lower case) in the first response that has it, redirects included. */
        header: (name: string) => firstHeader(seen, name),
      };
    }
    response.body.destroy(); // the body of a redirect may never end
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
  { signal, connectTimeoutMs, answerTimeoutMs }: GetOptions,
): Promise<Response> {
  const { request } = await import('undici');
  const proxy = proxyFor(url);
  const connections = await openConnections(url, proxy, connectTimeoutMs);
  try {
    const authorization = basicOf(url);
    const response = await request(url, {
      headers: authorization === undefined ? headers : { authorization, ...headers },
      signal,
      dispatcher: connections,
      headersTimeout: answerTimeoutMs,
      bodyTimeout: 0, // the reader of the body watches for stalls
    });
    response.body.on('error', () => undefined).on('close', () => void connections.destroy());
    return response;
  } catch (error) {
    void connections.destroy();
    if (signal.aborted) throw signal.reason;
    const peer = url.protocol === 'http:' && proxy !== null ? proxy : url;
    throw namedError(peer, error as NodeJS.ErrnoException, answerTimeoutMs);
  }
}

const NO_CONNECTION = new Set(['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH']);

function namedError(peer: URL, error: NodeJS.ErrnoException, answerTimeoutMs: number): Error {
  if (error instanceof UnreachableError) return error;
  const { code = '', message } = error;
  if (code === 'UND_ERR_CONNECT_TIMEOUT')
    return new UnreachableError(`${peer.host} did not accept a connection in time`, { cause: error });
  if (NO_CONNECTION.has(code))
    return new UnreachableError(`${peer.host} cannot be reached (${code})`, { cause: error });
  if (code === 'UND_ERR_HEADERS_TIMEOUT')
    return new Error(`${peer.host} did not answer within ${answerTimeoutMs} ms`, { cause: error });
  return new Error(`${peer.host}: ${message || code}`, { cause: error });
}

function firstHeader(responses: readonly Response[], name: string): string | undefined {
  return responses.map(({ headers }) => headers[name]).find((value) => typeof value === 'string');
}
