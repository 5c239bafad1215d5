/** Keeps what takes long to find out, so that requests in a row do not all wait for it. */

/** Returns a function that asks, and gives the same answer until it is `ms` old. Calls meanwhile wait for one answer. */
export function keptFor<T>(
  ms: number,
  ask: () => Promise<T>,
  now = () => performance.now(),
): () => Promise<T> {
  let kept: { answer: Promise<T>; until: number } | null = null;
  return () => {
    if (kept === null || now() >= kept.until) {
      const fresh = { answer: ask(), until: Number.POSITIVE_INFINITY };
      kept = fresh;
      const end = (until: number) => {
        fresh.until = until;
      };
      fresh.answer.then(
        () => end(now() + ms),
        () => end(0), // a failure is not kept
      );
    }
    return kept.answer;
  };
}
