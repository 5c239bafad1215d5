/**
 * Bytes that all bodies share: the memory for the text fields of forms, the space for files. When they are used up, the
 * largest body of the address that holds most is refused. So is one of the same address, if it is far larger than the
 * new one, so that a body which never ends shuts nobody out. A body that has arrived whole keeps what it holds.
 */
import { BoundedPlaces, type Holder, largestBy, mustShare } from './bounded-places.ts';

export interface Body extends Holder {
  /** True when all of it has arrived. */
  isWhole: boolean;
  /** Refuses the body, whose bytes are already another's. */
  refuse(): void;
}

export type ByteShares = BoundedPlaces<Body>;

export function createByteShares(maxBytes: number): ByteShares {
  const shares: ByteShares = new BoundedPlaces({
    most: maxBytes,
    unit: 'bytes',
    isEvictable: ({ isWhole }) => !isWhole,
    choose(candidates, { network }, after) {
      const size = (body: Body) => shares.amountOf(body);
      if (candidates.length > 0) return largestBy(candidates, size);
      const own = shares.holders().filter((body) => body.network === network && !body.isWhole);
      const largest = largestBy(own, size);
      return largest !== undefined && mustShare.bytes(size(largest), after) ? largest : undefined;
    },
    evict: (body) => body.refuse(),
  });
  return shares;
}
