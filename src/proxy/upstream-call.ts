/** One call of an upstream: its timeouts, its end, and how its answer is read. */
import http, { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import https from 'node:https';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { onAbort } from '../abort.ts';
import { withoutTrailingSlashes } from '../address.ts';
import { GatewayError } from '../errors.ts';
import { type Upstream, UpstreamTimeout, upstreamError } from './upstream.ts';
import { answeredError, type ErrorLimits } from './upstream-answer.ts';
import { agentFor, untilClosed } from './upstream-connection.ts';

export interface UpstreamCall {
  /** Ends the call at once when the client leaves, the gateway stops or the operator stops the request. */
  signal: AbortSignal;
  /** The upstream's answer, after it has begun. */
  answer: IncomingMessage | undefined;
  /** The reason why the gateway ended the call; errors of the streams then only follow from it. */
  endedBy: Error | undefined;
  /** True while the call waits for the upstream, and not for the client to read. */
  isUpstreamsTurn(): boolean;
  reject(error: unknown): void;
}

const CONNECT_TIMEOUT_MS = 5000;

/**
 * Closes the upstream's connection when the call ends early for any reason, so that the upstream can stop its work.
 * @param request one that has its socket
 */
export function supervise(request: ClientRequest, call: UpstreamCall, { timeoutMs }: Upstream): void {
  const end = (reason: Error) => {
    call.endedBy ??= reason;
    // The answer comes first, or the parser would take the close for the end of an answer that is ended by closing.
    call.answer?.destroy(reason);
    request.destroy(reason);
  };
  const stopping = onAbort(call.signal, () => end(call.signal.reason));
  const connecting = setTimeout(() => {
    end(new UpstreamTimeout('ERR_CONNECT_TIMEOUT', `no connection within ${CONNECT_TIMEOUT_MS} ms`));
  }, CONNECT_TIMEOUT_MS);
  const connected = () => clearTimeout(connecting);
  const socket = request.socket as Socket;
  if (socket instanceof TLSSocket) socket.once('secureConnect', connected);
  else if (socket.connecting) socket.once('connect', connected);
  else connected();
  // The timeout limits the silence of the upstream, not the whole call. The client has limits of its own.
  request.setTimeout(timeoutMs);
  request.on('timeout', () => {
    if (!call.isUpstreamsTurn()) request.setTimeout(timeoutMs);
    else end(new UpstreamTimeout('ERR_SILENT', `nothing came for ${timeoutMs / 1000} s`));
  });
  request.once('close', () => {
    connected();
    stopping[Symbol.dispose]();
    // The stream of an answer reports how it ended. Without an answer, only this event ends the call.
    if (call.answer === undefined) call.reject(call.endedBy ?? new Error('closed without an answer'));
  });
}

/** An error of the request. An upstream may answer and close before it has read it all; its answer counts then. */
export function requestFailed(error: Error, call: UpstreamCall): void {
  if (call.answer === undefined) call.reject(call.endedBy ?? error);
  else if (endsByClosing(call.answer)) call.answer.destroy(error);
}

/**
 * Refuses an answer that the client would misread: one that is not final, or whose body has a coding of the connection
 * besides the chunks. The name of that coding stays behind with the framing (RFC 9112, section 6.1).
 */
export function assertPassable({ statusCode = 0, headers }: IncomingMessage): void {
  if (statusCode < 200) throw new Error(`the upstream answered with the status ${statusCode}`);
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && !/^chunked$/i.test(coding))
    throw new Error(`the upstream answered with the transfer coding ${coding}`);
}

/** True when the answer ends with the end of its connection (RFC 9112, section 6.3). */
export function endsByClosing({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers['content-length'] === undefined && headers['transfer-encoding'] === undefined;
}

export interface AskOptions extends Pick<UpstreamCall, 'signal' | 'isUpstreamsTurn'> {
  requestId: string;
  limits: ErrorLimits;
}

export interface Answered {
  headers: IncomingHttpHeaders;
  /** Read at the pace of the reader. It must be read, or left by leaving its loop. @throws GatewayError */
  body: AsyncIterable<Buffer>;
}

/**
 * Asks an upstream for the gateway itself, where there is no request of HTTP to forward.
 * @throws GatewayError as a forwarded request would fail, and `signal.reason`
 */
export async function ask(
  upstream: Upstream,
  path: string,
  json: object,
  { signal, isUpstreamsTurn, requestId, limits }: AskOptions,
): Promise<Answered> {
  signal.throwIfAborted();
  const base = new URL(upstream.url);
  const call: UpstreamCall = {
    signal,
    isUpstreamsTurn,
    answer: undefined,
    endedBy: undefined,
    reject: () => undefined,
  };
  const failure = (error: unknown) => upstreamError(call.endedBy ?? error, upstream);
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    call.reject = reject;
    const body = Buffer.from(JSON.stringify(json));
    const { request: open } = base.protocol === 'https:' ? https : http;
    const request = open(base.origin + withoutTrailingSlashes(base.pathname) + path, {
      method: 'POST',
      agent: agentFor(base),
      headers: {
        'content-type': 'application/json',
        'content-length': body.length,
        'accept-encoding': 'identity',
        'x-request-id': requestId,
        ...(upstream.apiKey !== undefined && { authorization: `Bearer ${upstream.apiKey}` }),
      },
    });
    request.once('socket', () => supervise(request, call, upstream));
    request.on('error', (error) => requestFailed(error, call));
    request.once('response', (answer) => {
      call.answer = answer;
      resolve(answer);
    });
    request.end(body);
  });
  try {
    const answer = await answered;
    if ((answer.statusCode ?? 502) >= 400) {
      const error = await answeredError(answer, upstream, limits);
      throw call.endedBy instanceof GatewayError ? call.endedBy : error;
    }
    assertPassable(answer);
    return { headers: answer.headers, body: bodyOf(answer, failure) };
  } catch (error) {
    call.answer?.destroy();
    throw error instanceof GatewayError ? error : failure(error);
  }
}

async function* bodyOf(
  answer: IncomingMessage,
  failure: (error: unknown) => unknown,
): AsyncGenerator<Buffer> {
  try {
    yield* endsByClosing(answer) ? untilClosed(answer) : answer;
  } catch (error) {
    throw failure(error);
  } finally {
    answer.destroy();
  }
}
