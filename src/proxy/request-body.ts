/**
 * Receives the first MiB of a request's body before the request takes the slot; a smaller body is then complete. The
 * received bytes are put back into the request, so that later readers get the whole body.
 */
import type { IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { byteBudget } from '../budgets.ts';
import { GatewayError } from '../errors.ts';
import { type ClientLimits, watchSending } from './client-pace.ts';

/** A body up to this size is complete before the slot is taken. */
const SMALL_BODY_BYTES = 1024 * 1024;

export interface ReceiveOptions {
  /** Aborts when the client leaves or ends its body too early, and when the gateway stops. */
  signal: AbortSignal;
  /** Called with the chunks received so far when the body is not forwarded. */
  onLost(chunk: Buffer): void;
}

export interface BodyReceiver {
  /**
   * Resolves when the body is complete or its first MiB is here.
   * @throws GatewayError `client_stalled` or `overloaded`; `signal.reason` after an abort
   */
  receive(req: IncomingMessage, options: ReceiveOptions): Promise<void>;
}

export function createBodyReceiver(limits: ClientLimits): BodyReceiver {
  const waiting = byteBudget(limits.maxWaitingBytes);
  return {
    async receive(req, { signal, onLost }) {
      if (!hasBody(req)) return;
      const chunks: Buffer[] = [];
      let bytes = 0;
      /** Takes all but the last byte, because an empty stream would end, and bytes could not be put back into it. */
      const take = () => {
        for (let spare = req.readableLength - 1; spare > 0; spare = req.readableLength - 1) {
          const chunk: Buffer = req.read(spare);
          chunks.push(chunk);
          if (!waiting.take(chunk.length)) throw new GatewayError('overloaded', {});
          bytes += chunk.length;
        }
        return req.complete || bytes >= SMALL_BODY_BYTES;
      };
      try {
        await untilTaken(req, take, signal, limits);
      } catch (error) {
        chunks.forEach(onLost);
        throw error;
      } finally {
        waiting.giveBack(bytes);
      }
      if (bytes > 0) req.unshift(Buffer.concat(chunks));
      // Until a later turn of the event loop, the stream still counts as read in steps and might flow too soon.
      await setImmediate();
    },
  };
}

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function untilTaken(
  req: IncomingMessage,
  take: () => boolean,
  signal: AbortSignal,
  limits: ClientLimits,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (settled: () => void) => {
      watch.stop();
      req.off('readable', look).off('end', look);
      signal.removeEventListener('abort', stop);
      settled();
    };
    const look = () => {
      try {
        if (take()) settle(resolve);
      } catch (error) {
        settle(() => reject(error));
      }
    };
    const stop = () => settle(() => reject(signal.reason));
    const watch = watchSending(req, limits, {
      isItsTurn: () => true,
      late: (error) => settle(() => reject(error)),
    });
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop);
    req.on('readable', look).on('end', look);
  });
}
