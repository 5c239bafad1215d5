/**
 * Random tokens that stand for something for a while: a session of the dashboard, the settings of a live session (a
 * short-lived key, `ek_`). They are kept in memory as digests only, end at their time or with the process, and say
 * nothing about a key.
 */
import { createHash, randomBytes } from 'node:crypto';
import { BoundedPlaces } from '../../limits/bounded-places.ts';

export type Tokens<T> = ReturnType<typeof createTokens<T>>;

interface Token<T> {
  digest: string;
  value: T;
  network: string;
  endsAt: number;
}

/**
 * @param options the most tokens at a time, and what each begins with
 * @param now the time in ms; only differences count
 */
export function createTokens<T>(
  { most, prefix = '' }: { most: number; prefix?: string },
  now = () => performance.now(),
) {
  const issued: BoundedPlaces<Token<T>> = new BoundedPlaces({
    most,
    choose([oldest], { network }) {
      const all = issued.holders();
      return oldest ?? all.find((one) => one.network === network) ?? all[0];
    },
    evict: () => undefined, // it is not found any more
  });
  const digestOf = (token: string) => createHash('sha256').update(token).digest('base64');
  const find = (token: string) => {
    if (!token.startsWith(prefix)) return undefined;
    const digest = digestOf(token); // a search by digest tells nothing by its time
    return issued.holders().find((one) => one.digest === digest && one.endsAt > now());
  };

  return {
    /**
     * Makes a token. When there are too many, the oldest one ends: that of the network which holds most, if it holds at
     * least two more than the newcomer's, or else one of the newcomer's own.
     * @param network the client, as `networkOf` names it
     */
    issue(value: T, { network, lifetimeMs }: { network: string; lifetimeMs: number }): string {
      for (const old of issued.holders()) if (old.endsAt <= now()) issued.release(old);
      const token = prefix + randomBytes(32).toString('base64url');
      issued.take({ digest: digestOf(token), value, network, endsAt: now() + lifetimeMs });
      return token;
    },
    /** What the token stands for; undefined when it is unknown or over. */
    find: (token: string) => find(token)?.value,
    end(token: string): void {
      const found = find(token);
      if (found !== undefined) issued.release(found);
    },
  };
}
