/**
 * Ends the connections of clients that are gone or do not read: one that answers no ping (a half-open connection), one
 * that sends no audio for long, one that leaves too much unread, and one that does not close its side.
 */
import type { Socket } from 'node:net';
import type { WebSocket } from 'ws';
import { GatewayError } from '../../errors.ts';
import type { Budgets } from '../../limits/budgets.ts';
import { setDeadline, tickOf } from '../../limits/deadline.ts';

/** The most bytes of a reason (RFC 6455, section 5.5). */
const REASON_BYTES = 123;

interface Watched {
  /** The connection below the WebSocket. */
  link: Pick<Socket, 'bytesRead' | 'isPaused'>;
  /** Called when the client is given up. */
  onLate(why: GatewayError): void;
}

type WatchLimits = Pick<
  Budgets['live'],
  'pingMs' | 'unreadPingMs' | 'idleMs' | 'unreadBytes' | 'unreadMs' | 'closeMs'
>;

const stalled = (what: string) => new GatewayError('client_stalled', { what });

export function watchSocket(socket: WebSocket, limits: WatchLimits, watched: Watched) {
  let isProcessing = false;
  let lastAudioAt = performance.now();
  const signs = watchSigns(socket, limits, watched, () => isProcessing);
  let late: NodeJS.Timeout | undefined;
  const endSoon = () => {
    late ??= setTimeout(() => socket.terminate(), limits.closeMs);
  };
  socket.once('close', () => clearTimeout(late));
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
    if (socket.readyState === socket.OPEN && socket.bufferedAmount > limits.unreadBytes)
      watched.onLate(stalled(`left ${limits.unreadBytes / 1024} KiB unread`));
  };
  // After a violation of the protocol the close code is on its way. Closing at once would reset the connection of a client
  // that is still sending, and the code would be lost.
  socket.on('error', endSoon);
  return {
    /** Resolves when the client has room for more, or is gone. */
    async send(text: string): Promise<void> {
      if (socket.readyState !== socket.OPEN) return;
      const sent = new Promise<void>((resolve) => {
        socket.send(text, () => resolve());
      });
      cutOff();
      const lift = setDeadline(limits.unreadMs, () => watched.onLate(stalled('read its events too slowly')));
      await sent.finally(lift);
    },
    /** Processes audio of the client, which does not count as idle in the meantime. */
    async whileProcessing(work: () => Promise<void>): Promise<void> {
      isProcessing = true;
      try {
        await work();
      } finally {
        isProcessing = false;
        lastAudioAt = performance.now();
        signs.audioCame();
      }
    },
    /** The time since the client last sent audio; 0 while some is processed. */
    idleMs: () => (isProcessing ? 0 : performance.now() - lastAudioAt),
    /** Begins the closing handshake, and does not wait for it for long. */
    close(code: number, reason: string): void {
      socket.close(code, Buffer.from(reason).subarray(0, REASON_BYTES).toString());
      endSoon();
    },
  };
}

/**
 * Looks for a client that is gone or sends no audio. The times count in ticks, as those of deadlines do: what has come while
 * this process could not run is read before the next one.
 */
function watchSigns(
  socket: WebSocket,
  { pingMs, unreadPingMs, idleMs }: WatchLimits,
  { link, onLate }: Watched,
  isProcessing: () => boolean,
): { audioCame(): void } {
  let withoutAudioMs = 0;
  let silentMs = 0;
  let received = 0;
  let beatInMs = pingMs;
  let isPinged = false;
  const tickMs = Math.min(unreadPingMs, tickOf(Math.min(pingMs, idleMs)));
  const ticks = setInterval(() => {
    // A client that is not read now cannot be heard. When it leaves, only a write that fails tells.
    const isUnread = link.isPaused();
    silentMs = isUnread || link.bytesRead !== received ? 0 : silentMs + tickMs;
    received = link.bytesRead;
    if (silentMs >= 2 * pingMs) onLate(stalled(`answered no ping for ${pingMs / 1000} s`));
    withoutAudioMs = isProcessing() ? 0 : withoutAudioMs + tickMs;
    if (withoutAudioMs > idleMs) onLate(new GatewayError('session_idle', { seconds: idleMs / 1000 }));
    beatInMs = Math.min(beatInMs, isUnread ? unreadPingMs : pingMs) - tickMs;
    if (beatInMs > 0 || socket.readyState !== socket.OPEN) return;
    beatInMs = pingMs;
    // A client that is not read now must not get many pings: `ws` closes its connection when 60 of its answers wait. An
    // unsolicited pong is a sign of life that the client does not answer (RFC 6455, section 5.5.3).
    if (isPinged) return socket.pong();
    isPinged = true;
    socket.ping();
  }, tickMs);
  socket.on('pong', () => {
    isPinged = false;
  });
  socket.once('close', () => clearInterval(ticks));
  return {
    audioCame() {
      withoutAudioMs = 0;
    },
  };
}
