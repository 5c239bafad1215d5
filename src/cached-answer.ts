/** Keeps what takes long to find out, so that requests in a row do not all wait for it. */

/** Returns a function that asks, and gives the same answer until it is `ms` old. Calls meanwhile wait for one answer. */
export function cachedFor<T>(
  ms: number,
  ask: () => Promise<T>,
  now = () => performance.now(),
): () => Promise<T> {
  let cached: { answer: Promise<T>; until: number } | null = null;
  return () => {
    if (cached === null || now() >= cached.until) {
      const fresh = { answer: ask(), until: Number.POSITIVE_INFINITY };
      cached = fresh;
      const end = (until: number) => {
        fresh.until = until;
      };
      fresh.answer.then(
        () => end(now() + ms),
        () => end(0), // a failure is not cached
      );
    }
    return cached.answer;
  };
}
