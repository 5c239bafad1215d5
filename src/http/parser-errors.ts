/** What Node's HTTP parser refuses never becomes a request; it gets the envelope and an id all the same. */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Response } from 'express';
import type { Logger } from 'winston';
import { errorEnvelope, noteFailure } from './error-handler.ts';
import { httpRefusal } from './refusals.ts';
import { newRequestId } from './request-id.ts';

export interface ParserErrors {
  /** Remembers an answer until it is over. */
  watch(socket: Socket, res: Response): void;
  /** For the server's `clientError`. */
  answer(error: NodeJS.ErrnoException, socket: Socket): void;
}

const STATUS_OF_CODE: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};
/** Time to read why, for a client that does not close its side. */
const LAST_WORDS_MS = 1000;

export function createParserErrors(log: Logger): ParserErrors {
  const unfinished = new WeakMap<Socket, Set<Response>>();
  return {
    watch(socket, res) {
      const answers = unfinished.get(socket) ?? new Set();
      unfinished.set(socket, answers.add(res));
      res.once('close', () => answers.delete(res));
    },
    answer(error, socket) {
      const answers = [...(unfinished.get(socket) ?? [])];
      // An end in the middle of a body is no mistake of a client that waits for its answer: it left.
      const left =
        error.code === 'ECONNRESET' || (error.code === 'HPE_INVALID_EOF_STATE' && answers.length > 0);
      if (left || !socket.writable) {
        socket.destroy();
        return;
      }
      const refusal = httpRefusal(STATUS_OF_CODE[error.code ?? ''] ?? 400);
      // What was asked before on this connection ends with it, for this reason.
      for (const res of answers) noteFailure(log, refusal, res);
      if (answers.some((res) => res.headersSent)) {
        socket.destroy(); // a second status line would look like a part of the answer that runs
        return;
      }
      const id = String(answers[0]?.getHeader('X-Request-ID') ?? newRequestId());
      if (answers.length === 0) log.debug('no request', { requestId: id, reason: error.message });
      const body = JSON.stringify(errorEnvelope(refusal, null));
      const head = [
        `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
        `X-Request-ID: ${id}`,
        'Content-Type: application/json; charset=utf-8',
        `Content-Length: ${Buffer.byteLength(body)}`,
        'Connection: close',
      ];
      socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => {
        setTimeout(() => socket.destroy(), LAST_WORDS_MS).unref();
      });
    },
  };
}
