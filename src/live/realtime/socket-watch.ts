/**
 * Ends the connections of clients that are gone or do not read: one that answers no ping (a half-open connection), one
 * that sends no audio for long, one that leaves too much unread, and one that does not close its side.
 */
import type { WebSocket } from 'ws';
import { GatewayError } from '../../errors.ts';
import type { Budgets } from '../../limits/budgets.ts';

export interface SocketWatch {
  /** Resolves when the client has room for more, or is gone. */
  send(text: string): Promise<void>;
  /** Processes audio of the client, which does not count as idle in the meantime. */
  whileProcessing(work: () => Promise<void>): Promise<void>;
  /** The time since the client last sent audio; 0 while some is processed. */
  idleMs(): number;
  /** Begins the closing handshake, and does not wait for it for long. */
  close(code: number, reason: string): void;
}

/** The most bytes of a reason (RFC 6455, section 5.5). */
const REASON_BYTES = 123;

export function watchSocket(
  socket: WebSocket,
  limits: Pick<Budgets['live'], 'pingMs' | 'unreadPingMs' | 'idleMs' | 'unreadBytes' | 'closeMs'>,
  { onIdle, isUnread }: { onIdle(why: GatewayError): void; isUnread(): boolean },
): SocketWatch {
  let isAlive = true;
  let isProcessing = false;
  let lastAudioAt = performance.now();
  const idleMs = () => (isProcessing ? 0 : performance.now() - lastAudioAt);
  const isBehind = () => socket.isPaused || isUnread();
  const knock = setInterval(() => {
    if (isBehind()) socket.ping();
  }, limits.unreadPingMs);
  const beat = setInterval(() => {
    // The answer of a client whose messages are not read now cannot arrive.
    if (!isAlive && !isBehind()) return socket.terminate();
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
    clearInterval(knock);
    clearTimeout(late);
  });
  let pinged: Buffer | null = null;
  // Only the last of the pings that come in one turn is answered (RFC 6455, section 5.5.3).
  socket.on('ping', (data) => {
    if (pinged === null) setImmediate(answer);
    pinged = data;
  });
  function answer(): void {
    if (socket.readyState === socket.OPEN) socket.pong(pinged ?? '');
    pinged = null;
    cutOff();
  }
  const cutOff = () => {
    if (socket.bufferedAmount > limits.unreadBytes) socket.terminate();
  };
  // After a violation of the protocol the close code is on its way. Closing at once would reset the connection of a client
  // that is still sending, and the code would be lost.
  socket.on('error', endSoon);
  return {
    async send(text) {
      if (socket.readyState !== socket.OPEN) return;
      const sent = new Promise<void>((resolve) => {
        socket.send(text, () => resolve());
      });
      cutOff();
      await sent;
    },
    async whileProcessing(work) {
      isProcessing = true;
      await work().finally(() => {
        isProcessing = false;
        lastAudioAt = performance.now();
      });
    },
    idleMs,
    close(code, reason) {
      if (socket.isPaused) socket.resume(); // the client's answer must be read
      socket.close(code, Buffer.from(reason).subarray(0, REASON_BYTES).toString());
      endSoon();
    },
  };
}
