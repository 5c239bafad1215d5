/**
 * Reads and discards the rest of a body, within limits, after a response that came before its end (RFC 9112, section
 * 9.6). A refusal comes that early, and so does an upstream that needs no more. Closing the connection at once would
 * reset it while the client is still sending, and the client would lose the response.
 */
import type { Request, RequestHandler } from 'express';
import type { Budgets } from '../../limits/budgets.ts';

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
