/** Connections on which the answer of an upstream is read, also where it answers before it has read the request. */
import { Agent, type IncomingMessage } from 'node:http';
import { Socket, type SocketConstructorOpts, type TcpNetConnectOpts } from 'node:net';

/** What a write fails with where the other side has closed. */
const CLOSED = new Set(['EPIPE', 'ECONNRESET']);

/**
 * An upstream that refuses a request may answer and close at once (RFC 9112, section 9.6). Node destroys a socket on
 * which a write fails, with the answer that waits in it. So such a write counts as done here, and what is read tells how
 * the call ended: by the answer, or by the end of the connection.
 */
class AnsweredSocket extends Socket {
  /**
   * What a write on a connection failed with that was reset. An answer that only its end would end may have been cut
   * short then. After an orderly end the first write fails with EPIPE.
   */
  broken: Error | undefined;

  override _write(...[chunk, encoding, done]: Parameters<Socket['_write']>): void {
    super._write(chunk, encoding, this.#unlessClosed(done));
  }

  override _writev(...[chunks, done]: Parameters<NonNullable<Socket['_writev']>>): void {
    super._writev?.(chunks, this.#unlessClosed(done));
  }

  #unlessClosed(done: (error?: Error | null) => void) {
    return (error?: NodeJS.ErrnoException | null): void => {
      const isClosed = CLOSED.has(error?.code ?? '');
      if (error?.code === 'ECONNRESET') this.broken ??= error;
      done(isClosed ? null : error);
    };
  }
}

/** The rest of an answer that ends with its connection. @throws the error of a connection that broke */
export async function* untilClosed(answer: IncomingMessage): AsyncGenerator<Buffer> {
  const { socket } = answer;
  yield* answer;
  if (socket instanceof AnsweredSocket && socket.broken !== undefined) throw socket.broken;
}

/** Opens a connection for each call. Only those without TLS are `AnsweredSocket`s. */
class UpstreamAgent extends Agent {
  override createConnection(options: SocketConstructorOpts & TcpNetConnectOpts): Socket {
    return new AnsweredSocket(options).connect(options);
  }
}

/**
 * The agent for an upstream; false for one over TLS, where Node makes the sockets, also one for each call. Node's own
 * agent would use a connection again, and the time to connect would run on, because `secureConnect` came long ago.
 */
export const agentFor = ({ protocol }: URL): Agent | false =>
  protocol === 'http:' ? new UpstreamAgent() : false;
