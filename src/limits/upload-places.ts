/**
 * The places for uploads. A request has one from before its body is read until its file is removed, so that what
 * uploads hold, and what is done with them before the slot, is bounded by their number. When all places are taken, a
 * new upload may still come in for another that is being received:
 *
 * - The address that holds most places gives one up to an address that holds at least two fewer.
 * - Otherwise the upload that is furthest behind the least rate gives its place up to one that keeps the rate. None
 *   gives way to an address that holds more places than its own.
 *
 * So one address cannot shut out the others, and clients that send slowly cannot shut out those that send. An upload
 * that has arrived whole always keeps its place.
 */
import { setImmediate, setTimeout } from 'node:timers/promises';
import { GatewayError } from '../errors.ts';
import { givingWay, shares } from './network.ts';

export interface Claim {
  /** The client, as `networkOf` names it. */
  network: string;
  /** How far the upload is behind the least rate, in milliseconds; null when all of it has arrived. */
  behindMs(): number | null;
  /** Ends the upload. Its place is already another's. */
  giveUp(reason: GatewayError): void;
  /** Aborts when the client leaves. */
  signal: AbortSignal;
}

export interface UploadPlace {
  /** Frees the place. Idempotent. */
  release(): void;
}

export interface UploadPlaces {
  /** @throws GatewayError `overloaded` when no other upload gives way; `signal.reason` when the client left */
  take(claim: Claim): Promise<UploadPlace>;
}

/** @param options.lookMs how long a new upload waits for its own bytes before it is compared with the others */
export function createUploadPlaces(options: { maxUploads: number; lookMs: number }): UploadPlaces {
  const taken = new Set<Claim>();

  function enter(claim: Claim): UploadPlace {
    taken.add(claim);
    return { release: () => void taken.delete(claim) };
  }

  function replace(claim: Claim, reason: GatewayError): void {
    taken.delete(claim);
    claim.giveUp(reason);
  }

  /** Makes room for an address that holds much less than another one. */
  function share(claim: Claim): boolean {
    const receiving = [...taken].filter((other) => other.behindMs() !== null);
    const furthest = furthestBehind(givingWay(receiving, shares(taken), claim));
    if (furthest !== null) replace(furthest.claim, new GatewayError('overloaded', {}));
    return furthest !== null;
  }

  /** Makes room for an upload that keeps the least rate where another one does not. */
  function overtake(claim: Claim): boolean {
    if ((claim.behindMs() ?? 0) > 0) return false;
    const held = shares(taken);
    const furthest = furthestBehind([...taken].filter((other) => held(other) >= held(claim)));
    if (furthest === null || furthest.ms <= 0) return false;
    replace(furthest.claim, new GatewayError('request_timeout', {}));
    return true;
  }

  return {
    async take(claim) {
      if (taken.size < options.maxUploads || share(claim)) return enter(claim);
      // The head of a request often comes alone, and what has come is read after the timers of a turn have run.
      await setTimeout(options.lookMs);
      await setImmediate();
      claim.signal.throwIfAborted();
      if (taken.size < options.maxUploads || share(claim) || overtake(claim)) return enter(claim);
      throw new GatewayError('overloaded', {});
    },
  };
}

function furthestBehind(claims: readonly Claim[]): { claim: Claim; ms: number } | null {
  let furthest: { claim: Claim; ms: number } | null = null;
  for (const claim of claims) {
    const ms = claim.behindMs();
    if (ms !== null && ms > (furthest?.ms ?? Number.NEGATIVE_INFINITY)) furthest = { claim, ms };
  }
  return furthest;
}

/**
 * How far an upload is behind the least rate, at any moment. The time for which its client is waited for counts against
 * it, and its bytes count for it, also those that nothing has read yet. The lead has a limit: an upload that came fast
 * and then stops is soon behind, however much it has sent.
 */
export interface UploadBalance {
  /** Counts bytes of the body that were read. */
  received(bytes: number): void;
  /** Counts the time from now on. @param aheadMs the lead that it begins with */
  restart(aheadMs: number): void;
  /** Nothing more is waited for. */
  end(): void;
  /**
   * In milliseconds at the least rate, negative for a lead; null after the end.
   * @param unread bytes that came and were not read yet
   */
  behindMs(unread: number): number | null;
}

/** @param now the time in ms; only differences count */
export function createUploadBalance(
  { leastBytesPerSec, leadMs }: { leastBytesPerSec: number; leadMs: number },
  now = () => performance.now(),
): UploadBalance {
  let behindMs = 0;
  let countedAt = now();
  let isOver = false;
  const after = (bytes: number) =>
    Math.max(-leadMs, behindMs + (now() - countedAt) - (bytes / leastBytesPerSec) * 1000);
  return {
    received(bytes) {
      behindMs = after(bytes);
      countedAt = now();
    },
    restart(aheadMs) {
      behindMs = -aheadMs;
      countedAt = now();
    },
    end() {
      isOver = true;
    },
    behindMs: (unread) => (isOver ? null : after(unread)),
  };
}
