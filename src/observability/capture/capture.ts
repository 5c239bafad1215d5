/**
 * Bodies of requests and answers on disk, for replay. Off the request path: no call here waits or throws, one
 * file is open at a time however many requests run, and what waits for the disk is bounded over all captures.
 *
 * Everything that touches the disk is a job of one queue. So jobs never run at once, and a disk that hangs holds
 * one thread of the pool, not four.
 */
import { resolve } from 'node:path';
import type { Logger } from 'winston';
import {
  appendBody,
  BODIES,
  type Body,
  createBodies,
  createFolderMaker,
  listCaptures,
  removeCapture,
  removeEmptyDays,
  writeMeta,
} from './capture-folder.ts';
import { type CaptureMeta, renderMeta } from './capture-meta.ts';
import {
  createBudget,
  createJobQueue,
  createWaitingBody,
  type Job,
  type WaitingBody,
} from './capture-queue.ts';

export interface CaptureWriter {
  /** The chunk is kept, not copied: it must not change afterwards. */
  request(chunk: Buffer): void;
  response(chunk: Buffer): void;
  /** The exchange is over. Without it a capture is never complete. */
  finish(meta: CaptureMeta): void;
  /** The capture is not wanted after all. Ignored once finished. */
  abandon(): void;
}

export interface Capture {
  /** @param at arrival; its local day is the folder */
  begin(requestId: string, at: Date): CaptureWriter;
  /** True while something is still to be written below this path. */
  isOpen(path: string): boolean;
  /** Removes every capture, those being written too; returns how many. */
  clear(): Promise<number>;
  /** Reads the whole folder: not for every second. */
  usage(): Promise<{ bytes: number; captures: number }>;
  /** Writes what is finished, removes what is not. After it nothing is captured. */
  close(): Promise<void>;
}

export interface CaptureOptions {
  dir: string;
  log: Logger;
  /** The disk refused, every open capture is gone; turn the toggle off here. A later begin() tries again. */
  onFailure?(error: Error): void;
  /** Memory of all open captures, 16 KiB each and what waits for the disk. A chunk beyond it is cut off its
   * capture, a request beyond it is not captured. */
  maxWaitingBytes?: number;
}

/** Of an open capture, mostly the headers of its meta data: captures that wait for a stuck disk are bounded too. */
const CAPTURE_OVERHEAD = 16 * 1024;

interface Open {
  readonly requestId: string;
  readonly at: Date;
  /** Null until it is made. */
  path: string | null;
  readonly bodies: Readonly<Record<Body, WaitingBody>>;
  meta: CaptureMeta | null;
  abandoned: boolean;
  /** Stable, so that the queue holds it once. */
  readonly job: Job;
}

export function createCapture(options: CaptureOptions): Capture {
  const { log, maxWaitingBytes = 64 * 1024 * 1024 } = options;
  const dir = resolve(options.dir);
  const open = new Set<Open>();
  const queue = createJobQueue();
  const budget = createBudget(maxWaitingBytes);
  const makeFolder = createFolderMaker(dir);
  let skipping = false;
  let closed = false;

  function begin(requestId: string, at: Date): CaptureWriter {
    if (closed) return NOTHING;
    if (!budget.take(CAPTURE_OVERHEAD)) {
      if (!skipping)
        log.warn('Too much waits for the disk of the captures; some requests are left out', { dir });
      skipping = true;
      return NOTHING;
    }
    skipping = false;
    const capture: Open = {
      requestId,
      at,
      path: null,
      bodies: { request: createWaitingBody(budget), response: createWaitingBody(budget) },
      meta: null,
      abandoned: false,
      job: () => advance(capture),
    };
    open.add(capture);
    queue.add(capture.job);
    const live = () => open.has(capture) && !capture.abandoned && capture.meta === null;
    const accept = (body: Body) => (chunk: Buffer) => {
      if (live() && capture.bodies[body].push(chunk)) queue.add(capture.job);
    };
    return {
      request: accept('request'),
      response: accept('response'),
      finish(meta) {
        if (!live()) return;
        capture.meta = meta;
        queue.add(capture.job);
      },
      abandon() {
        if (live()) abandon(capture);
      },
    };
  }

  function abandon(capture: Open): void {
    capture.abandoned = true;
    forget(capture);
    queue.add(capture.job);
  }

  /** Nothing more of it will be written. */
  function forget(capture: Open): void {
    if (!open.delete(capture)) return;
    budget.giveBack(CAPTURE_OVERHEAD);
    for (const body of BODIES) capture.bodies[body].clear();
  }

  async function advance(capture: Open): Promise<void> {
    try {
      if (capture.abandoned && capture.path !== null) await removeCapture(capture.path);
      if (!open.has(capture)) return;
      if (capture.path === null) {
        capture.path = await makeFolder(capture.requestId, capture.at);
        await createBodies(capture.path);
      }
      await write(capture, capture.path);
    } catch (error) {
      const removed = capture.path !== null && (error as NodeJS.ErrnoException).code === 'ENOENT';
      // The folder was emptied by hand: this capture is lost, the disk is well.
      if (removed) forget(capture);
      else await fail(error as Error);
    }
  }

  async function write(capture: Open, path: string): Promise<void> {
    const { bodies } = capture;
    for (const body of BODIES) await bodies[body].flush((batch) => appendBody(path, body, batch));
    if (!open.has(capture)) return; // abandoned meanwhile: its job is queued again
    if (BODIES.some((body) => !bodies[body].isEmpty)) queue.add(capture.job);
    else if (capture.meta !== null) {
      const truncated = BODIES.some((body) => bodies[body].isCut);
      await writeMeta(path, renderMeta(capture.meta, truncated));
      forget(capture);
    }
  }

  async function fail(error: Error): Promise<void> {
    const halves = [...open];
    for (const capture of halves) forget(capture);
    log.error('Payload capture is switched off: the disk refuses', { dir, error: String(error) });
    options.onFailure?.(error);
    for (const { path } of halves) {
      if (path !== null) await removeCapture(path).catch(ignore);
    }
  }

  async function removeAll(): Promise<number> {
    let count = 0;
    for (const capture of [...open]) forget(capture);
    for (const { path } of await listCaptures(dir)) {
      await removeCapture(path);
      count += 1;
    }
    await removeEmptyDays(dir);
    return count;
  }

  return {
    begin,
    isOpen: (path) => [...open].some((capture) => capture.path === resolve(path)),
    clear: () => new Promise((resolved, rejected) => queue.add(() => removeAll().then(resolved, rejected))),
    async usage() {
      const captures = await listCaptures(dir);
      return { captures: captures.length, bytes: captures.reduce((sum, { bytes }) => sum + bytes, 0) };
    },
    async close() {
      closed = true;
      for (const capture of [...open]) {
        if (capture.meta === null) abandon(capture);
      }
      await queue.idle();
    },
  };
}

const ignore = () => undefined;
const NOTHING: CaptureWriter = { request: ignore, response: ignore, finish: ignore, abandon: ignore };
