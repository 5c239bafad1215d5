/** A server of a test, on a free port of 127.0.0.1. */
import { once } from 'node:events';
import type { AddressInfo, Server, Socket } from 'node:net';

export interface LocalServer extends AsyncDisposable {
  /** `http://127.0.0.1:<port>` */
  base: string;
  port: number;
}

/** Listens until it is disposed of, which breaks all connections. */
export async function listening(server: Server): Promise<LocalServer> {
  const connections = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections.add(socket);
    socket.once('close', () => connections.delete(socket));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    base: `http://127.0.0.1:${port}`,
    port,
    async [Symbol.asyncDispose]() {
      for (const socket of connections) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
