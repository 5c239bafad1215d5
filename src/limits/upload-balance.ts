/**
 * How far an upload is behind the least rate, at any moment. The time for which its client is waited for counts against
 * it, and its bytes count for it, also those that nothing has read yet. The lead has a limit: an upload that came fast
 * and then stops is soon behind, however much it has sent.
 */

export interface UploadBalance {
  /** Counts bytes of the body that were read. */
  received(bytes: number): void;
  /** Counts the time from now on. @param aheadMs the lead that it begins with */
  restart(aheadMs: number): void;
  /** Nothing more is waited for. */
  end(): void;
  /**
   * In milliseconds at the least rate, negative for a lead; null after the end.
   * @param unread bytes that came and were not read yet
   */
  behindMs(unread: number): number | null;
}

/** @param now the time in ms; only differences count */
export function createUploadBalance(
  { leastBytesPerSec, leadMs }: { leastBytesPerSec: number; leadMs: number },
  now = () => performance.now(),
): UploadBalance {
  let behindMs = 0;
  let countedAt = now();
  let isOver = false;
  const after = (bytes: number) =>
    Math.max(-leadMs, behindMs + (now() - countedAt) - (bytes / leastBytesPerSec) * 1000);
  return {
    received(bytes) {
      behindMs = after(bytes);
      countedAt = now();
    },
    restart(aheadMs) {
      behindMs = -aheadMs;
      countedAt = now();
    },
    end() {
      isOver = true;
    },
    behindMs: (unread) => (isOver ? null : after(unread)),
  };
}
