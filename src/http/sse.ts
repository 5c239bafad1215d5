/**
 * Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html). The stream writes no faster
 * than the client reads. Until the first event it sends a comment every few seconds, so that proxies do not time out.
 */
import { once } from 'node:events';
import type { Response } from 'express';

export type EventStream = ReturnType<typeof startEventStream>;

const KEEP_ALIVE_MS = 10_000;

/** Sends the headers with status 200. */
export function startEventStream(res: Response, { keepAliveMs = KEEP_ALIVE_MS } = {}) {
  res.status(200).set({
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-cache',
    'X-Accel-Buffering': 'no',
  });
  res.flushHeaders();
  const keepAlive = setInterval(() => res.write(': keep-alive\n\n'), keepAliveMs);
  const quiet = () => clearInterval(keepAlive);
  return {
    /**
     * Sends `data` as JSON with `type` as the name of the event, and resolves when the client can take more. One that takes
     * nothing is given up as the reader of any other answer is (slow-clients.ts).
     * @throws `signal.reason` after an abort
     */
    async send(data: { type: string }, signal: AbortSignal): Promise<void> {
      quiet();
      signal.throwIfAborted();
      const more = res.write(`event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`);
      if (!more) await once(res, 'drain', { signal }).catch(() => signal.throwIfAborted());
    },
    end(): void {
      quiet();
      res.end();
    },
    [Symbol.dispose]: quiet,
  };
}
