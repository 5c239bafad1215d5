/**
 * The rate limit of wrong API keys (429, brute force): so many different ones may come from one network in a minute,
 * and then each further wrong one is a 429. A key that is sent again counts once, because a program with an old key
 * sends it with every request. A right key is served all the same: behind a NAT or a proxy all clients have one
 * address, and one of them must not shut out the others. It does not use `BoundedPlaces`, because nobody holds
 * anything here.
 */
import { GatewayError } from '../errors.ts';
import type { Budgets } from './budgets.ts';
import { networkOf } from './network.ts';

interface Guesses {
  digests: Set<string>;
  endsAt: number;
}

/**
 * Returns a function that counts a wrong key. The digest stands for the key, so that no key stays in memory.
 * It throws GatewayError `too_many_keys` when too many others came from the address before.
 * @param now the time in ms; only differences count
 */
export function createKeyGuesses(
  { wrongKeys, wrongKeysMs, addresses }: Budgets['access'],
  now = () => performance.now(),
): (address: string, digest: string) => void {
  /** By network, the one that was silent longest first. */
  const guesses = new Map<string, Guesses>();
  return (address, digest) => {
    const network = networkOf(address);
    const before = guesses.get(network);
    const current =
      before !== undefined && before.endsAt > now()
        ? before
        : { digests: new Set<string>(), endsAt: now() + wrongKeysMs };
    guesses.delete(network);
    guesses.set(network, current);
    const [oldest = ''] = guesses.keys();
    if (guesses.size > addresses) guesses.delete(oldest);
    if (current.digests.has(digest)) return;
    if (current.digests.size >= wrongKeys) {
      const seconds = Math.ceil((current.endsAt - now()) / 1000);
      throw new GatewayError('too_many_keys', { seconds }, { retryAfterSec: seconds });
    }
    current.digests.add(digest);
  };
}
