/**
 * The sessions of the dashboard. A session is a random token that stands for a key: it is kept in memory, ends at its
 * time, with the process, or when its owner signs out, and says nothing about the key.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Budgets } from '../budgets.ts';

export interface Sessions {
  /** Begins a session and returns its token. At the limit the oldest session ends. */
  begin(): string;
  isOpen(token: string): boolean;
  end(token: string): void;
}

/** @param now the time in ms; only differences count */
export function createSessions(
  { lifetimeMs, sessions }: Pick<Budgets['access'], 'lifetimeMs' | 'sessions'>,
  now = () => performance.now(),
): Sessions {
  /** The end of each session by the digest of its token, the oldest first. A search by digest tells nothing by its time. */
  const ends = new Map<string, number>();
  const digest = (token: string) => createHash('sha256').update(token).digest('base64');
  return {
    begin() {
      const token = randomBytes(32).toString('base64url');
      const [oldest] = ends.keys();
      if (oldest !== undefined && ends.size >= sessions) ends.delete(oldest);
      ends.set(digest(token), now() + lifetimeMs);
      return token;
    },
    isOpen: (token) => (ends.get(digest(token)) ?? Number.NEGATIVE_INFINITY) > now(),
    end: (token) => void ends.delete(digest(token)),
  };
}
