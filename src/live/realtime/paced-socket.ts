/**
 * The connection below a WebSocket, with backpressure: the WebSocket reads one small piece in each slice of the event
 * loop that its client has. What comes in a piece, be it a thousand empty messages, pings or fragments, is parsed and
 * answered in that slice.
 */
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { Budgets } from '../../limits/budgets.ts';
import { readAhead } from '../inbox.ts';

/** The smallest frame of a client has 6 bytes, and 2,700 of them are parsed in a few milliseconds. */
const PIECE_BYTES = 16 * 1024;

/** @param turn resolves when a piece of that many bytes may be read */
export function pacedSocket(
  socket: Socket,
  limits: Pick<Budgets['live'], 'aheadBytes'>,
  turn: (bytes: number) => Promise<void>,
): Duplex {
  const inbox = readAhead(socket, limits);
  async function* read(): AsyncGenerator<Buffer, undefined, undefined> {
    for await (const chunk of inbox.chunks())
      for (let at = 0; at < chunk.length; at += PIECE_BYTES) {
        const piece = chunk.subarray(at, at + PIECE_BYTES);
        await turn(piece.length);
        yield piece;
      }
  }
  const pieces = read();
  const paced = new Duplex({
    readableHighWaterMark: 1, // the next piece is read when this one is taken
    read: () => void pieces.next().then(({ value }) => paced.push(value ?? null)),
    write: (chunk, _encoding, done) => void socket.write(chunk, done),
    writev(chunks, done) {
      socket.cork();
      for (const [i, { chunk }] of chunks.entries())
        socket.write(chunk, i === chunks.length - 1 ? done : undefined);
      socket.uncork();
    },
    final: (done) => void socket.end(done),
    destroy(error, done) {
      socket.destroy();
      done(error);
    },
  });
  socket.on('error', (error) => paced.destroy(error));
  // A client that closes its side has left, also when messages of it still wait (RFC 6455, section 7.1.5).
  for (const sign of ['end', 'close']) socket.once(sign, () => paced.destroy());
  return paced;
}
