/**
 * Answers what Node's HTTP parser refuses before there is a request, also with the envelope, a request id and a line in
 * the access log.
 */
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Response } from 'express';
import type { Logger } from 'winston';
import type { GatewayError } from '../../errors.ts';
import { classify, type Exchange } from '../../observability/exchange.ts';
import { errorEnvelope, noteFailure } from '../error-handler.ts';
import { httpRefusal } from './refusals.ts';
import { newRequestId } from './request-id.ts';

export type ParserErrors = ReturnType<typeof createParserErrors>;

const STATUS_OF_CODE: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};
/** The time that a client which does not close its side has to read the reason. */
const LAST_WORDS_MS = 1000;

/** Ends a connection after these words. A client that does not close its side loses it a little later. */
export function endSoon(socket: Socket, words = ''): void {
  socket.end(words);
  setTimeout(() => socket.destroy(), LAST_WORDS_MS).unref();
}

/**
 * Node tells only the response that has the connection when a client leaves. The responses behind it, of requests that
 * were sent without waiting, would never learn of it, and their work would go on.
 */
function closeQueued(res: Response): void {
  if (res.socket !== null) return;
  res.destroyed = true;
  res.emit('close');
}

/** @param finished gets the exchange of each answer that belongs to no request which `watch` knows */
export function createParserErrors(log: Logger, finished: (exchange: Exchange) => void) {
  const unfinished = new WeakMap<Socket, Set<Response>>();
  /** The request of a connection that was answered before the end of its body. */
  const unread = new WeakMap<Socket, IncomingMessage>();
  return {
    /** Remembers a response until it ends. */
    watch(socket: Socket, res: Response): void {
      const answers = unfinished.get(socket) ?? new Set<Response>();
      if (!unfinished.has(socket)) socket.once('close', () => answers.forEach(closeQueued));
      unfinished.set(socket, answers.add(res));
      unread.delete(socket);
      res.once('close', () => {
        answers.delete(res);
        if (!res.req.complete) unread.set(socket, res.req);
      });
    },
    /** The number of responses of a connection that have not ended yet. */
    unanswered: (socket: Socket) => unfinished.get(socket)?.size ?? 0,
    /** The listener for the server's `clientError`. @param req the request at fault, if its head could be read */
    answer(error: NodeJS.ErrnoException, socket: Socket, req?: IncomingMessage): void {
      const answers = [...(unfinished.get(socket) ?? [])];
      // When a body ends too early although its request is being answered, the client has left.
      const left =
        error.code === 'ECONNRESET' || (error.code === 'HPE_INVALID_EOF_STATE' && answers.length > 0);
      // A connection that timed out without a byte has asked for nothing.
      if (left || !socket.writable || socket.bytesRead === 0) {
        socket.destroy();
        return;
      }
      // What is wrong is the rest of a body whose request has had its answer and its line.
      if (answers.length === 0 && unread.get(socket)?.complete === false) {
        endSoon(socket);
        return;
      }
      const refusal = httpRefusal(STATUS_OF_CODE[error.code ?? ''] ?? 400);
      // The earlier requests of this connection end with it, and for the same reason.
      for (const res of answers) noteFailure(log, refusal, res);
      if (answers.some((res) => res.headersSent)) {
        socket.destroy(); // a second status line would look like a part of the answer under way
        return;
      }
      const id = String(answers[0]?.getHeader('X-Request-ID') ?? newRequestId());
      const body = JSON.stringify(errorEnvelope(refusal, null));
      const bytesOut = Buffer.byteLength(body);
      if (answers.length === 0) {
        log.debug('no request', { requestId: id, reason: error.message });
        finished({ ...refused(refusal, socket, req), requestId: id, bytesOut });
      }
      const head = [
        `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
        `X-Request-ID: ${id}`,
        'Content-Type: application/json; charset=utf-8',
        `Content-Length: ${bytesOut}`,
        'Connection: close',
      ];
      endSoon(socket, `${head.join('\r\n')}\r\n\r\n${body}`);
    },
  };
}

function refused({ status, kind, code, provider }: GatewayError, socket: Socket, req?: IncomingMessage) {
  return {
    at: new Date(),
    method: req?.method,
    path: req?.url?.split('?', 1)[0],
    provider,
    status,
    class: classify(status, kind, code),
    errorKind: kind,
    latencyMs: 0,
    bytesIn: 0,
    clientIp: socket.remoteAddress,
    userAgent: req?.headers['user-agent'],
  };
}
