/**
 * How slow a client may be while it sends its body and while it reads its answer. The inference slot belongs to
 * everyone, so a client that is slower ends its own call, and that is never said to be the upstream's failure.
 */
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../errors.ts';

export interface ClientLimits {
  /** How long a client may send or take nothing when it is its turn. */
  stallMs: number;
  /** Below this rate a client uses up `stallMs` little by little. */
  leastBytesPerSec: number;
  /** Memory for bodies that are not complete yet, of all clients together. */
  maxWaitingBytes: number;
}

export const CLIENT_LIMITS: ClientLimits = {
  stallMs: 30_000,
  leastBytesPerSec: 1024,
  maxWaitingBytes: 64 * 1024 * 1024,
};

/** What may lie in one write to a client's connection: that much is taken at once, or not at all. */
const LARGEST_WRITE_BYTES = 128 * 1024;
const TICKS = 8;
const LONGEST_TICK_MS = 1000;

/** Whether a client has not taken all that was said to it. */
const isUntaken = (res: ServerResponse) => res.writableLength > 0;

export interface Watch {
  stop(): void;
}

/**
 * A client owes the time that it is waited for, and pays with bytes at the least rate. It cannot pay in advance.
 * Time is counted in ticks: when this process is held up, it does not count against the client.
 */
function watchPace(options: {
  limitMs: number;
  leastBytesPerSec: number;
  isItsTurn(): boolean;
  /** Bytes so far. */
  bytes(): number;
  late(): void;
}): Watch {
  const tickMs = Math.min(LONGEST_TICK_MS, options.limitMs / TICKS);
  let owedMs = 0;
  let before = options.bytes();
  const timer = setInterval(() => {
    const bytes = options.bytes();
    const paidMs = ((bytes - before) / options.leastBytesPerSec) * 1000;
    before = bytes;
    owedMs = options.isItsTurn() ? Math.max(0, owedMs + tickMs - paidMs) : 0;
    if (owedMs < options.limitMs) return;
    clearInterval(timer);
    options.late();
  }, tickMs);
  return { stop: () => clearInterval(timer) };
}

/** Watches a client's body. @param isItsTurn false when the body is complete, or nobody reads on */
export function watchSending(
  req: IncomingMessage,
  { stallMs, leastBytesPerSec }: ClientLimits,
  { isItsTurn, late }: { isItsTurn(): boolean; late(error: GatewayError): void },
): Watch {
  const { socket } = req;
  return watchPace({
    ...{ limitMs: stallMs, leastBytesPerSec, isItsTurn },
    bytes: () => socket.bytesRead,
    late: () => late(new GatewayError('client_stalled', { what: 'sent its body too slowly' })),
  });
}

/** Watches how a client takes its answer; a stop is seen at once, slowness when writes come to their end. */
export function watchReading(
  res: ServerResponse,
  { stallMs, leastBytesPerSec }: ClientLimits,
  late: (error: GatewayError) => void,
): Watch {
  const { socket } = res;
  const tooSlow = () => late(new GatewayError('client_stalled', { what: 'read its answer too slowly' }));
  // Node's own timer of the connection also knows what the kernel has taken of a write that is not over.
  const silent = () => (isUntaken(res) ? tooSlow() : res.setTimeout(stallMs));
  res.setTimeout(stallMs, silent);
  const pace = watchPace({
    limitMs: stallMs + (LARGEST_WRITE_BYTES / leastBytesPerSec) * 1000,
    leastBytesPerSec,
    isItsTurn: () => isUntaken(res),
    bytes: () => (socket === null ? 0 : socket.bytesWritten - socket.writableLength),
    late: tooSlow,
  });
  return {
    stop() {
      pace.stop();
      res.off('timeout', silent);
    },
  };
}

/** Whether it is the upstream that is waited for: all there is of the body was passed on, and the answer was taken. */
export function isUpstreamsTurn(req: IncomingMessage, res: ServerResponse, proxyReq: ClientRequest): boolean {
  return !isUntaken(res) && (req.complete || proxyReq.writableNeedDrain);
}
