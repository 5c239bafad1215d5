/**
 * Bounds the memory of large messages of live sessions. A message is whole in memory before it is read, and takes several
 * times its size until its audio is heard. So only a few sessions may be in the middle of a large one. The others are not
 * read meanwhile (backpressure). Places are fair by client network, and a client that does not finish loses its own.
 */
import { GatewayError } from '../errors.ts';
import { BoundedPlaces, type Holder } from './bounded-places.ts';
import type { Budgets } from './budgets.ts';
import { setDeadline } from './deadline.ts';

/**
 * Joins a session.
 * @param network the client, as `networkOf` names it
 * @param giveUp ends the session, which has waited for too long, takes too long, or is evicted
 */
export type JoinLargeMessages = (network: string, giveUp: (why: GatewayError) => void) => MessageSize;

/** What a session has sent of its message. */
export interface MessageSize {
  /** Resolves when so many bytes more may be read, or when the session is over. It never rejects. */
  grow(bytes: number): Promise<void>;
  /** Takes out what was no part of the message: a ping or a pong between its fragments. */
  without(bytes: number): void;
  /** The message is complete, and may take its time to be handled. */
  complete(): void;
  /** The message is out of memory. */
  handled(): void;
  /** Frees all that the session holds. Idempotent. */
  leave(): void;
}

interface Sender extends Holder {
  giveUp(why: GatewayError): void;
}

export function createLargeMessages({
  largeBytes,
  largeMessages,
  largeMessageMs,
}: Pick<Budgets['live'], 'largeBytes' | 'largeMessages' | 'largeMessageMs'>): JoinLargeMessages {
  const overloaded = () => new GatewayError('overloaded', {});
  const places = new BoundedPlaces<Sender>({
    most: largeMessages,
    choose: (candidates) => candidates.at(-1),
    evict: ({ giveUp }) => giveUp(overloaded()),
  });
  const tooSlow = () =>
    new GatewayError('client_stalled', { what: `did not finish a message in ${largeMessageMs / 1000} s` });

  return (network, giveUp) => {
    const sender = { network, giveUp };
    const gone = new AbortController();
    let bytes = 0;
    let lift = () => {};
    const left = new GatewayError('client_left', {});

    async function take(): Promise<void> {
      const isIn = await places.takeOrWait(sender, largeMessageMs, gone.signal).catch(() => undefined);
      if (isIn === undefined) return;
      if (isIn) lift = setDeadline(largeMessageMs, () => giveUp(tooSlow()));
      else giveUp(overloaded());
    }

    return {
      async grow(more) {
        bytes += more;
        if (bytes > largeBytes && places.amountOf(sender) === 0 && !gone.signal.aborted) await take();
      },
      without(some) {
        bytes = Math.max(0, bytes - some);
      },
      complete() {
        bytes = 0;
        lift();
      },
      handled() {
        if (bytes <= largeBytes) places.release(sender);
      },
      leave() {
        gone.abort(left);
        lift();
        places.release(sender);
      },
    };
  };
}
