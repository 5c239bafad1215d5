/**
 * Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html): one event a call, in step
 * with how fast the client reads, and a comment now and then so that nobody on the way takes silence for death.
 */
import { once } from 'node:events';
import type { Response } from 'express';
import { GatewayError } from '../errors.ts';

export interface EventStream extends Disposable {
  /** Resolves when the client can take more; `data` is sent as JSON with `type` as the event's name. */
  send(data: { type: string }, signal: AbortSignal): Promise<void>;
  end(): void;
}

const KEEP_ALIVE_MS = 10_000;
/** A client that takes nothing for this long is given up: it would hold the slot for as long as it likes. */
const STALL_MS = 60_000;

export function startEventStream(
  res: Response,
  { keepAliveMs = KEEP_ALIVE_MS, stallMs = STALL_MS } = {},
): EventStream {
  res.status(200).set({
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-cache',
    'X-Accel-Buffering': 'no',
  });
  res.flushHeaders();
  const keepAlive = setInterval(() => res.write(': keep-alive\n\n'), keepAliveMs);
  const quiet = () => clearInterval(keepAlive);
  return {
    async send(data, signal) {
      quiet();
      signal.throwIfAborted();
      const more = res.write(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`);
      if (!more) await drained(res, signal, stallMs);
    },
    end() {
      quiet();
      res.end();
    },
    [Symbol.dispose]: quiet,
  };
}

async function drained(res: Response, signal: AbortSignal, stallMs: number): Promise<void> {
  const stalled = new AbortController();
  const timer = setTimeout(() => {
    stalled.abort(new GatewayError('client_stalled', { what: `read nothing for ${stallMs / 1000} s` }));
  }, stallMs);
  const either = AbortSignal.any([signal, stalled.signal]);
  try {
    await once(res, 'drain', { signal: either });
  } catch (error) {
    throw either.aborted ? either.reason : error;
  } finally {
    clearTimeout(timer);
  }
}
