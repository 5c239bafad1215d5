/**
 * The waiting line: the queue of requests that asked to wait for the slot, up to a timeout (`Prefer: wait`, RFC 7240).
 * Clients take turns (fair queuing by the address). Among the requests of one client, and among the clients of one round,
 * the categories take turns: the one that had the slot least recently comes first. So a client that streams chats one
 * after the other hears its speech after one of them. Of one client and category, the first that came is served first.
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

/** A request in the line. */
export interface Waiting {
  category: Category;
  requestId: string;
  /** The time that it has waited so far. */
  waitedMs: number;
  /** Whether it is an utterance or an answer of a live session. */
  isLive: boolean;
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
  /** True for work of a live session. A gateway that stops still does it, such as the text of speech that has ended. */
  isLive?: boolean;
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

/** One wait of a request. */
interface Ticket extends TurnRequest {
  /** Counts the requests of its client before it; 0 before the first wait. Others of its client may exchange it. */
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

/** The tickets of all that wait. They are served by round, and in each round the categories take turns. */
function createTickets(most: number) {
  /** Orders the categories by the time at which a request of each one took the slot last. */
  const lastOf = { asr: 0, tts: 0, llm: 0 } satisfies Record<Category, number>;
  const takeTurns = (tickets: readonly Ticket[]): Ticket[] => {
    const before = { asr: 0, tts: 0, llm: 0 } satisfies Record<Category, number>;
    return tickets
      .toSorted((a, b) => a.arrival - b.arrival)
      .map((ticket) => ({ ticket, nth: before[ticket.category]++, last: lastOf[ticket.category] }))
      .toSorted((a, b) => a.nth - b.nth || a.last - b.last) // the order of arrival stays where they are equal
      .map(({ ticket }) => ticket);
  };
  /** As they will be served. The requests of a client get the rounds of that client in the order of their turns. */
  const ordered = (tickets: readonly Ticket[]): Ticket[] => {
    const byRound = tickets.toSorted((a, b) => a.round - b.round);
    const rounds = new Set(byRound.map(({ round }) => round));
    for (const client of new Set(byRound.map(({ network }) => network))) {
      const own = byRound.filter(({ network }) => network === client);
      const ownRounds = own.map(({ round }) => round);
      for (const [at, ticket] of takeTurns(own).entries()) ticket.round = ownRounds[at] ?? ticket.round;
    }
    return [...rounds].flatMap((round) => takeTurns(byRound.filter((ticket) => ticket.round === round)));
  };
  const places = new BoundedPlaces<Ticket>({
    most,
    choose(crowded) {
      const waiting = ordered(crowded);
      // One that has not sent its body yet loses less.
      return waiting.findLast(({ ready }) => !ready) ?? waiting.at(-1);
    },
    evict: (ticket) => ticket.timeOut(),
  });
  const inOrder = () => ordered(places.holders());
  /** The round of the last one that was served. A client that comes now begins in the next one. */
  let servedRound = 0;
  return {
    inOrder,
    /** True when one more of this client may wait; another's last one then makes room, if it must. */
    makeRoom: (request: TurnRequest) => places.makeRoom(request),
    enter(ticket: Ticket): void {
      // A client's requests are in rounds of their own, and none of it is in one that is over.
      const last = inOrder().findLast(({ network }) => network === ticket.network);
      ticket.round ||= Math.max(servedRound, last?.round ?? 0) + 1;
      places.take(ticket);
    },
    served({ round }: Ticket): void {
      servedRound = Math.max(servedRound, round);
    },
    /** From now on the other categories come first. */
    hadSlot(category: Category): void {
      lastOf[category] = Math.max(...CATEGORIES.map((each) => lastOf[each])) + 1;
    },
    leave: (ticket: Ticket) => places.release(ticket),
  };
}

/** What a turn needs of its line. */
interface Line {
  slot: Slot;
  tickets: ReturnType<typeof createTickets>;
  now(): number;
  isClosed(): boolean;
  /** From now on this turn is waited for, until it takes the slot, ends, or is late. */
  call(turn: Turn): void;
  forgetCalled(turn: Turn): void;
  advance(): void;
}

export function createWaitingLine(
  slot: Slot,
  { requests, calledMs }: Budgets['waiting'],
  now: () => number = () => performance.now(),
): WaitingLine {
  const tickets = createTickets(requests);
  let arrivals = 0;
  let isClosed = false;
  let called: { turn: Turn; late: NodeJS.Timeout } | null = null;

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
    if (!slot.isFree()) return;
    const waiting = tickets.inOrder();
    const [first] = waiting;
    const next = waiting.find(({ ready }) => ready);
    next?.go();
    // An older one sends its body meanwhile. Else those that are ready as soon as they come, such as the utterances of
    // live sessions, would always be ahead of it.
    if (first !== next && called === null) first?.go();
  }

  slot.onFree(advance);
  const line = { slot, tickets, now, isClosed: () => isClosed, call, forgetCalled, advance };
  return {
    turn: (request) => createTurn(line, request, arrivals++),
    waiting: () =>
      tickets.inOrder().map(({ category, requestId, waitedMs, isLive = false }) => ({
        category,
        requestId,
        waitedMs: Math.round(waitedMs()),
        isLive,
      })),
    close() {
      isClosed = true;
      const ended = tickets.inOrder().filter(({ isLive }) => !isLive);
      for (const ticket of ended) ticket.fail(new GatewayError('shutting_down', {}));
    },
  };
}

function createTurn(line: Line, request: TurnRequest, arrival: number): Turn {
  const { slot, tickets, now } = line;
  let leftMs = request.waitMs;
  /** A second wait has the round of the first one. */
  let round = 0;

  const wait = <T>(signal: AbortSignal, ready: boolean, come: () => T): Promise<T> =>
    new Promise((resolve, reject) => {
      const since = now();
      const sinceMs = () => now() - since;
      const settle = (how: () => void) => {
        tickets.leave(ticket);
        clearTimeout(late);
        leaving[Symbol.dispose]();
        leftMs -= sinceMs();
        round = ticket.round;
        request.onWaited(sinceMs());
        how();
      };
      const ticket: Ticket = {
        ...request,
        round,
        arrival,
        ready,
        waitedMs: () => request.waitMs - leftMs + sinceMs(),
        go() {
          tickets.served(ticket);
          settle(() => resolve(come()));
        },
        fail: (reason) => settle(() => reject(reason)),
        timeOut: () => (slot.isFree() ? ticket.go() : ticket.fail(busy(slot))),
      };
      tickets.enter(ticket);
      const late = setTimeout(ticket.timeOut, leftMs);
      const leaving = onAbort(signal, () => ticket.fail(signal.reason));
    });
  const mayWait = () => leftMs > 0 && (request.isLive || !line.isClosed()) && tickets.makeRoom(request);

  const turn: Turn = {
    async comesUp(signal) {
      signal.throwIfAborted();
      const isNext = slot.isFree() && tickets.inOrder().length === 0;
      if (isNext || !mayWait()) return slot.assertFree();
      await wait(signal, false, () => line.call(turn));
    },
    async take(signal) {
      line.forgetCalled(turn);
      signal.throwIfAborted();
      const take = () => {
        const hold = slot.take(request.category, request.requestId);
        tickets.hadSlot(request.category);
        return hold;
      };
      // A request with a body does not wait at a free slot.
      return slot.isFree() || !mayWait() ? take() : wait(signal, true, take);
    },
    end() {
      line.forgetCalled(turn);
      line.advance();
    },
  };
  return turn;
}

/** The refusal of a slot that is held. */
function busy(slot: Slot): unknown {
  try {
    slot.assertFree();
  } catch (refusal) {
    return refusal;
  }
  return new Error('the slot is free');
}
