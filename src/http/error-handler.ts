/** Writes the error status of every request: what is thrown leaves as the envelope of contract 2.1. */
import type { ErrorRequestHandler, Response } from 'express';
import type { Logger } from 'winston';
import { NativeError } from '../engine/types.ts';
import { type ErrorKind, fullMessage, GatewayError } from '../errors.ts';
import { notesOf } from './observe.ts';
import { httpRefusal } from './refusals.ts';

/** OpenAI's `error.type` for our kinds. */
const OPENAI_TYPE: Record<ErrorKind, string> = {
  malformed: 'invalid_request_error',
  unauthorized: 'authentication_error',
  forbidden: 'permission_error',
  not_found: 'invalid_request_error',
  method_not_allowed: 'invalid_request_error',
  too_large: 'invalid_request_error',
  cancelled: 'cancelled',
  internal: 'server_error',
  upstream: 'server_error',
  network: 'server_error',
};

export function errorEnvelope(error: GatewayError, res: Response | null) {
  const { kind, provider, message, param, code, details, status } = error;
  const id = status >= 500 && res !== null ? { request_id: res.locals.requestId } : {};
  const type = OPENAI_TYPE[kind];
  return { error: { kind, provider, message, type, param, code, ...wireNames(details), ...id } };
}

/** `heldForMs` -> `held_for_ms`. */
function wireNames(details: GatewayError['details']): Record<string, string | number> {
  const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(details).map(([name, value]) => [snakeCase(name), value]));
}

/** Never shows what an unexpected error says: that is for the log, found by the request id. */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof NativeError && error.code === 'out_of_memory')
    return new GatewayError('out_of_memory', {}, { cause: error });
  // What Express and its middleware refuse carries a status: a path that cannot be decoded, a body, a range.
  const { status, type } = Object(error) as { status?: unknown; type?: unknown };
  if (type === 'request.aborted') return new GatewayError('client_left', {});
  if (typeof status === 'number' && status >= 400 && status < 500) return httpRefusal(status);
  return new GatewayError('internal_error', {}, { cause: error });
}

/** Into the log, and into the request's notes: before anything is done about it. */
export function noteFailure(log: Logger, error: GatewayError, res: Response): void {
  notesOf(res).error ??= error; // the first is the reason of the others
  const { kind, code, message } = error;
  const { method, originalUrl } = res.req;
  const context = { requestId: res.locals.requestId, method, path: originalUrl.split('?', 1)[0] };
  if (kind === 'internal') log.error('request failed', { ...context, cause: describe(error.cause) });
  else if (kind === 'upstream') log.warn('upstream failed', { ...context, code, reason: message });
  else if (kind === 'network' && error.cause !== undefined)
    log.warn('request failed', { ...context, code, reason: fullMessage(error) });
  else log.debug('request refused', { ...context, kind, code, reason: message });
}

/** What a handler has said of a content that it then could not send. */
const OF_THE_CONTENT = [
  'Accept-Ranges',
  'Content-Disposition',
  'Content-Encoding',
  'Content-Type',
  'ETag',
  'Last-Modified',
];

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
    else if (error.status >= 500) res.setHeader('X-Should-Retry', 'false');
    // A client that was never told to go on will not send its body, and a gateway that leaves will not read it:
    // only closing keeps the connection in step.
    const bodyIsLeft = !req.complete && (req.get('Expect') !== undefined || error.code === 'shutting_down');
    if (bodyIsLeft) res.setHeader('Connection', 'close');
    res.status(error.status).json(errorEnvelope(error, res));
  };
}

function describe(cause: unknown): string {
  return cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
}
