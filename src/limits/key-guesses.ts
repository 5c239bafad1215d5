/**
 * A rate limit on wrong API keys (429, brute force): how many may come from one address in some time. A right key is
 * refused there, too, until the time is over, because the answer would otherwise tell it from the wrong ones. Other
 * addresses are not affected. Nobody holds a place here, so it is none of the bounded places.
 */

import { GatewayError } from '../errors.ts';
import type { Budgets } from './budgets.ts';
import { networkOf } from './network.ts';

export interface KeyGuesses {
  /** @throws GatewayError `too_many_keys` when too many wrong keys have come from this address */
  assertMayTry(address: string): void;
  wrong(address: string): void;
}

/** @param now the time in ms; only differences count */
export function createKeyGuesses(
  { wrongKeys, wrongKeysMs, addresses }: Budgets['access'],
  now = () => performance.now(),
): KeyGuesses {
  /** The count and its end by address, the oldest first. */
  const counts = new Map<string, { wrong: number; endsAt: number }>();
  const current = (address: string) => {
    const count = counts.get(networkOf(address));
    return count !== undefined && count.endsAt > now() ? count : undefined;
  };
  return {
    assertMayTry(address) {
      const count = current(address);
      if (count === undefined || count.wrong < wrongKeys) return;
      const seconds = Math.ceil((count.endsAt - now()) / 1000);
      throw new GatewayError('too_many_keys', { seconds }, { retryAfterSec: seconds });
    },
    wrong(address) {
      const count = current(address) ?? { wrong: 0, endsAt: now() + wrongKeysMs };
      count.wrong += 1;
      const network = networkOf(address);
      counts.delete(network);
      counts.set(network, count);
      const [oldest = ''] = counts.keys();
      if (counts.size > addresses) counts.delete(oldest);
    },
  };
}
