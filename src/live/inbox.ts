/** A client's unhandled messages. The socket is read ahead, up to a limit, to notice when the client leaves. */
import type { Socket } from 'node:net';

export type Inbox = ReturnType<typeof readAhead>;

/** Chunks may be as short as a byte, and each takes memory besides. */
const MOST_CHUNKS = 64;

export function readAhead(socket: Socket, { aheadBytes }: { aheadBytes: number }) {
  let waiting: Buffer[] = [];
  let bytes = 0;
  let isClosed = false;
  let isWaiting = false;
  let wake: () => void = () => undefined;

  function pace(): void {
    const isFull = bytes > aheadBytes || waiting.length > MOST_CHUNKS;
    if (isFull && !socket.isPaused()) socket.pause();
    else if (!isFull && socket.isPaused()) socket.resume();
  }

  function close(): void {
    isClosed = true;
    [waiting, bytes] = [[], 0];
    pace();
    wake();
  }

  socket.on('data', (chunk) => {
    if (isClosed) return;
    waiting.push(chunk);
    bytes += chunk.length;
    isWaiting = false;
    pace();
    wake();
  });
  socket.once('close', close);

  return {
    /** The chunks as they come. It ends when the inbox is closed. */
    async *chunks(): AsyncGenerator<Buffer, void, undefined> {
      while (!isClosed) {
        const chunk = waiting.shift();
        if (chunk === undefined) {
          isWaiting = true;
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
          continue;
        }
        bytes -= chunk.length;
        pace();
        yield chunk;
      }
    },
    /** Whether everything that came has been handled. */
    isEmpty: () => isWaiting,
    /** Drops all received and future data, but keeps reading, so that the client can read the last answer. */
    close,
  };
}
