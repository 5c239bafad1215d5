/**
 * Passes one request on to an upstream and its answer back, chunk by chunk, at the pace of the slower side. Built
 * on http-proxy-middleware; what its engine leaves open is closed here: a client that leaves before the answer
 * began, an upstream that stalls or breaks in the middle of it, headers of one connection, bodies of DELETE.
 */

import { once } from 'node:events';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import type { Request, Response } from 'express';
import { createProxyMiddleware } from 'http-proxy-middleware';
import { withoutTrailingSlashes } from '../url-base.ts';
import { type ClientLimits, isUpstreamsTurn, watchReading, watchSending } from './client-pace.ts';
import { responseHeaders, stripRequestHeaders } from './headers.ts';
import { silentError, type Upstream, UpstreamTimeout, upstreamError } from './upstream.ts';

export interface ForwardOptions {
  /** Ends the upstream call at once: the client left, the gateway stops, the operator said so. */
  signal: AbortSignal;
  /** Sees every chunk of the request's body on its way. */
  onRequestBody(chunk: Buffer): void;
}

/**
 * Resolves when the upstream call is over and its answer is written. Rejects with a GatewayError, or the signal's
 * reason; when the response had begun by then, it is for the caller to break the client's connection: an answer
 * cut short must never look whole.
 */
export type Forward = (req: Request, res: Response, options: ForwardOptions) => Promise<void>;

/** One request under way. */
interface Call extends ForwardOptions {
  res: Response;
  /** As the client framed the body, before the proxy engine touches it. */
  chunked: boolean;
  /** The upstream's answer, once it has begun. */
  answer: IncomingMessage | undefined;
  /** Why we ended it, when we did: what the streams say then is only the echo. */
  endedBy: Error | undefined;
  resolve(): void;
  reject(error: unknown): void;
}

const CONNECT_TIMEOUT_MS = 5000;

export function createReverseProxy(upstream: Upstream, limits: ClientLimits): Forward {
  const calls = new WeakMap<IncomingMessage, Call>();
  const base = new URL(upstream.url);

  const proxy = createProxyMiddleware<Request, Response>({
    target: base.origin,
    pathFilter: () => true,
    toProxy: true,
    changeOrigin: true,
    selfHandleResponse: true,
    on: {
      proxyReq(proxyReq, req) {
        const call = calls.get(req);
        if (call === undefined) return;
        proxyReq.path = pathAt(base, req.originalUrl);
        if (call.chunked) {
          // The engine takes a DELETE for one without a body and would drop it.
          proxyReq.removeHeader('Content-Length');
          proxyReq.setHeader('Transfer-Encoding', 'chunked');
        }
        req.on('data', call.onRequestBody);
        supervise(proxyReq, req, call, upstream, limits);
      },
      proxyRes(proxyRes, req) {
        const call = calls.get(req);
        if (call === undefined) return;
        call.answer = proxyRes;
        answer(proxyRes, call, upstream, limits).then(call.resolve, call.reject);
      },
      error(error, req) {
        const call = calls.get(req);
        if (call === undefined) return;
        // An upstream may answer and close before it has read the whole request: its answer counts.
        if (call.answer === undefined) call.reject(call.endedBy ?? error);
        else if (endsByClosing(call.answer)) call.answer.destroy(error);
      },
    },
  });

  return (req, res, options) => {
    const chunked = req.headers['transfer-encoding'] !== undefined;
    stripRequestHeaders(req.headers);
    req.headers['x-request-id'] = String(res.getHeader('X-Request-ID'));
    const over = new Promise<void>((resolve, reject) => {
      options.signal.throwIfAborted();
      calls.set(req, { ...options, res, chunked, answer: undefined, endedBy: undefined, resolve, reject });
      res.setMaxListeners(20); // the engine and the pipeline wait for its end several times each
      proxy(req, res, reject);
    });
    return over.catch((error) => {
      throw upstreamError(error, upstream);
    });
  };
}

/** The client's path and query untouched, below the upstream's own path if it has one. */
function pathAt(base: URL, originalUrl: string): string {
  const absolute = originalUrl.startsWith('/') ? null : new URL(originalUrl);
  const path = absolute === null ? originalUrl : absolute.pathname + absolute.search;
  return withoutTrailingSlashes(base.pathname) + path;
}

/** Whatever ends the call early closes the upstream's connection, so that it can stop working. */
function supervise(
  proxyReq: ClientRequest,
  req: Request,
  call: Call,
  { timeoutMs }: Upstream,
  limits: ClientLimits,
): void {
  const end = (reason: Error) => {
    call.endedBy ??= reason;
    // First, or the parser would take the closing for the end of an answer that only closing ends.
    call.answer?.destroy(reason);
    proxyReq.destroy(reason);
  };
  const stop = () => end(call.signal.reason);
  if (call.signal.aborted) stop();
  call.signal.addEventListener('abort', stop);
  const connecting = setTimeout(() => {
    end(new UpstreamTimeout('ERR_CONNECT_TIMEOUT', `no connection within ${CONNECT_TIMEOUT_MS} ms`));
  }, CONNECT_TIMEOUT_MS);
  const connected = () => clearTimeout(connecting);
  const socket = proxyReq.socket as Socket;
  if (socket.connecting) socket.once('connect', connected);
  else connected();
  // Of silence, not of the whole call, and of the upstream's own: a client has limits of its own.
  proxyReq.setTimeout(timeoutMs);
  proxyReq.on('timeout', () => {
    if (!isUpstreamsTurn(req, call.res, proxyReq)) proxyReq.setTimeout(timeoutMs);
    else end(new UpstreamTimeout('ERR_SILENT', `nothing came for ${timeoutMs / 1000} s`));
  });
  const sending = watchSending(req, limits, {
    isItsTurn: () => !req.complete && !proxyReq.writableNeedDrain,
    late: end,
  });
  proxyReq.once('close', () => {
    connected();
    sending.stop();
    call.signal.removeEventListener('abort', stop);
    // After an answer, its own stream tells how it ended; without one nothing else would.
    if (call.answer === undefined) call.reject(call.endedBy ?? new Error('closed without an answer'));
  });
}

async function answer(
  proxyRes: IncomingMessage,
  call: Call,
  upstream: Upstream,
  limits: ClientLimits,
): Promise<void> {
  const { res } = call;
  const status = proxyRes.statusCode ?? 502;
  const slow = new AbortController();
  // For as long as the client reads: the upstream may have nothing left to say long before that.
  const reading = watchReading(res, limits, (error) => {
    proxyRes.destroy(error);
    slow.abort(error);
  });
  const signal = AbortSignal.any([call.signal, slow.signal]);
  try {
    if (status >= 400 && res.req.method !== 'HEAD' && (await isEmpty(proxyRes, signal)))
      throw silentError(status, upstream);
    for (const [name, value] of responseHeaders(proxyRes)) res.appendHeader(name, value);
    res.writeHead(status, proxyRes.statusMessage);
    res.flushHeaders(); // an event stream may have nothing to say for a long time yet
    await pipeline(proxyRes, res, { signal });
  } catch (error) {
    proxyRes.destroy();
    throw call.endedBy ?? (signal.aborted ? signal.reason : error);
  } finally {
    reading.stop();
  }
}

/** Whether nothing but the end of the connection tells where the answer ends (RFC 9112, section 6.3). */
function endsByClosing({ headers }: IncomingMessage): boolean {
  return headers['content-length'] === undefined && headers['transfer-encoding'] === undefined;
}

/** Waits for the first of the body, which stays unread. */
async function isEmpty(proxyRes: IncomingMessage, signal: AbortSignal): Promise<boolean> {
  if (proxyRes.headers['content-length'] === '0') return true;
  await once(proxyRes, 'readable', { signal });
  return proxyRes.readableLength === 0;
}
