/**
 * Timeouts for slow clients: how slowly one may send its body and read its answer. All clients share the inference
 * slot, so the call of a slower client is ended. The failure then names the client, never the upstream.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { GatewayError } from '../errors.ts';
import type { Budgets } from './budgets.ts';
import { tickOf } from './deadline.ts';

type PaceLimits = Budgets['answer'];

/** True while a part of the answer waits for the client to read it, and not for the answer to an earlier request. */
const isUntaken = (res: ServerResponse) => res.socket !== null && res.writableLength > 0;

/**
 * Counts the time that the call waits for a client as a debt, which the client's bytes reduce at the least rate but
 * never below zero. Time is counted in ticks, as that of a deadline.
 */
function watchPace(options: {
  stallMs: number;
  /** The debt that ends the call; at least `stallMs`. */
  limitMs(): number;
  leastBytesPerSec: number;
  isItsTurn(): boolean;
  /** The number of bytes so far. */
  bytes(): number;
  late(): void;
}): () => void {
  const tickMs = tickOf(options.stallMs);
  let owedMs = 0;
  let before = options.bytes();
  const timer = setInterval(() => {
    const bytes = options.bytes();
    const paidMs = ((bytes - before) / options.leastBytesPerSec) * 1000;
    before = bytes;
    owedMs = options.isItsTurn() ? Math.max(0, owedMs + tickMs - paidMs) : 0;
    if (owedMs < options.limitMs()) return;
    clearInterval(timer);
    options.late();
  }, tickMs);
  return () => clearInterval(timer);
}

/** Watches how fast a client sends its body, until the function that it returns is called. `isItsTurn` is false when the body is complete or the reader pauses. */
export function watchSending(
  req: IncomingMessage,
  { stallMs, leastBytesPerSec }: PaceLimits,
  { isItsTurn, late }: { isItsTurn(): boolean; late(error: GatewayError): void },
): () => void {
  const { socket } = req;
  return watchPace({
    stallMs,
    limitMs: () => stallMs,
    leastBytesPerSec,
    isItsTurn,
    bytes: () => socket.bytesRead,
    late: () => late(new GatewayError('request_timeout', {})),
  });
}

/** Watches how fast a client reads its answer. A stop shows after `stallMs`, slowness only when a write has ended. */
export function watchReading(
  res: ServerResponse,
  { stallMs, leastBytesPerSec }: PaceLimits,
  late: (error: GatewayError) => void,
): () => void {
  const { socket } = res.req;
  const tooSlow = () => late(new GatewayError('client_stalled', { what: 'read its answer too slowly' }));
  // Node's own timer of the connection also sees what the kernel has taken of an unfinished write.
  const silent = () => (isUntaken(res) ? tooSlow() : res.setTimeout(stallMs));
  res.setTimeout(stallMs, silent);
  const stop = watchPace({
    stallMs,
    // Progress within a write cannot be seen, and an answer of any size may be a single one.
    limitMs: () => stallMs + (res.writableLength / leastBytesPerSec) * 1000,
    leastBytesPerSec,
    isItsTurn: () => isUntaken(res),
    bytes: () => socket.bytesWritten - socket.writableLength,
    late: tooSlow,
  });
  return () => {
    stop();
    res.off('timeout', silent);
  };
}

/** True when the call waits for the upstream: the client has read all of the answer so far. */
export const isUpstreamsTurn = (res: ServerResponse) => !isUntaken(res);
