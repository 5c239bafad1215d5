/**
 * Bounds the open connections. At the limit a new connection takes the place of one that has no request under way:
 * first of one that never sent a request, then of one that waits for its next. So clients that only connect cannot
 * keep others out. When every connection has a request under way, the new one is closed.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** @param most the connections that may be open at once */
export function boundConnections(server: Server, most: number): void {
  /** Every open connection, with the number of its requests under way. */
  const open = new Map<Socket, number>();
  /** Connections without a request under way. Those that have waited longest come first. */
  const silent = new Set<Socket>();
  const idle = new Set<Socket>();
  const forget = (socket: Socket) => {
    open.delete(socket);
    silent.delete(socket);
    idle.delete(socket);
  };

  server.on('connection', (socket) => {
    if (open.size >= most) {
      const [next] = silent.size > 0 ? silent : idle;
      (next ?? socket).destroy();
      if (next === undefined) return;
      forget(next); // its close comes later, and it must not be chosen again until then
    }
    open.set(socket, 0);
    silent.add(socket);
    socket.once('close', () => forget(socket));
  });

  const begin = ({ socket }: IncomingMessage, res: ServerResponse) => {
    open.set(socket, (open.get(socket) ?? 0) + 1);
    silent.delete(socket);
    idle.delete(socket);
    res.once('close', () => {
      const left = (open.get(socket) ?? 0) - 1;
      if (left < 0) return; // the connection is gone
      open.set(socket, left);
      if (left === 0) idle.add(socket);
    });
  };
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, begin);
}
