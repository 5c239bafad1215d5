/**
 * Bounds the open connections. At the limit a new connection takes the place of one that has no request under way:
 * first of one that has said nothing since it came, then of one that waits for its next request. So clients that only
 * connect cannot keep others out. When every connection has a request under way, the new one is closed.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The limits: connections open at once, and the time in ms for which a new one is spared where another can give way. */
export interface ConnectionLimits {
  maxConnections: number;
  sparedMs: number;
}

export function boundConnections(server: Server, { maxConnections, sparedMs }: ConnectionLimits): void {
  /** Every open connection, with the number of its requests under way. */
  const open = new Map<Socket, number>();
  /** Connections without a request under way. Those that have waited longest come first. */
  const silent = new Map<Socket, number>();
  const idle = new Set<Socket>();
  const forget = (socket: Socket) => {
    open.delete(socket);
    silent.delete(socket);
    idle.delete(socket);
  };

  const gives = (): Socket | undefined => {
    const [[silentSocket, since] = [undefined, 0]] = silent;
    const [idleSocket] = idle;
    return since + sparedMs > performance.now() ? (idleSocket ?? silentSocket) : (silentSocket ?? idleSocket);
  };

  server.on('connection', (socket) => {
    if (open.size >= maxConnections) {
      const next = gives();
      (next ?? socket).destroy();
      if (next === undefined) return;
      forget(next); // its close comes later, and it must not be chosen again until then
    }
    open.set(socket, 0);
    silent.set(socket, performance.now());
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
