/**
 * Stops a server in steps. It accepts no more connections at once, and the requests under way have some time to end.
 * Then their work is aborted, and clients get a moment to read what that makes of their answers. Connections without
 * a request are closed soon. Node's own `closeIdleConnections` leaves open a connection that never sent a request, and
 * one that has just become idle.
 */
import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NextFunction, Request, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import { onceOver } from './client-signal.ts';

/** The time that clients have to read the answers under way, once the work on them is aborted. */
const LAST_ANSWERS_MS = 5000;
/** The time that a refused client which is still sending has to read the reason. */
const LAST_WORDS_MS = 300;
const CHECK_EVERY_MS = 20;

export type GracefulStop = ReturnType<typeof createGracefulStop>;

export function createGracefulStop() {
  let stopping = false;
  /** The responses that have not ended yet. */
  const open = new Set<Response>();

  return {
    /** Comes first in the chain of every request. */
    watch(_req: Request, res: Response, next: NextFunction): void {
      open.add(res);
      onceOver(res, () => open.delete(res));
      if (stopping) closeAfter(res);
      next();
    },
    /** @throws GatewayError `shutting_down` once the stop has begun */
    assertServing(): void {
      if (stopping) throw new GatewayError('shutting_down', {});
    },
    /**
     * Resolves when every connection is closed.
     * @param options.drainMs the time that requests under way have to end by themselves
     * @param options.also what else ends, such as the connections of another server
     * @param options.abort aborts all work; called once, when that time is over or nothing is under way any more
     */
    async stop(
      server: Server,
      { drainMs, also, abort }: { drainMs: number; also: Promise<unknown>; abort(): void },
    ): Promise<void> {
      stopping = true;
      for (const res of open) closeAfter(res);
      const closed = Promise.all([new Promise<void>((resolve) => server.close(() => resolve())), also]);
      let quietMs = 0;
      const check = setInterval(() => {
        server.closeIdleConnections();
        quietMs = open.size > 0 ? 0 : quietMs + CHECK_EVERY_MS;
        if (quietMs >= LAST_WORDS_MS) server.closeAllConnections();
      }, CHECK_EVERY_MS);
      if (drainMs > 0) await Promise.race([closed, sleep(drainMs, undefined, { ref: false })]);
      abort();
      const late = setTimeout(() => {
        server.closeAllConnections();
        // Node has forgotten the connections of upgrade requests.
        for (const res of open) res.req.socket.destroy();
      }, LAST_ANSWERS_MS);
      await closed;
      clearInterval(check);
      clearTimeout(late);
    },
  };
}

/** Makes the answer say `Connection: close`, unless its head is already sent, so that the client sends no more here. */
function closeAfter(res: Response): void {
  res.shouldKeepAlive = false;
}
