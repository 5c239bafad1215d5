/**
 * Bounds the open connections. At the limit a new one takes the place of another one, or is closed:
 *
 * - One without a request gives way first: one that has said nothing since it came, then one that is idle until its next
 *   request. So clients that only connect cannot keep others out.
 * - When every connection has a request under way, the address that holds most gives its newest one up, by the rule of
 *   all bounded places. It also loses those without a request first.
 *
 * An address is that of the connection: behind a reverse proxy all clients have the proxy's. Only the rule is shared with
 * `bounded-places.ts`: connections come fast and may be very many, so which one gives way is the first of a list here.
 */
import type { EventEmitter } from 'node:events';
import type { Server, Socket } from 'node:net';
import { mustShare } from './bounded-places.ts';
import { networkOf } from './network.ts';

/** The limits: connections open at once, and the time in ms for which a new one is spared where another can give way. */
export interface ConnectionLimits {
  maxConnections: number;
  sparedMs: number;
}

/** The connections of one address. In each list those that have been in it for longest come first. */
class Holder {
  readonly network: string;
  /** The number of requests under way on each connection, last the one that has begun the newest. */
  readonly open = new Map<Socket, number>();
  readonly silent = new Map<Socket, number>();
  readonly idle = new Set<Socket>();

  constructor(network: string) {
    this.network = network;
  }

  forget(socket: Socket): void {
    for (const list of [this.open, this.silent, this.idle]) list.delete(socket);
  }
}

/**
 * Returns what must be called with a request that the server gives no event for, such as one that was upgraded. Its end
 * is the `close` of the second argument.
 */
export function boundConnections(
  server: Server,
  { maxConnections, sparedMs }: ConnectionLimits,
): (req: { socket: Socket }, res: Pick<EventEmitter, 'once'>) => void {
  const holders = new Map<string, Holder>();
  const holderOf = new WeakMap<Socket, Holder>();
  let count = 0;

  const forget = (socket: Socket) => {
    const holder = holderOf.get(socket);
    if (holder === undefined || !holder.open.has(socket)) return;
    holder.forget(socket);
    count -= 1;
    if (holder.open.size === 0) holders.delete(holder.network);
  };

  /** The connections of these addresses that can give way without harm. */
  const spare = (of: readonly Holder[]): Socket | undefined => {
    const silent = of.flatMap(({ silent: [first] }) => (first === undefined ? [] : [first]));
    const [oldest] = silent.toSorted(([, a], [, b]) => a - b);
    if (oldest !== undefined && oldest[1] + sparedMs <= performance.now()) return oldest[0];
    return of.flatMap(({ idle: [first] }) => first ?? [])[0];
  };

  const nextToClose = (own: Holder): Socket | undefined => {
    const all = [...holders.values()];
    const most = all.reduce((a, b) => (b.open.size > a.open.size ? b : a), own);
    const isCrowded = mustShare.places(most.open.size, own.open.size + 1);
    const from = isCrowded ? most : own;
    const [silent] = from.silent.keys();
    const waiting = spare([from]) ?? silent ?? spare(all);
    return waiting ?? (isCrowded ? [...from.open.keys()].at(-1) : undefined); // the newest has least to lose
  };

  server.on('connection', (socket) => {
    if (holderOf.has(socket)) return; // known already: Node hands it back after an upgrade that was not accepted
    const network = networkOf(socket.remoteAddress ?? '');
    const holder = holders.get(network) ?? new Holder(network);
    if (count >= maxConnections) {
      const next = nextToClose(holder);
      (next ?? socket).destroy();
      if (next === undefined) return;
      forget(next); // `close` comes later, and until then it must not be chosen again
    }
    holders.set(network, holder);
    holderOf.set(socket, holder);
    holder.open.set(socket, 0);
    holder.silent.set(socket, performance.now());
    count += 1;
    socket.once('close', () => forget(socket));
  });

  const begin = ({ socket }: { socket: Socket }, res: Pick<EventEmitter, 'once'>) => {
    const holder = holderOf.get(socket);
    const before = holder?.open.get(socket);
    if (holder === undefined || before === undefined) return; // it was closed to make room for another
    holder.forget(socket);
    holder.open.set(socket, before + 1);
    res.once('close', () => {
      const left = (holder.open.get(socket) ?? 0) - 1;
      if (left < 0) return; // the connection was closed meanwhile
      holder.open.set(socket, left);
      if (left > 0) return;
      holder.idle.add(socket);
    });
  };
  for (const event of ['request', 'checkContinue', 'checkExpectation']) server.on(event, begin);
  return begin;
}
