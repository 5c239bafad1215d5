/**
 * The line of requests that asked to wait for the slot (`Prefer: wait`, RFC 7240). Clients take turns (fair queuing by
 * the address): of each, the first that came is served first. A request waits before its body is read. When the slot is
 * free, the first one is called: it sends its body and takes the slot. A slow body must not keep the slot idle: one that
 * is ready goes before it, and the next one is called when the first has not taken the slot after `calledMs`. One that
 * has its body and finds the slot taken waits again, in the place that it had.
 *
 * The line has a bounded number of places. When all are taken, the address that holds most gives one up to an address
 * that holds at least two fewer. So one address can neither fill the line nor be served before all others.
 *
 * Requests that did not ask never wait: they take a slot that is free and are refused at one that is held. Such a request
 * goes before the one that was called at most once, because that one then has its body, and is the next to be served.
 */
import { onAbort } from '../abort.ts';
import type { Category } from '../category.ts';
import { GatewayError } from '../errors.ts';
import type { Budgets } from '../limits/budgets.ts';
import { givingWay, shares } from '../limits/network.ts';
import type { Hold, Slot } from './slot.ts';

/** A request in the line. */
export interface Waiting {
  category: Category;
  requestId: string;
  /** The time that it has waited so far. */
  waitedMs: number;
}

/** The turn of one request. */
export interface Turn {
  /** Resolves when the request may send its body. @throws as `take` */
  comesUp(signal: AbortSignal): Promise<void>;
  /**
   * Resolves with the slot.
   * @throws GatewayError `slot_busy` when the time is over or was none, and when the line is full; `shutting_down`;
   *   `signal.reason` after an abort
   */
  take(signal: AbortSignal): Promise<Hold>;
  /** Must be called when the request is over, so that one that was called and failed does not keep the next waiting. */
  end(): void;
}

export interface TurnRequest {
  category: Category;
  requestId: string;
  /** The client, as `networkOf` names it. */
  network: string;
  /** The longest time to wait, in milliseconds, before and after the body together; 0 = not at all. */
  waitMs: number;
  /** True for work that a gateway which stops still does, such as the text of speech that has ended. */
  outlastsStop?: boolean;
  /** Called after each wait, however it ended, with its milliseconds. */
  onWaited(ms: number): void;
}

export interface WaitingLine {
  turn(request: TurnRequest): Turn;
  /** The requests that wait now, in the order in which they will be served. */
  waiting(): Waiting[];
  /** Ends the waits with `shutting_down`, and no new one begins, but for those that outlast the stop. */
  close(): void;
}

interface Place extends Omit<Waiting, 'waitedMs'> {
  network: string;
  /** Counts the requests of its client before it. */
  round: number;
  arrival: number;
  outlastsStop: boolean;
  /** False before the body; the request then needs some time between its turn and taking the slot. */
  ready: boolean;
  waitedMs(): number;
  go(): void;
  fail(reason: unknown): void;
  /** Ends the wait as the end of its time does. */
  timeOut(): void;
}

export function createWaitingLine(
  slot: Slot,
  { requests, calledMs }: Budgets['waiting'],
  now: () => number = () => performance.now(),
): WaitingLine {
  /** In the order in which they are served: by round, and in each round by arrival. */
  const line: Place[] = [];
  /** The round of the last one that was served. A client that comes now begins in the next one. */
  let servedRound = 0;
  let arrivals = 0;
  let isClosed = false;
  let called: { turn: Turn; late: NodeJS.Timeout } | null = null;

  const { isFree } = slot;

  function forgetCalled(turn: Turn): void {
    if (called?.turn !== turn) return;
    clearTimeout(called.late);
    called = null;
  }

  function call(turn: Turn): void {
    const late = setTimeout(() => {
      forgetCalled(turn);
      advance();
    }, calledMs);
    called = { turn, late };
  }

  /** Must run whenever the slot becomes free, and when a request that was called will not take it. */
  function advance(): void {
    if (!isFree()) return;
    const first = line[0];
    const next = line.find(({ ready }) => ready);
    next?.go();
    // An older one sends its body meanwhile. Else those that are ready as soon as they come, such as the utterances of
    // live sessions, would always be ahead of it.
    if (first !== next && called === null) first?.go();
  }

  /** A client's requests are in rounds of their own, and none of it is in one that is over. */
  function nextRound(network: string): number {
    const last = line.findLast((place) => place.network === network);
    return Math.max(servedRound, last?.round ?? 0) + 1;
  }

  /** True when one more of this client may wait; another's last one then makes room, if it must. */
  function hasRoom(network: string): boolean {
    if (line.length < requests) return true;
    const candidates = givingWay(line, shares(line), { network });
    // One that has not sent its body yet loses less.
    const last = candidates.findLast(({ ready }) => !ready) ?? candidates.at(-1);
    last?.timeOut();
    return last !== undefined;
  }

  function createTurn(request: TurnRequest): Turn {
    const { category, requestId, network, waitMs, outlastsStop = false, onWaited } = request;
    const arrival = arrivals++;
    let leftMs = waitMs;
    let round: number | undefined;

    const wait = <T>(signal: AbortSignal, ready: boolean, come: () => T): Promise<T> =>
      new Promise((resolve, reject) => {
        const since = now();
        const sinceMs = () => now() - since;
        const settle = (how: () => void) => {
          line.splice(line.indexOf(place), 1);
          clearTimeout(late);
          leaving[Symbol.dispose]();
          leftMs -= sinceMs();
          onWaited(sinceMs());
          how();
        };
        round ??= nextRound(network);
        const place: Place = {
          category,
          requestId,
          network,
          round,
          arrival,
          ready,
          outlastsStop,
          waitedMs: () => waitMs - leftMs + sinceMs(),
          go: () => {
            servedRound = Math.max(servedRound, place.round);
            settle(() => resolve(come()));
          },
          fail: (reason) => settle(() => reject(reason)),
          timeOut: () => (isFree() ? place.go() : place.fail(busy(slot))),
        };
        const late = setTimeout(place.timeOut, leftMs);
        const behind = line.findIndex((other) => isBefore(place, other));
        line.splice(behind < 0 ? line.length : behind, 0, place);
        const leaving = onAbort(signal, () => place.fail(signal.reason));
      });
    const mayWait = () => leftMs > 0 && (outlastsStop || !isClosed) && hasRoom(network);

    const turn: Turn = {
      async comesUp(signal) {
        signal.throwIfAborted();
        if ((isFree() && line.length === 0) || !mayWait()) return slot.assertFree();
        await wait(signal, false, () => call(turn));
      },
      async take(signal) {
        forgetCalled(turn);
        signal.throwIfAborted();
        const take = () => slot.take(category, requestId);
        // A request with a body does not wait at a free slot.
        return isFree() || !mayWait() ? take() : wait(signal, true, take);
      },
      end() {
        forgetCalled(turn);
        advance();
      },
    };
    return turn;
  }

  slot.onFree(advance);
  return {
    turn: createTurn,
    waiting: () =>
      line.map(({ category, requestId, waitedMs }) => ({
        category,
        requestId,
        waitedMs: Math.round(waitedMs()),
      })),
    close() {
      isClosed = true;
      const ended = line.filter(({ outlastsStop }) => !outlastsStop);
      for (const place of ended) place.fail(new GatewayError('shutting_down', {}));
    },
  };
}

const isBefore = (a: Place, b: Place) => a.round < b.round || (a.round === b.round && a.arrival < b.arrival);

/** The refusal of a slot that is held. */
function busy(slot: Slot): unknown {
  try {
    slot.assertFree();
  } catch (refusal) {
    return refusal;
  }
  return new Error('the slot is free');
}
