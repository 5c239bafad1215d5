/** Captures as the admin pages see them: the newest of a request, what they take up, one sent again. */
import type { Capture } from '../observability/capture/capture.ts';
import { findCapture } from '../observability/capture/capture-folder.ts';
import { replay } from '../observability/capture/replay.ts';
import type { CaptureActions } from './deps.ts';

export interface CaptureActionsOptions {
  dir: string;
  capture: Capture;
  /** Where this gateway answers; null before it listens. */
  base(): string | null;
  apiKey: string | undefined;
  now?: () => number;
}

const USAGE_KEPT_MS = 5000;
/** Of a folder that cannot be read; what writes to it says why. */
const NOTHING = { bytes: 0, captures: 0 };

export function createCaptureActions(options: CaptureActionsOptions): CaptureActions {
  const { dir, capture, now = () => performance.now() } = options;
  let usage: { answer: ReturnType<Capture['usage']>; until: number } | null = null;

  return {
    dir,
    clear() {
      usage = null;
      return capture.clear();
    },
    usage() {
      if (usage === null || now() >= usage.until)
        usage = { answer: capture.usage().catch(() => NOTHING), until: now() + USAGE_KEPT_MS };
      return usage.answer;
    },
    find: (requestId) => findCapture(dir, requestId),
    async replay(stored) {
      const base = options.base();
      if (base === null) throw new Error('The gateway does not listen');
      return replay(stored.path, base, options.apiKey);
    },
  };
}
