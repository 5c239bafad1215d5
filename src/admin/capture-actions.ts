/** The captures for the admin pages: find the newest one of a request, measure all, and replay one. */

import type { Capture } from '../capture/capture.ts';
import { findCapture } from '../capture/capture-folder.ts';
import { replay } from '../capture/replay.ts';
import { GatewayError } from '../errors.ts';
import type { CaptureActions } from './deps.ts';

export interface CaptureActionsOptions {
  dir: string;
  capture: Capture;
  /** The base URL of this gateway; null before it listens. */
  base(): string | null;
  apiKey: string | undefined;
  failure: CaptureActions['failure'];
  now?: () => number;
}

const USAGE_KEPT_MS = 5000;
/** The usage of a folder that cannot be read. The capture logs why when it writes to the folder. */
const NOTHING = { bytes: 0, captures: 0 };

export function createCaptureActions(options: CaptureActionsOptions): CaptureActions {
  const { dir, capture, failure, now = () => performance.now() } = options;
  let replaying = false;
  let usage: { answer: ReturnType<Capture['usage']>; until: number } | null = null;

  return {
    dir,
    failure,
    clear() {
      usage = null;
      return capture.clear();
    },
    usage() {
      if (usage === null || now() >= usage.until) {
        const answer = capture.usage().catch(() => NOTHING);
        // A large folder takes longer to read than the answer is kept, and is then not read twice at once.
        const scan = { answer, until: Number.POSITIVE_INFINITY };
        void answer.then(() => (scan.until = now() + USAGE_KEPT_MS));
        usage = scan;
      }
      return usage.answer;
    },
    find: (requestId) => findCapture(dir, requestId),
    async replay(stored, signal) {
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
