/**
 * Shares of the event loop for the clients of live connections, of all protocols together. A client that sends without
 * waiting for answers could keep the event loop busy for as long as it likes. So everything that it sends is handled in
 * short time slices: there is one slice in a lap of the event loop, and all of them together have a part of its time. A
 * client that waits is not read meanwhile (backpressure).
 *
 * Slices go by start-time fair queueing (Goyal, Vin and Cheng 1996): of those that wait, the client that has had the
 * least time is next. The time of a client counts as often as its address has clients, so an address has one share
 * however many connections it opens, and a client that sends little waits for one slice of another at most.
 */
import { performance } from 'node:perf_hooks';
import type { Budgets } from './budgets.ts';

/** Gives a client its share. @param network the client, as `networkOf` names it */
export type JoinEventLoop = (network: string) => EventLoopShare;

export interface EventLoopShare {
  /** Resolves when the client has a slice; at once while its slice goes on, until that has been long enough. */
  slice(): Promise<void>;
  /** Those that still wait have their slices, so that they can see that the client is gone. May be called twice. */
  leave(): void;
}

interface Member {
  network: string;
  /** The virtual time at which its next slice begins. */
  nextAt: number;
}

interface Waiting {
  member: Member;
  go(): void;
}

interface SharesOptions {
  /** Whether a request computes now, which needs the processor. */
  isSlotHeld?(): boolean;
  /** The time in ms; only differences count. */
  now?(): number;
}

export function createEventLoopShares(
  { share, busyShare, sliceMs, burstMs }: Budgets['eventLoop'],
  { isSlotHeld = () => false, now = () => performance.now() }: SharesOptions = {},
): JoinEventLoop {
  const clients = new Map<string, number>();
  const queue: Waiting[] = [];
  let virtualNow = 0;
  /** When slices will have had no more than their part of the time. */
  let paidAt = 0;
  let isArmed = false;
  let current: { startedAt: number; of: Waiting } | null = null;

  /** The callbacks run after each other. Between them is only what the client's slice does without waiting. */
  function begin(): void {
    setImmediate(give);
    setImmediate(charge);
  }

  function arm(): void {
    if (isArmed || queue.length === 0) return;
    isArmed = true;
    const restMs = paidAt - now();
    if (restMs > burstMs) setTimeout(begin, restMs);
    else begin();
  }

  function give(): void {
    const of = queue.reduce((first, other) => (other.member.nextAt < first.member.nextAt ? other : first));
    queue.splice(queue.indexOf(of), 1);
    virtualNow = of.member.nextAt;
    current = { startedAt: now(), of };
    of.go();
  }

  function charge(): void {
    isArmed = false;
    if (current !== null) {
      const { startedAt, of } = current;
      const tookMs = now() - startedAt;
      of.member.nextAt += tookMs * (clients.get(of.member.network) ?? 1);
      paidAt = Math.max(paidAt, startedAt) + tookMs / (isSlotHeld() ? busyShare : share);
      current = null;
    }
    arm();
  }

  return (network) => {
    const member = { network, nextAt: virtualNow };
    clients.set(network, (clients.get(network) ?? 0) + 1);
    let hasLeft = false;
    return {
      async slice() {
        if (current?.of.member === member && now() - current.startedAt < sliceMs) return;
        member.nextAt = Math.max(member.nextAt, virtualNow);
        await new Promise<void>((resolve) => {
          queue.push({ member, go: resolve });
          arm();
        });
      },
      leave() {
        if (hasLeft) return;
        hasLeft = true;
        const left = (clients.get(network) ?? 1) - 1;
        if (left > 0) clients.set(network, left);
        else clients.delete(network);
      },
    };
  };
}
