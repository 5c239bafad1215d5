/**
 * The places for uploads. A request has one from before its body is read until its file is removed, so that what
 * uploads hold, and what is done with them before the slot, is bounded by their number. When all are taken, an upload of
 * the address that holds most is evicted: the one that is furthest behind the least rate. Otherwise one that does not
 * keep the rate is evicted for one that does, with a timeout (408), but never for an address that holds more. So one
 * address cannot shut out the others, and slow clients cannot shut out those that send. An upload that has arrived whole
 * always keeps its place.
 */
import { setImmediate, setTimeout } from 'node:timers/promises';
import { GatewayError } from '../errors.ts';
import { BoundedPlaces, type Holder, largestBy } from './bounded-places.ts';

export interface Claim extends Holder {
  /** How far the upload is behind the least rate, in milliseconds; null when all of it has arrived. */
  behindMs(): number | null;
  /** Ends the upload. Its place is already another's. */
  giveUp(reason: GatewayError): void;
  /** Aborts when the client leaves. */
  signal: AbortSignal;
}

export type UploadPlaces = ReturnType<typeof createUploadPlaces>;

/** @param options.graceMs how long a new upload waits for its own bytes before it is compared with the others */
export function createUploadPlaces(options: { maxUploads: number; graceMs: number }) {
  const places = new BoundedPlaces<Claim>({
    most: options.maxUploads,
    isEvictable: (claim) => claim.behindMs() !== null,
    choose: furthestBehind,
    evict: (claim) => claim.giveUp(new GatewayError('overloaded', {})),
  });

  /** Ends an upload that does not keep the least rate for one that does. */
  function overtake(claim: Claim): void {
    if ((claim.behindMs() ?? 0) > 0) return;
    const held = places.shares();
    const furthest = furthestBehind(places.holders().filter((other) => held(other) >= held(claim)));
    if (furthest === undefined || (furthest.behindMs() ?? 0) <= 0) return;
    places.release(furthest);
    furthest.giveUp(new GatewayError('request_timeout', {}));
  }

  return {
    /** @throws GatewayError `overloaded` when no other upload gives way; `signal.reason` when the client left */
    async take(claim: Claim): Promise<void> {
      if (places.take(claim)) return;
      // The head of a request often comes alone, and what has come is read after the timers of a turn have run.
      await setTimeout(options.graceMs);
      await setImmediate();
      claim.signal.throwIfAborted();
      if (places.take(claim)) return;
      overtake(claim);
      if (!places.take(claim)) throw new GatewayError('overloaded', {});
    },
    /** Frees the place. Idempotent. */
    release: (claim: Claim) => places.release(claim),
    /** Those that have a place, the oldest first. */
    holders: () => places.holders(),
  };
}

/** An upload that has arrived whole is never behind. */
function furthestBehind(claims: readonly Claim[]): Claim | undefined {
  return largestBy(claims, (claim) => claim.behindMs() ?? Number.NEGATIVE_INFINITY);
}

/**
 * How far an upload is behind the least rate, at any moment. The time for which its client is waited for counts against
 * it, and its bytes count for it, also those that nothing has read yet. The lead has a limit: an upload that came fast
 * and then stops is soon behind, however much it has sent.
 */
export type UploadBalance = ReturnType<typeof createUploadBalance>;

/** @param now the time in ms; only differences count */
export function createUploadBalance(
  { leastBytesPerSec, leadMs }: { leastBytesPerSec: number; leadMs: number },
  now = () => performance.now(),
) {
  let behindMs = 0;
  let countedAt = now();
  let isOver = false;
  const after = (bytes: number) =>
    Math.max(-leadMs, behindMs + (now() - countedAt) - (bytes / leastBytesPerSec) * 1000);
  return {
    /** Counts bytes of the body that were read. */
    received(bytes: number): void {
      behindMs = after(bytes);
      countedAt = now();
    },
    /** Counts the time from now on. @param aheadMs the lead that it begins with */
    restart(aheadMs: number): void {
      behindMs = -aheadMs;
      countedAt = now();
    },
    /** Nothing more is waited for. */
    end(): void {
      isOver = true;
    },
    /**
     * In milliseconds at the least rate, negative for a lead; null after the end.
     * @param unread bytes that came and were not read yet
     */
    behindMs: (unread: number) => (isOver ? null : after(unread)),
  };
}
