/**
 * Ends the connections of clients that are gone or do not read: one that answers no ping (a half-open connection), one
 * that sends no audio for long, one that leaves too much unread, and one that does not close its side.
 */
import type { WebSocket } from 'ws';
import type { Budgets } from '../../budgets.ts';
import { GatewayError } from '../../errors.ts';

export interface SocketWatch {
  send(text: string): void;
  /** To be called when the client has sent something to hear. */
  heard(): void;
  /** The time since then; 0 while the messages of the client are not read. */
  idleMs(): number;
  /** Begins the closing handshake, and does not wait for it for long. */
  close(code: number, reason: string): void;
}

/** The most bytes of a reason (RFC 6455, section 5.5). */
const REASON_BYTES = 123;

export function watchSocket(
  socket: WebSocket,
  limits: Pick<Budgets['live'], 'pingMs' | 'idleMs' | 'unreadBytes' | 'closeMs'>,
  onIdle: (why: GatewayError) => void,
): SocketWatch {
  let isAlive = true;
  let heardAt = performance.now();
  const idleMs = () => (socket.isPaused ? 0 : performance.now() - heardAt);
  const beat = setInterval(() => {
    // The answer of a client whose messages are not read now cannot arrive.
    if (!isAlive && !socket.isPaused) return socket.terminate();
    isAlive = false;
    socket.ping();
    if (idleMs() > limits.idleMs) onIdle(new GatewayError('session_idle', { seconds: limits.idleMs / 1000 }));
  }, limits.pingMs);
  for (const sign of ['pong', 'message'])
    socket.on(sign, () => {
      isAlive = true;
    });
  let late: NodeJS.Timeout | undefined;
  const endSoon = () => {
    late ??= setTimeout(() => socket.terminate(), limits.closeMs);
  };
  socket.once('close', () => {
    clearInterval(beat);
    clearTimeout(late);
  });
  // What broke the protocol was answered with a close code. A client that is still sending would lose that with a reset.
  socket.on('error', endSoon);
  return {
    send(text) {
      if (socket.readyState !== socket.OPEN) return;
      socket.send(text);
      if (socket.bufferedAmount > limits.unreadBytes) socket.terminate();
    },
    heard() {
      heardAt = performance.now();
    },
    idleMs,
    close(code, reason) {
      if (socket.isPaused) socket.resume(); // the client's answer must be read
      socket.close(code, Buffer.from(reason).subarray(0, REASON_BYTES).toString());
      endSoon();
    },
  };
}
