/** The AbortSignal for all work on a request. It aborts when the client leaves or the gateway shuts down. */
import type { Response } from 'express';
import { onAbort } from '../../abort.ts';
import { GatewayError } from '../../errors.ts';

/** A signal that aborts with GatewayError `client_left`, or with the reason of `shutdown`. */
export function clientSignal(res: Response, shutdown: AbortSignal): AbortSignal {
  const ended = new AbortController();
  // A listener that is taken off again: with `AbortSignal.any`, Node 20 keeps something of every request in `shutdown`.
  const stopping = onAbort(shutdown, () => ended.abort(shutdown.reason));
  // Only the end of the response shows that a client left: the events of `req` do not fire after its body was read.
  onceOver(res, (delivered) => {
    stopping[Symbol.dispose]();
    if (!delivered) ended.abort(new GatewayError('client_left', {}));
  });
  return ended.signal;
}

/**
 * Calls back once, when nothing more can be sent to the client.
 * @param over gets true when the connection took the whole response. `res.writableFinished` does not show that,
 *   because it is also true after a connection that was destroyed before.
 */
export function onceOver(res: Response, over: (delivered: boolean) => void): void {
  const { socket } = res.req;
  let delivered = false;
  // This must run before Node's own listener, which may close the connection.
  res.prependOnceListener('finish', () => {
    delivered = !socket.destroyed;
  });
  res.once('close', () => over(delivered));
}
