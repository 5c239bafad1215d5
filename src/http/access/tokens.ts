/**
 * Random tokens that stand for something for a while: a session of the dashboard, the settings of a live session. They
 * are kept in memory as digests only, end at their time or with the process, and say nothing about a key.
 */
import { createHash, randomBytes } from 'node:crypto';
import { givingWay, shares } from '../../limits/network.ts';

export interface Tokens<T> {
  /**
   * Makes a token. When there are too many, the oldest one ends: that of the network which holds most, if it holds at
   * least two more than the newcomer's, or else one of the newcomer's own.
   * @param network the client, as `networkOf` names it
   */
  issue(value: T, options: { network: string; lifetimeMs: number }): string;
  /** What the token stands for; undefined when it is unknown or over. */
  find(token: string): T | undefined;
  end(token: string): void;
}

/**
 * @param options the most tokens at a time, and what each begins with
 * @param now the time in ms; only differences count
 */
export function createTokens<T>(
  { most, prefix = '' }: { most: number; prefix?: string },
  now = () => performance.now(),
): Tokens<T> {
  /** By the digest of the token, the oldest first. A search by digest tells nothing by its time. */
  const issued = new Map<string, { value: T; network: string; endsAt: number }>();
  const digest = (token: string) => createHash('sha256').update(token).digest('base64');

  function makeRoom(network: string): void {
    if (issued.size < most) return;
    for (const [key, { endsAt }] of issued) if (endsAt <= now()) issued.delete(key);
    if (issued.size < most) return;
    const all = [...issued].map(([key, { network }]) => ({ key, network }));
    const [oldest] = [
      ...givingWay(all, shares(all), { network }),
      ...all.filter((one) => one.network === network),
      ...all,
    ];
    if (oldest !== undefined) issued.delete(oldest.key);
  }

  return {
    issue(value, { network, lifetimeMs }) {
      makeRoom(network);
      const token = prefix + randomBytes(32).toString('base64url');
      issued.set(digest(token), { value, network, endsAt: now() + lifetimeMs });
      return token;
    },
    find(token) {
      if (!token.startsWith(prefix)) return undefined;
      const found = issued.get(digest(token));
      return found !== undefined && found.endsAt > now() ? found.value : undefined;
    },
    end: (token) => void issued.delete(digest(token)),
  };
}
