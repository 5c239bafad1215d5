/**
 * Receives the beginning of a request's body before anything scarce is taken for it: a small body whole, of a large
 * one as much. What was received stays in the request, so that whoever reads it later finds it as it was sent.
 */
import type { IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { GatewayError } from '../errors.ts';
import { type ClientLimits, watchSending } from './client-pace.ts';

/** A body up to this size is complete before anything is taken for it. */
const SMALL_BODY_BYTES = 1024 * 1024;

export interface ReceiveOptions {
  /** Aborted when the client leaves or breaks off its body, and when the gateway stops. */
  signal: AbortSignal;
  /** Sees what came of a body that goes no further. */
  onLost(chunk: Buffer): void;
}

export interface BodyReceiver {
  /** @throws GatewayError for a client that is too slow and for want of memory; the signal's reason when aborted */
  receive(req: IncomingMessage, options: ReceiveOptions): Promise<void>;
}

export function createBodyReceiver(limits: ClientLimits): BodyReceiver {
  let waitingBytes = 0;
  return {
    async receive(req, { signal, onLost }) {
      if (!hasBody(req)) return;
      const chunks: Buffer[] = [];
      let bytes = 0;
      /** All but the last byte: a stream that holds nothing would end, and could not be given anything back. */
      const take = () => {
        for (let spare = req.readableLength - 1; spare > 0; spare = req.readableLength - 1) {
          const chunk: Buffer = req.read(spare);
          chunks.push(chunk);
          bytes += chunk.length;
          waitingBytes += chunk.length;
        }
        if (waitingBytes > limits.maxWaitingBytes) throw new GatewayError('overloaded', {});
        return req.complete || bytes >= SMALL_BODY_BYTES;
      };
      try {
        await untilTaken(req, take, signal, limits);
      } catch (error) {
        chunks.forEach(onLost);
        throw error;
      } finally {
        waitingBytes -= bytes;
      }
      if (bytes > 0) req.unshift(Buffer.concat(chunks));
      // The stream forgets only in a later turn that it was read in steps; until then it might flow too soon.
      await setImmediate();
    },
  };
}

function hasBody({ headers }: IncomingMessage): boolean {
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
