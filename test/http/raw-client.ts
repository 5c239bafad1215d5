/** A client below HTTP: it sends what a test gives it, as slowly or as wrongly as the test wants. */
import { connect, type Socket } from 'node:net';

export interface RawClient extends Disposable {
  socket: Socket;
  write(bytes: string | Buffer): void;
  /** Everything that the server has sent. */
  said(): string;
  /** The server has closed the connection. */
  closed(): boolean;
}

/** @param localAddress the address that the client comes from */
export function rawClient(base: string, bytes: string | Buffer = '', localAddress = '127.0.0.1'): RawClient {
  const { hostname, port } = new URL(base);
  const socket = connect({ port: Number(port), host: hostname, localAddress });
  let said = '';
  let closed = false;
  const end = () => {
    closed = true;
  };
  socket
    .on('error', () => undefined)
    .on('end', end)
    .on('close', end);
  socket.on('data', (data) => {
    said += data.toString('latin1');
  });
  const write = (more: string | Buffer) => {
    if (!socket.destroyed) socket.write(more, 'latin1' as never);
  };
  if (bytes.length > 0) write(bytes);
  return { socket, write, said: () => said, closed: () => closed, [Symbol.dispose]: () => socket.destroy() };
}

/** The statuses of the answers in what a server has said, in order. */
export function statusesIn(said: string): number[] {
  return [...said.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}

/** Writes a piece every `everyMs` until the connection is closed. */
export function trickle({ socket }: RawClient, piece: string, everyMs: number): void {
  const timer = setInterval(() => {
    if (!socket.destroyed && socket.writable) socket.write(piece);
  }, everyMs);
  socket.once('close', () => clearInterval(timer));
}
