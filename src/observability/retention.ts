/** What has to go so that the access log and the captures stay within an age and a size. */

export interface Stored {
  /** Epoch milliseconds. */
  at: number;
  bytes: number;
  /** True while it is being written. It counts towards the size, but is never removed. */
  busy: boolean;
}

export interface RetentionLimits {
  maxAgeMs: number;
  maxBytes: number;
}

/**
 * All that is older than the limit, then the oldest until the rest is within the size. Of those with the same time,
 * the first one in the list goes first.
 */
export function planRemoval<T extends Stored>(
  stored: readonly T[],
  { maxAgeMs, maxBytes }: RetentionLimits,
  now: number,
): T[] {
  let bytes = stored.reduce((sum, one) => sum + one.bytes, 0);
  const oldestFirst = stored.filter(({ busy }) => !busy).toSorted((a, b) => a.at - b.at);
  return oldestFirst.filter((one) => {
    const isOld = now - one.at > maxAgeMs;
    if (!isOld && bytes <= maxBytes) return false;
    bytes -= one.bytes;
    return true;
  });
}
