/**
 * The places for live sessions, of all protocols together. When all are taken, the address that holds most gives one up
 * to an address that holds at least two fewer: its session that has been idle for longest ends. So one address cannot
 * shut out the others.
 */
import { GatewayError } from '../errors.ts';
import { givingWay, shares } from './network.ts';

export interface LiveSession {
  /** The client, as `networkOf` names it. */
  network: string;
  /** The time for which the client has sent nothing to hear. */
  idleMs(): number;
  /** Ends the session. Its place is already free. */
  giveUp(reason: GatewayError): void;
}

export interface LivePlaces {
  /**
   * Makes sure that a place is free for a session of this network, which enters in the same turn of the event loop.
   * @throws GatewayError `too_many_sessions` when no other session gives way
   */
  makeRoom(network: string): void;
  /** Takes a place. Returns what frees it, which may be called twice. */
  enter(session: LiveSession): () => void;
}

export function createLivePlaces(maxSessions: number): LivePlaces {
  const taken = new Set<LiveSession>();
  return {
    makeRoom(network) {
      if (taken.size < maxSessions) return;
      const [idlest] = givingWay([...taken], shares(taken), { network }).toSorted(
        (a, b) => b.idleMs() - a.idleMs(),
      );
      const full = new GatewayError('too_many_sessions', {});
      if (idlest === undefined) throw full;
      taken.delete(idlest);
      idlest.giveUp(full);
    },
    enter(session) {
      taken.add(session);
      return () => void taken.delete(session);
    },
  };
}
