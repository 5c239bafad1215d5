/** This upstream does, byte for byte, what a test tells it to; it works below HTTP, so that it can break every rule. */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';

/** Is called once the head of a request has arrived; the socket goes on delivering the body. */
export type Behavior = (socket: Socket, head: string) => void;

export interface HostileUpstream extends AsyncDisposable {
  url: string;
  behave(behavior: Behavior): void;
  /** Number of connections that are open now. */
  open(): number;
  /** Heads of all requests so far. */
  heads: string[];
  /** Number of bytes received in all. */
  received(): number;
}

export async function startHostileUpstream(): Promise<HostileUpstream> {
  let behavior: Behavior = wholeAnswer();
  let received = 0;
  const heads: string[] = [];
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined); // being cut off is its purpose
    let head = '';
    socket.on('data', (data) => {
      received += data.length;
      if (head.includes('\r\n\r\n')) return;
      head += data.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      heads.push(head);
      behavior(socket, head);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    behave: (next) => {
      behavior = next;
    },
    open: () => sockets.size,
    heads,
    received: () => received,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Makes the head of an answer. */
export function head(status: string, headers: Record<string, string> = {}): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status}\r\n${lines.join('')}\r\n`;
}

export function wholeAnswer(
  body = 'fine',
  status = '200 OK',
  headers: Record<string, string> = {},
): Behavior {
  return (socket) => {
    socket.end(head(status, { 'Content-Length': String(Buffer.byteLength(body)), ...headers }) + body);
  };
}

/** Sends each piece, with a pause between them; `null` resets the connection. */
export function inPieces(pieces: (string | Buffer | null)[], pauseMs = 20): Behavior {
  return async (socket) => {
    for (const piece of pieces) {
      if (socket.destroyed) return;
      if (piece === null) socket.resetAndDestroy();
      else socket.write(piece);
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  };
}
