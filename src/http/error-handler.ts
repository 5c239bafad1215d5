/** Turns everything that a handler throws into an error response with the envelope of contract 2.1. */
import type { ErrorRequestHandler, Response } from 'express';
import type { Logger } from 'winston';
import { NativeError } from '../engine/types.ts';
import { fullMessage, GatewayError, isUsedUp, KINDS } from '../errors.ts';
import { notesOf } from './observe.ts';
import { charsetRefusal, codingRefusal, httpRefusal } from './server/refusals.ts';

/** The content codings that Express reads the small bodies in. */
const READ_CODINGS = ['gzip', 'deflate', 'br'];

/**
 * The JSON body of an error (contract 2.1). The members that an upstream has given come first.
 * @param res names the request of a 5xx; null before there is a request
 */
export function errorEnvelope(error: GatewayError, res: Response | null) {
  const { kind, provider, message, param, code, details, status, answered } = error;
  const id = status >= 500 && res !== null ? { request_id: res.locals.requestId } : {};
  const { type } = KINDS[kind];
  const own = { kind, provider, message, type, param, code, ...wireNames(details), ...id };
  return { ...answered?.members, error: { ...own, ...answered?.members.error } };
}

/** `heldForMs` -> `held_for_ms`. */
function wireNames(details: GatewayError['details']): Record<string, string | number> {
  const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(details).map(([name, value]) => [snakeCase(name), value]));
}

/**
 * The GatewayError to answer with. The message of an unexpected error is never shown to a client, because it may hold
 * paths; the log has it under the request id.
 */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (isUsedUp(error) || (error instanceof NativeError && error.code === 'out_of_memory'))
    return new GatewayError('out_of_memory', {}, { cause: error });
  // Errors of Express and its middleware have a status, such as those for a path that cannot be decoded or a body.
  const { status, type, encoding, charset } = Object(error) as Record<string, unknown>;
  if (type === 'request.aborted') return new GatewayError('client_left', {});
  if (type === 'encoding.unsupported') return codingRefusal(String(encoding), READ_CODINGS);
  if (type === 'charset.unsupported') return charsetRefusal(String(charset));
  if (typeof status === 'number' && status >= 400 && status < 500) return httpRefusal(status);
  return new GatewayError('internal_error', {}, { cause: error });
}

/** Writes a failure to the log and to the notes of its request. Call it before the response is written or broken. */
export function noteFailure(log: Logger, error: GatewayError, res: Response): void {
  notesOf(res).error ??= error; // the first failure is the cause of the later ones
  const { kind, code, message } = error;
  const { method, originalUrl } = res.req;
  const context = { requestId: res.locals.requestId, method, path: originalUrl.split('?', 1)[0] };
  if (kind === 'internal') log.error('request failed', { ...context, cause: describe(error.cause) });
  else if (kind === 'upstream') log.warn('upstream failed', { ...context, code, reason: message });
  else if (kind === 'network' && error.cause !== undefined)
    log.warn('request failed', { ...context, code, reason: fullMessage(error) });
  else log.debug('request refused', { ...context, kind, code, reason: message });
}

/**
 * Headers that describe content (RFC 9110, section 8; RFC 9530). A handler or an upstream may have set them before it
 * failed, and the envelope is other content.
 */
const OF_THE_CONTENT = [
  'Accept-Ranges',
  'Content-Digest',
  'Content-Disposition',
  'Content-Encoding',
  'Content-Language',
  'Content-Length',
  'Content-Location',
  'Content-MD5',
  'Content-Type',
  'Digest',
  'ETag',
  'Last-Modified',
  'Repr-Digest',
];

/**
 * These are soon over, here or at another gateway. Yet `Retry-After` belongs to the busy slot alone (contract 7). Whether
 * the call of an upstream is worth another try, its own headers say.
 */
const PASSING = new Set(['overloaded', 'too_many_sessions', 'shutting_down', 'upstream_error']);

/**
 * The error handler of Express. It answers with the envelope, `Retry-After` for back-pressure and `X-Should-Retry` for
 * the other 5xx. When the headers are already sent, it destroys the connection, so that the answer does not look whole.
 */
export function errorHandler(log: Logger): ErrorRequestHandler {
  return (thrown, req, res, _next) => {
    const error = toGatewayError(thrown);
    noteFailure(log, error, res);
    if (res.headersSent || res.destroyed || error.kind === 'cancelled') {
      res.destroy();
      return;
    }
    for (const name of OF_THE_CONTENT) res.removeHeader(name);
    if (error.retryAfterSec !== undefined) res.setHeader('Retry-After', error.retryAfterSec);
    else if (error.status >= 500 && !PASSING.has(error.code)) res.setHeader('X-Should-Retry', 'false');
    if (error.acceptEncoding !== undefined) res.setHeader('Accept-Encoding', error.acceptEncoding);
    // The rest of the body will not arrive when the client waits for `100 Continue` or has stalled, and will not be
    // read when the gateway shuts down. The next request could then not be found on the connection, so it is closed.
    const isLast = error.code === 'shutting_down' || error.code === 'request_timeout';
    const bodyIsLeft = !req.complete && (req.get('Expect') !== undefined || isLast);
    if (bodyIsLeft) res.setHeader('Connection', 'close');
    res.status(error.status).json(errorEnvelope(error, res));
  };
}

function describe(cause: unknown): string {
  return cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
}
