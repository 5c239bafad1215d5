/**
 * A client may be answered before it has sent its whole body: refused, or an upstream that needed no more. Closing
 * then would reset the connection and take the answer with it (the client is still writing), so the rest is read
 * and thrown away, within limits: RFC 9112, section 9.6.
 */
import type { Request, RequestHandler } from 'express';

const IDLE_MS = 5000;
const TOTAL_MS = 120_000;

export function linger(idleMs = IDLE_MS, totalMs = TOTAL_MS): RequestHandler {
  return (req, res, next) => {
    res.once('finish', () => {
      if (!req.complete && !req.destroyed) discard(req, idleMs, totalMs);
    });
    next();
  };
}

function discard(req: Request, idleMs: number, totalMs: number): void {
  const giveUp = () => req.destroy();
  const idle = setTimeout(giveUp, idleMs).unref();
  const total = setTimeout(giveUp, totalMs).unref();
  req.on('data', () => idle.refresh());
  // Node no longer tells an answered request that its client has left; what reads it must know, to clean up.
  req.socket.once('close', giveUp);
  req.once('close', () => {
    req.socket.off('close', giveUp);
    clearTimeout(idle);
    clearTimeout(total);
  });
  req.resume();
}
