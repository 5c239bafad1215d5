/**
 * The waiting line: the queue of requests that asked to wait for the slot, up to a timeout (`Prefer: wait`, RFC 7240).
 * Clients take turns (fair queuing by the address). Among the requests of one client, and among the clients of one round,
 * the categories take turns: the one that had the slot least recently comes first. So where a
 * client sends chat after chat, its speech request waits for one of them at most. Of one client and category, the first that came is served first.
 *
 * A request waits before its body is read. When the slot is free, the first one is called: it sends its body and takes
 * the slot. A slow body must not keep the slot idle: one that is ready goes before it, and the next one is called when
 * the first has not taken the slot after `calledMs`. One that has its body and finds the slot taken waits again, in the
 * place that it had.
 *
 * Requests that did not ask never wait: they take a slot that is free and are refused at one that is held. Such a request
 * goes before the one that was called at most once, because that one then has its body, and is the next to be served.
 */
import { onAbort } from '../abort.ts';
import { CATEGORIES, type Category } from '../category.ts';
import { GatewayError } from '../errors.ts';
import { BoundedPlaces } from '../limits/bounded-places.ts';
import type { Budgets } from '../limits/budgets.ts';
import type { Hold, Slot } from './slot.ts';

/** The place of one request in the line, from its arrival to its end. */
export interface Ticket {
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

export interface TicketRequest {
  category: Category;
  requestId: string;
  /** The client, as `networkOf` names it. */
  network: string;
  /** The longest time to wait, in milliseconds, before and after the body together; 0 = not at all. */
  waitMs: number;
  /** True for work of a live session. A gateway that stops still does it, such as the text of speech that has ended. */
  isLive?: boolean;
  /** Called after each wait, however it ended, with its milliseconds. */
  onWaited(ms: number): void;
}

export type WaitingLine = ReturnType<typeof createWaitingLine>;

/** A request that waits now: before its body, or with it. */
interface Waiter extends TicketRequest {
  /**
   * The round in which it is served, one for each request of its client before it; 0 before the first wait. Requests of
   * one client may swap rounds.
   */
  round: number;
  arrival: number;
  /** False before the body; the request then needs some time between its turn and taking the slot. */
  ready: boolean;
  waitedMs(): number;
  go(): void;
  fail(reason: unknown): void;
  /** Ends the wait as the end of its time does. */
  timeOut(): void;
}

/** All that wait. They are served by round, and in each round the categories take turns. */
function createWaiters(most: number) {
  /** Orders the categories by the time at which a request of each one took the slot last. */
  const lastOf = { asr: 0, tts: 0, llm: 0 } satisfies Record<Category, number>;
  const takeTurns = (waiters: readonly Waiter[]): Waiter[] => {
    const before = { asr: 0, tts: 0, llm: 0 } satisfies Record<Category, number>;
    return waiters
      .toSorted((a, b) => a.arrival - b.arrival)
      .map((waiter) => ({ waiter, nth: before[waiter.category]++, last: lastOf[waiter.category] }))
      .toSorted((a, b) => a.nth - b.nth || a.last - b.last) // the order of arrival stays where they are equal
      .map(({ waiter }) => waiter);
  };
  /** As they will be served. The requests of a client get the rounds of that client in the order of their turns. */
  const ordered = (waiters: readonly Waiter[]): Waiter[] => {
    const byRound = waiters.toSorted((a, b) => a.round - b.round);
    const rounds = new Set(byRound.map(({ round }) => round));
    for (const client of new Set(byRound.map(({ network }) => network))) {
      const own = byRound.filter(({ network }) => network === client);
      const ownRounds = own.map(({ round }) => round);
      for (const [at, waiter] of takeTurns(own).entries()) waiter.round = ownRounds[at] ?? waiter.round;
    }
    return [...rounds].flatMap((round) => takeTurns(byRound.filter((waiter) => waiter.round === round)));
  };
  const places = new BoundedPlaces<Waiter>({
    most,
    choose(candidates) {
      const waiting = ordered(candidates);
      // One that has not sent its body yet loses less.
      return waiting.findLast(({ ready }) => !ready) ?? waiting.at(-1);
    },
    evict: (waiter) => waiter.timeOut(),
  });
  const inOrder = () => ordered(places.holders());
  /** The round of the last one that was served. A client that comes now begins in the next one. */
  let servedRound = 0;
  return {
    inOrder,
    /** True when one more of this client may wait; another's last one then makes room, if it must. */
    makeRoom: (request: TicketRequest) => places.makeRoom(request),
    enter(waiter: Waiter): void {
      // A client's requests are in rounds of their own, and none of it is in one that is over.
      const last = inOrder().findLast(({ network }) => network === waiter.network);
      waiter.round ||= Math.max(servedRound, last?.round ?? 0) + 1;
      places.take(waiter);
    },
    served({ round }: Waiter): void {
      servedRound = Math.max(servedRound, round);
    },
    /** From now on the other categories come first. */
    hadSlot(category: Category): void {
      lastOf[category] = Math.max(...CATEGORIES.map((each) => lastOf[each])) + 1;
    },
    leave: (waiter: Waiter) => places.release(waiter),
  };
}

/** What a ticket needs of its line. */
interface Line {
  slot: Slot;
  waiters: ReturnType<typeof createWaiters>;
  now(): number;
  isClosed(): boolean;
  /** Calls a request: the slot is kept for it until it takes the slot, ends, or is late. */
  call(ticket: Ticket): void;
  forgetCalled(ticket: Ticket): void;
  advance(): void;
}

export function createWaitingLine(
  slot: Slot,
  { requests, calledMs }: Budgets['waiting'],
  now: () => number = () => performance.now(),
) {
  const waiters = createWaiters(requests);
  let arrivals = 0;
  let isClosed = false;
  let called: { ticket: Ticket; late: NodeJS.Timeout } | null = null;

  function forgetCalled(ticket: Ticket): void {
    if (called?.ticket !== ticket) return;
    clearTimeout(called.late);
    called = null;
  }

  function call(ticket: Ticket): void {
    const late = setTimeout(() => {
      forgetCalled(ticket);
      advance();
    }, calledMs);
    called = { ticket, late };
  }

  /** Must run whenever the slot becomes free, and when a request that was called will not take it. */
  function advance(): void {
    if (!slot.isFree()) return;
    const waiting = waiters.inOrder();
    const [first] = waiting;
    const next = waiting.find(({ ready }) => ready);
    next?.go();
    // An older one sends its body meanwhile. Else those that are ready as soon as they come, such as the utterances of
    // live sessions, would always be ahead of it.
    if (first !== next && called === null) first?.go();
  }

  slot.onFree(advance);
  const line = { slot, waiters, now, isClosed: () => isClosed, call, forgetCalled, advance };
  return {
    ticket: (request: TicketRequest) => createTicket(line, request, arrivals++),
    /** The requests that wait now, in the order in which they will be served. */
    waiting: () =>
      waiters.inOrder().map(({ category, requestId, waitedMs, isLive = false }) => ({
        category,
        requestId,
        waitedMs: Math.round(waitedMs()),
        /** Whether it is an utterance or an answer of a live session. */
        isLive,
      })),
    /** Ends the waits with `shutting_down`, and no new one begins, but for those that outlast the stop. */
    close(): void {
      isClosed = true;
      const ended = waiters.inOrder().filter(({ isLive }) => !isLive);
      for (const waiter of ended) waiter.fail(new GatewayError('shutting_down', {}));
    },
  };
}

function createTicket(line: Line, request: TicketRequest, arrival: number): Ticket {
  const { slot, waiters, now } = line;
  let leftMs = request.waitMs;
  /** A second wait has the round of the first one. */
  let round = 0;

  const wait = <T>(signal: AbortSignal, ready: boolean, come: () => T): Promise<T> =>
    new Promise((resolve, reject) => {
      const since = now();
      const sinceMs = () => now() - since;
      const settle = (how: () => void) => {
        waiters.leave(waiter);
        clearTimeout(late);
        leaving[Symbol.dispose]();
        leftMs -= sinceMs();
        round = waiter.round;
        request.onWaited(sinceMs());
        how();
      };
      const waiter: Waiter = {
        ...request,
        round,
        arrival,
        ready,
        waitedMs: () => request.waitMs - leftMs + sinceMs(),
        go() {
          waiters.served(waiter);
          settle(() => resolve(come()));
        },
        fail: (reason) => settle(() => reject(reason)),
        timeOut() {
          try {
            slot.assertFree();
          } catch (refusal) {
            return waiter.fail(refusal);
          }
          waiter.go();
        },
      };
      waiters.enter(waiter);
      const late = setTimeout(waiter.timeOut, leftMs);
      const leaving = onAbort(signal, () => waiter.fail(signal.reason));
    });
  const mayWait = () => leftMs > 0 && (request.isLive || !line.isClosed()) && waiters.makeRoom(request);

  const ticket: Ticket = {
    async comesUp(signal) {
      signal.throwIfAborted();
      const isNext = slot.isFree() && waiters.inOrder().length === 0;
      if (isNext || !mayWait()) return slot.assertFree();
      await wait(signal, false, () => line.call(ticket));
    },
    async take(signal) {
      line.forgetCalled(ticket);
      signal.throwIfAborted();
      const take = () => {
        const hold = slot.take(request.category, request.requestId);
        waiters.hadSlot(request.category);
        return hold;
      };
      // A request with a body does not wait at a free slot.
      return slot.isFree() || !mayWait() ? take() : wait(signal, true, take);
    },
    end() {
      line.forgetCalled(ticket);
      line.advance();
    },
  };
  return ticket;
}
