/** One AbortSignal for everything done on behalf of a request: the client left, or the gateway shuts down. */
import type { Response } from 'express';
import { GatewayError } from '../errors.ts';

export function clientSignal(res: Response, shutdown: AbortSignal): AbortSignal {
  const left = new AbortController();
  // `close` without a finished response is the only sign of a client that left; `req`'s own events do not fire
  // once its body was read.
  res.once('close', () => {
    if (!res.writableFinished) left.abort(new GatewayError('client_left', {}));
  });
  return AbortSignal.any([left.signal, shutdown]);
}
