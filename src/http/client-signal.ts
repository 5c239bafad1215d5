/** One AbortSignal for everything done on behalf of a request: the client left, or the gateway shuts down. */
import type { Response } from 'express';
import { GatewayError } from '../errors.ts';

export function clientSignal(res: Response, shutdown: AbortSignal): AbortSignal {
  const left = new AbortController();
  // The end of the response is the only sign of a client that left; `req`'s own events do not fire once its body
  // was read.
  onceOver(res, (delivered) => {
    if (!delivered) left.abort(new GatewayError('client_left', {}));
  });
  return AbortSignal.any([left.signal, shutdown]);
}

/**
 * Calls back when nothing more can be said to the client.
 * @param over with whether its connection took all there was to say; `res.writableFinished` cannot tell, because it
 *   is also true of a connection that went away before
 */
export function onceOver(res: Response, over: (delivered: boolean) => void): void {
  const { socket } = res.req;
  let delivered = false;
  // Before Node's own listener, which may close the connection.
  res.prependOnceListener('finish', () => {
    delivered = !socket.destroyed;
  });
  res.once('close', () => over(delivered));
}
