/** The captures for the admin pages: find the newest one of a request, measure all, and replay one. */
import { cachedFor } from '../cached-answer.ts';
import type { Capture } from '../capture/capture.ts';
import { findCapture, type StoredCapture } from '../capture/capture-folder.ts';
import { replay } from '../capture/replay.ts';
import { GatewayError } from '../errors.ts';

export interface CaptureActionsOptions {
  dir: string;
  capture: Capture;
  /** The base URL of this gateway; null before it listens. */
  base(): string | null;
  apiKey: string | undefined;
  /** Why capture switched itself off, and when; null unless it did. */
  failure(): { at: Date; why: string } | null;
  now?: () => number;
}

const USAGE_KEPT_MS = 5000;
/** The usage of a folder that cannot be read. The capture logs why when it writes to the folder. */
const NOTHING = { bytes: 0, captures: 0 };

export type CaptureActions = ReturnType<typeof createCaptureActions>;

export function createCaptureActions(options: CaptureActionsOptions) {
  const { dir, capture, failure, now = () => performance.now() } = options;
  let replaying = false;
  const measured = () => cachedFor(USAGE_KEPT_MS, () => capture.usage().catch(() => NOTHING), now);
  let usage = measured();

  return {
    dir,
    failure,
    /** Deletes every capture and returns how many there were. */
    clear(): Promise<number> {
      usage = measured();
      return capture.clear();
    },
    /** Measures the captures. The result is kept for some seconds, so that not every poll reads the folder. */
    usage: () => usage(),
    /** The newest complete capture of a request; null when there is none. */
    find: (requestId: string) => findCapture(dir, requestId),
    /**
     * Sends the captured request to this gateway again and compares the answers.
     * @throws GatewayError `overloaded` while another one is replayed
     */
    async replay(stored: StoredCapture, signal: AbortSignal) {
      const base = options.base();
      if (base === null) throw new Error('The gateway does not listen yet');
      // Each one is a request of its own, with an upload of any size, and the slot serves one at a time anyway.
      if (replaying) throw new GatewayError('overloaded', {});
      replaying = true;
      try {
        return await replay(stored.path, base, { apiKey: options.apiKey, signal });
      } catch (error) {
        signal.throwIfAborted();
        throw (error as NodeJS.ErrnoException).code === 'ENOENT'
          ? new GatewayError('capture_not_found', {})
          : error;
      } finally {
        replaying = false;
      }
    },
  };
}
