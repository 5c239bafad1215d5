/**
 * A server for Wyoming, the protocol in which Home Assistant asks for transcriptions. It has no keys and no encryption,
 * so it is for a network that is trusted.
 */
import { createServer, type Server } from 'node:net';
import { boundConnections } from '../../limits/connections.ts';
import { type Connection, type ConnectionDeps, runConnection } from './connection.ts';

export interface WyomingDeps extends ConnectionDeps {
  sparedMs: number;
}

export interface Wyoming {
  /** It does not listen yet. */
  server: Server;
  /** Accepts nothing more, lets audio that has ended become text, and closes all connections. */
  stop(): Promise<void>;
}

export function createWyoming({ sparedMs, ...deps }: WyomingDeps): Wyoming {
  const open = new Set<Connection>();
  const server = createServer();
  const begin = boundConnections(server, { maxConnections: deps.limits.connections, sparedMs });
  server.on('connection', (socket) => {
    if (socket.destroyed) return; // there were too many
    const connection = runConnection({ ...deps, socket, onWork: (work) => begin({ socket }, work) });
    open.add(connection);
    void connection.closed.then(() => open.delete(connection));
  });
  return {
    server,
    async stop() {
      const closed = new Promise((resolve) => server.close(resolve));
      await Promise.all([...open].map((connection) => connection.stop()));
      await closed;
    },
  };
}
