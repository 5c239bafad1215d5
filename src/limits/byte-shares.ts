/**
 * Bytes that all bodies share: the memory for the text fields of forms, the space for files. When they are used up, the
 * largest body of the crowded address gives way. A body of the same address gives way too, if it is far larger than the
 * new one, so that a body which never ends shuts nobody out. A body that has arrived whole keeps what it holds.
 */
import { BoundedPlaces, type Holder, largestBy, mustShare } from './bounded-places.ts';

export interface Body extends Holder {
  /** True when all of it has arrived. */
  isWhole: boolean;
  /** Refuses the body, whose bytes are already another's. */
  giveWay(): void;
}

export type ByteShares = BoundedPlaces<Body>;

export function createByteShares(maxBytes: number): ByteShares {
  const shares: ByteShares = new BoundedPlaces({
    most: maxBytes,
    unit: 'bytes',
    mayGiveWay: ({ isWhole }) => !isWhole,
    choose(crowded, { network }, after) {
      const size = (body: Body) => shares.amountOf(body);
      if (crowded.length > 0) return largestBy(crowded, size);
      const own = shares.holders().filter((body) => body.network === network && !body.isWhole);
      const largest = largestBy(own, size);
      return largest !== undefined && mustShare.bytes(size(largest), after) ? largest : undefined;
    },
    evict: (body) => body.giveWay(),
  });
  return shares;
}
