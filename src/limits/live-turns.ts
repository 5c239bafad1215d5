/**
 * Turns of the event loop for the clients of live connections, of all protocols together. A client that sends without
 * waiting for answers could keep the event loop busy for as long as it likes. So everything that it sends is handled in
 * small pieces within turns: there is one short turn in a lap of the event loop, and all of them together have a part of
 * its time. Who waits is not read meanwhile (backpressure).
 *
 * Turns go by start-time fair queueing (Goyal, Vin and Cheng 1996): of those that wait, the client that has had the least
 * time is next. The time of a client counts as often as its address has clients, so an address has one share however
 * many connections it opens, and a client that sends little waits for one turn of another at most.
 */
import { performance } from 'node:perf_hooks';
import type { Budgets } from './budgets.ts';

export interface LiveTurns {
  /** @param network the client, as `networkOf` names it */
  join(network: string): LiveClient;
}

export interface LiveClient {
  /** Resolves when the client has a turn; at once while its turn goes on, until that has been long enough. */
  turn(): Promise<void>;
  /** Those that still wait have their turns, so that they can see that the client is gone. May be called twice. */
  leave(): void;
}

interface Member {
  network: string;
  /** The virtual time at which its next turn begins. */
  nextAt: number;
}

interface Waiting {
  member: Member;
  go(): void;
}

interface LiveTurnsOptions {
  /** Whether a request computes now, which needs the processor. */
  isSlotHeld?(): boolean;
  /** The time in ms; only differences count. */
  now?(): number;
}

export function createLiveTurns(
  { loopShare, busyLoopShare, turnMs, burstMs }: Budgets['liveTurns'],
  { isSlotHeld = () => false, now = () => performance.now() }: LiveTurnsOptions = {},
): LiveTurns {
  const clients = new Map<string, number>();
  const queue: Waiting[] = [];
  let virtualNow = 0;
  /** When turns will have had no more than their part of the time. */
  let paidAt = 0;
  let isArmed = false;
  let turn: { startedAt: number; of: Waiting } | null = null;

  /** The callbacks run after each other. Between them is only what the client's turn does without waiting. */
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
    turn = { startedAt: now(), of };
    of.go();
  }

  function charge(): void {
    isArmed = false;
    if (turn !== null) {
      const { startedAt, of } = turn;
      const tookMs = now() - startedAt;
      of.member.nextAt += tookMs * (clients.get(of.member.network) ?? 1);
      paidAt = Math.max(paidAt, startedAt) + tookMs / (isSlotHeld() ? busyLoopShare : loopShare);
      turn = null;
    }
    arm();
  }

  return {
    join(network) {
      const member = { network, nextAt: virtualNow };
      clients.set(network, (clients.get(network) ?? 0) + 1);
      let hasLeft = false;
      return {
        async turn() {
          if (turn?.of.member === member && now() - turn.startedAt < turnMs) return;
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
    },
  };
}
