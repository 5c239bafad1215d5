/**
 * Forwards a request to an upstream and its answer to the client, chunk by chunk, at the pace of the slower side
 * (backpressure). It is built on http-proxy-middleware and adds what that leaves out: a client that leaves before the
 * answer begins, an upstream that stalls (timeout) or fails in the middle of its answer, hop-by-hop headers, and bodies
 * of DELETE.
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Request, Response } from 'express';
import { createProxyMiddleware, type Options } from 'http-proxy-middleware';
import { withoutTrailingSlashes } from '../address.ts';
import { GatewayError } from '../errors.ts';
import { type HoldsKey, removeKeys } from '../gateway-keys.ts';
import { isUpstreamsTurn } from '../limits/client-pace.ts';
import { responseHeaders, stripRequestHeaders } from './headers.ts';
import { type Upstream, upstreamError } from './upstream.ts';
import { answeredError, type ErrorLimits } from './upstream-answer.ts';
import {
  assertPassable,
  endsByClosing,
  requestFailed,
  supervise,
  type UpstreamCall,
} from './upstream-call.ts';
import { agentFor, untilClosed } from './upstream-connection.ts';

export interface ForwardOptions {
  /** Ends the upstream call at once when the client leaves, the gateway stops or the operator stops the request. */
  signal: AbortSignal;
  /** The body of the request, which was received before; undefined when it has none. */
  body: Readable | undefined;
  /** The path below which a reverse proxy serves the gateway, such as `/voice`; empty without one. */
  servedBelow: string;
}

export type Forward = ReturnType<typeof createReverseProxy>;

/** One request under way. */
interface Call extends ForwardOptions, UpstreamCall {
  res: Response;
  /** True when the client sent the body in chunks; read before the proxy engine changes the headers. */
  chunked: boolean;
  resolve(): void;
}

export interface ReverseProxyOptions {
  limits: ErrorLimits;
  /** True where pages of other sites may show the answers (SVC_CORS_ORIGINS). */
  isEmbeddable: boolean;
  /** No upstream gets a key of the gateway. */
  holdsKey: HoldsKey;
}

type EngineOptions = Options<Request, Response>;
type Engine = Parameters<NonNullable<EngineOptions['plugins']>[number]>[0];

export function createReverseProxy(
  upstream: Upstream,
  { limits, isEmbeddable, holdsKey }: ReverseProxyOptions,
) {
  const calls = new WeakMap<IncomingMessage, Call>();
  const base = new URL(upstream.url);
  const engine = createEngine({
    target: base.origin,
    agent: agentFor(base),
    toProxy: true,
    changeOrigin: true,
    selfHandleResponse: true,
    on: {
      proxyReq(proxyReq, req) {
        const call = calls.get(req);
        if (call === undefined) return;
        // The engine would read the target again; these are the bytes that the routes were matched with.
        proxyReq.path = pathAt(base, req);
        if (call.chunked) {
          // The engine assumes that a DELETE has no body, and would drop it.
          proxyReq.removeHeader('Content-Length');
          proxyReq.setHeader('Transfer-Encoding', 'chunked');
        }
        supervise(proxyReq, call, upstream);
      },
      proxyRes(proxyRes, req) {
        const call = calls.get(req);
        if (call === undefined) return;
        call.answer = proxyRes;
        const path = pathAt(base, req);
        const { servedBelow } = call;
        const headers = responseHeaders(proxyRes, { path, upstream, servedBelow, isEmbeddable });
        answer(proxyRes, headers, call, () => answeredError(proxyRes, upstream, limits)).then(
          call.resolve,
          call.reject,
        );
      },
      error(error, req) {
        const call = calls.get(req);
        if (call !== undefined) requestFailed(error, call);
      },
    },
  });

  /**
   * Resolves when the upstream call has ended and its answer is written. Rejects with a GatewayError or the signal's
   * reason. If the response has begun by then, the caller must destroy the client's connection, because an answer that
   * was cut short must never look complete.
   */
  return (req: Request, res: Response, options: ForwardOptions): Promise<void> => {
    const chunked = req.headers['transfer-encoding'] !== undefined;
    stripRequestHeaders(req.headers);
    removeKeys(req.headers, holdsKey);
    if (upstream.apiKey !== undefined) req.headers.authorization = `Bearer ${upstream.apiKey}`;
    req.headers['x-request-id'] = String(res.getHeader('X-Request-ID'));
    const over = new Promise<void>((resolve, reject) => {
      options.signal.throwIfAborted();
      calls.set(req, {
        ...options,
        res,
        chunked,
        answer: undefined,
        endedBy: undefined,
        isUpstreamsTurn: () => isUpstreamsTurn(res),
        resolve,
        reject,
      });
      res.setMaxListeners(20); // the engine and the pipeline each add several listeners
      engine(req, res, options.body);
    });
    return over.catch((error) => {
      throw upstreamError(error, upstream);
    });
  };
}

const pathAt = (base: URL, req: Request) => withoutTrailingSlashes(base.pathname) + req.originalUrl;

/** The middleware itself has no way to be given a body that was read before. The proxy server inside of it does. */
function createEngine(options: EngineOptions): (req: Request, res: Response, body?: Readable) => void {
  let engine: Engine | undefined;
  createProxyMiddleware<Request, Response>({
    ...options,
    plugins: [
      (server) => {
        engine = server;
      },
    ],
  });
  return (req, res, body) => engine?.web(req, res, { ...options, buffer: body });
}

/** @param errorOf reads an answer with a status from 400 up, and resolves with the error for the client */
async function answer(
  proxyRes: IncomingMessage,
  headers: [name: string, value: string][],
  call: Call,
  errorOf: () => Promise<GatewayError>,
): Promise<void> {
  const { res, signal } = call;
  const status = proxyRes.statusCode ?? 502;
  try {
    assertPassable(proxyRes);
    const error = status >= 400 ? await errorOf() : undefined;
    // What the upstream has answered stands, also where it was silent or broke off before the end of its body.
    if (error !== undefined && call.endedBy instanceof GatewayError) throw call.endedBy;
    for (const [name, value] of headers) res.appendHeader(name, value);
    const reason = reasonPhrase(proxyRes);
    if (error !== undefined) {
      if (reason !== undefined) res.statusMessage = reason;
      call.endedBy = error;
      throw error;
    }
    res.writeHead(status, reason);
    // The first event of a stream may come much later. `flushHeaders` would send the head as UTF-8, and Node has read
    // that of the upstream as Latin-1.
    res.write(Buffer.alloc(0));
    await pipeline(endsByClosing(proxyRes) ? untilClosed(proxyRes) : proxyRes, res, { signal });
  } catch (error) {
    proxyRes.destroy();
    throw call.endedBy ?? (signal.aborted ? signal.reason : error);
  }
}

/** What the upstream says of its status, unless no HTTP/1.1 message may say it (RFC 9112, section 4). */
function reasonPhrase({ statusMessage }: IncomingMessage): string | undefined {
  return /^[\t -~\x80-\xff]+$/.test(statusMessage ?? '') ? statusMessage : undefined;
}
