/** A forward proxy for tests (RFC 9110, sections 3.7 and 9.3.6): each name that it is asked for is on this machine. */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';

export interface ForwardProxy {
  /** `host:port` */
  host: string;
  /** What it was asked for: the method, the target, and the credentials. */
  asked: string[];
  /** Where it reaches a port that this machine has not. */
  ports: Map<number, number>;
  /** The connections that it has open, to clients and to hosts. */
  open: Set<Duplex>;
  close(): Promise<void>;
}

/**
 * @param answer the status of its answers to CONNECT; null for none
 * @param tls the key and certificate of a proxy that speaks TLS itself
 */
export async function startForwardProxy(
  answer: number | null = 200,
  tls?: { key: Buffer; cert: Buffer },
): Promise<ForwardProxy> {
  const asked: string[] = [];
  const ports = new Map<number, number>();
  const open = new Set<Duplex>();
  const note = ({ method, url, headers }: IncomingMessage) =>
    asked.push([method, url, headers['proxy-authorization'] ?? 'no credentials'].join(' '));
  const keep = <T extends Duplex>(socket: T): T => {
    open.add(socket);
    return socket.on('error', () => undefined).on('close', () => open.delete(socket));
  };
  const onRequest = (message: IncomingMessage, response: ServerResponse) => {
    note(message);
    const { port, pathname } = new URL(message.url ?? '');
    const onward = request({ host: '127.0.0.1', port, path: pathname, headers: message.headers });
    onward.on('response', (got) => got.pipe(response.writeHead(got.statusCode ?? 502, got.headers)));
    onward.on('error', () => response.destroy());
    onward.end();
  };
  const server = tls === undefined ? createServer(onRequest) : createSecureServer(tls, onRequest);
  server.on('connection', keep<Socket>);
  server.on('connect', (message: IncomingMessage, client: Duplex) => {
    note(message);
    if (answer !== null) client.write(`HTTP/1.1 ${answer} Said\r\n\r\n`);
    if (answer !== 200) {
      client.on('end', () => client.destroy()).resume();
      return;
    }
    const port = Number(message.url?.split(':').at(-1));
    const host = keep(connect(ports.get(port) ?? port, '127.0.0.1'));
    client.pipe(host).pipe(client);
    client.on('close', () => host.destroy());
    host.on('close', () => client.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    ports,
    open,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  };
}
