/** The places for live sessions, of all protocols together. The one that has been idle for longest gives way. */
import { GatewayError } from '../errors.ts';
import { BoundedPlaces, type Holder, largestBy } from './bounded-places.ts';

export const LIVE_PROTOCOLS = ['realtime', 'wyoming'] as const;

/** What a session does, for its operator. */
export interface LiveStatus {
  kind: 'transcription' | 'conversation';
  /** `hearing`: somebody speaks. */
  state: 'waiting' | 'hearing' | 'transcribing' | 'answering';
  /** What went wrong last, however long ago. */
  lastError: { code: string; says: string; at: Date } | null;
  /** How long the stages of the last answer took, ms, in their order; null before the first one. */
  lastAnswer: { status: string; stages: readonly { name: string; ms: number }[] } | null;
}

export interface LiveSession extends Holder {
  protocol: (typeof LIVE_PROTOCOLS)[number];
  /** The time for which the client has sent nothing to hear. */
  idleMs(): number;
  status(): LiveStatus;
  /** Ends the session. Its place is already free. */
  giveUp(reason: GatewayError): void;
}

export type LivePlaces = BoundedPlaces<LiveSession>;

export const tooManySessions = () => new GatewayError('too_many_sessions', {});

export function createLivePlaces(most: number): LivePlaces {
  return new BoundedPlaces<LiveSession>({
    most,
    choose: (candidates) => largestBy(candidates, (session) => session.idleMs()),
    evict: (session) => session.giveUp(tooManySessions()),
  });
}
