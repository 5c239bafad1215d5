/** Captures as the admin pages see them: the newest of a request, what they take up, one sent again. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Capture } from '../observability/capture/capture.ts';
import { CAPTURE_FILES, captureName } from '../observability/capture/capture-folder.ts';
import { replay } from '../observability/capture/replay.ts';
import type { CaptureActions, StoredCapture } from './deps.ts';

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
    async find(requestId) {
      const days = (await readdir(dir).catch(() => [])).sort().reverse();
      for (const day of days) {
        const newest = await newestIn(join(dir, day), captureName(requestId));
        if (newest !== null) return newest;
      }
      return null;
    },
    async replay(stored) {
      const base = options.base();
      if (base === null) throw new Error('The gateway does not listen');
      return replay(stored.path, base, options.apiKey);
    },
  };
}

/** A request id sent again has `-2`, `-3`… after it; the highest is the newest. */
async function newestIn(day: string, name: string): Promise<StoredCapture | null> {
  const repeatOf = (entry: string) => {
    if (entry === name) return 1;
    const [before, after = ''] = [entry.slice(0, name.length + 1), entry.slice(name.length + 1)];
    return before === `${name}-` && /^\d+$/.test(after) ? Number(after) : 0;
  };
  const entries = (await readdir(day).catch(() => []))
    .filter((entry) => repeatOf(entry) > 0)
    .sort((a, b) => repeatOf(b) - repeatOf(a));
  for (const entry of entries) {
    const stored = await read(join(day, entry)).catch(() => null);
    if (stored !== null) return stored;
  }
  return null;
}

async function read(path: string): Promise<StoredCapture> {
  const sizeOf = async (file: string) => (await stat(join(path, file))).size;
  return {
    path,
    meta: JSON.parse(await readFile(join(path, CAPTURE_FILES.meta), 'utf8')),
    requestBytes: await sizeOf(CAPTURE_FILES.request),
    responseBytes: await sizeOf(CAPTURE_FILES.response),
  };
}
