/**
 * Clients that still send when they have their answer, and clients that do not read theirs.
 *
 * The rest of a body is read and discarded, within limits, after a response that came before its end (RFC 9112, section
 * 9.6). A refusal comes that early, and so does an upstream that needs no more. Closing the connection at once would
 * reset it while the client is still sending, and the client would lose the response.
 */
import type { Request, RequestHandler } from 'express';
import type { Logger } from 'winston';
import type { Budgets } from '../../limits/budgets.ts';
import { watchReading } from '../../limits/client-pace.ts';
import { noteFailure } from '../error-handler.ts';

/** The request is destroyed after `idleMs` without data, and `totalMs` after the response. */
export function linger({ idleMs, totalMs }: Budgets['linger']): RequestHandler {
  return (req, res, next) => {
    if (!req.complete) closeAfterBody(req);
    res.once('finish', () => {
      if (!req.complete && !req.destroyed) discard(req, idleMs, totalMs);
    });
    next();
  };
}

/**
 * Node calls `destroySoon` after the last answer of a connection, also when the client is still sending. Here only the
 * writing side is closed then, and the rest when the body has come or the limits are reached.
 */
function closeAfterBody(req: Request): void {
  const { socket } = req;
  const { destroySoon } = Object.getPrototypeOf(socket);
  socket.destroySoon = () => {
    const destroy = () => destroySoon.call(socket);
    if (req.complete || req.destroyed) return destroy();
    socket.end();
    req.once('close', destroy);
  };
}

function discard(req: Request, idleMs: number, totalMs: number): void {
  const giveUp = () => req.destroy();
  const idle = setTimeout(giveUp, idleMs).unref();
  const total = setTimeout(giveUp, totalMs).unref();
  req.on('data', () => idle.refresh());
  // Node emits no close on an answered request whose client leaves, but its reader needs one to clean up.
  req.socket.once('close', giveUp);
  req.once('close', () => {
    req.socket.off('close', giveUp);
    clearTimeout(idle);
    clearTimeout(total);
  });
  // An upstream that has answered takes no more, and a pipe to it would hold the body up.
  req.unpipe();
  req.resume();
}

/**
 * Ends an answer when its client stops reading it, or reads it too slowly. This holds for the answers of the gateway and
 * for those of the upstreams. Such a client holds memory and a connection. It holds the slot, too, as long as the answer
 * is being computed.
 */
export function endSlowReaders(limits: Budgets['answer'], log: Logger): RequestHandler {
  return (_req, res, next) => {
    const stop = watchReading(res, limits, (error) => {
      noteFailure(log, error, res);
      res.destroy();
    });
    res.once('close', stop);
    next();
  };
}
