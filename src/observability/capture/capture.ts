/**
 * Bodies of requests and answers on disk, for replay. Aside from the request: no call here waits or throws, one
 * file is open at a time however many requests run, and what waits for the disk is bounded over all captures.
 *
 * Everything that touches the disk is a job of one queue. So jobs never run at once, and a disk that hangs holds
 * one thread of the pool, not four.
 */
import { constants } from 'node:fs';
import { appendFile, mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Logger } from 'winston';
import { localDay } from '../local-day.ts';
import {
  CAPTURE_FILES,
  captureName,
  listCaptures,
  removeCapture,
  removeEmptyDays,
} from './capture-folder.ts';
import { type CaptureMeta, renderMeta } from './capture-meta.ts';

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

type Body = 'request' | 'response';
const BODIES: readonly Body[] = ['request', 'response'];
/** Of a chunk, besides its bytes. */
const CHUNK_OVERHEAD = 256;
/** Of an open capture, mostly the headers of its meta data: captures that wait for a stuck disk are bounded too. */
const CAPTURE_OVERHEAD = 16 * 1024;
const BATCH_BYTES = 1024 * 1024;
const REMEMBERED_REPEATS = 1000;
const PLACE_ATTEMPTS = 5;
/** Without O_CREAT: a capture whose folder or file was removed must not come back as half of itself. */
const APPEND = constants.O_WRONLY | constants.O_APPEND;

interface Open {
  /** The folder without the number of a repetition. */
  readonly wanted: string;
  /** Null until it is made. */
  path: string | null;
  readonly waiting: Record<Body, Buffer[]>;
  readonly cut: Set<Body>;
  meta: CaptureMeta | null;
  abandoned: boolean;
  /** Stable, so that the queue holds it once. */
  readonly job: () => Promise<void>;
}

export function createCapture(options: CaptureOptions): Capture {
  const { log, maxWaitingBytes = 64 * 1024 * 1024 } = options;
  const dir = resolve(options.dir);
  const open = new Set<Open>();
  const jobs = new Set<() => Promise<void>>();
  const repeats = new Map<string, number>();
  let waitingBytes = 0;
  let running: Promise<void> | null = null;
  let skipping = false;
  let closed = false;

  async function run(): Promise<void> {
    // The set is walked while it grows; a job that is added again runs again.
    for (const job of jobs) {
      jobs.delete(job);
      await job();
    }
    running = null; // with no await since the last look at the set
  }

  function enqueue(job: () => Promise<void>): void {
    jobs.add(job);
    running ??= run();
  }

  function begin(requestId: string, at: Date): CaptureWriter {
    if (closed) return NOTHING;
    if (waitingBytes + CAPTURE_OVERHEAD > maxWaitingBytes) {
      if (!skipping)
        log.warn('Too much waits for the disk of the captures; some requests are left out', { dir });
      skipping = true;
      return NOTHING;
    }
    skipping = false;
    waitingBytes += CAPTURE_OVERHEAD;
    const capture: Open = {
      wanted: join(dir, localDay(at), captureName(requestId)),
      path: null,
      waiting: { request: [], response: [] },
      cut: new Set(),
      meta: null,
      abandoned: false,
      job: () => advance(capture),
    };
    open.add(capture);
    enqueue(capture.job);
    const live = () => open.has(capture) && !capture.abandoned && capture.meta === null;
    const accept = (body: Body) => (chunk: Buffer) => {
      if (!live() || capture.cut.has(body) || chunk.length === 0) return;
      if (waitingBytes + costOf(chunk) > maxWaitingBytes) {
        capture.cut.add(body);
        return;
      }
      waitingBytes += costOf(chunk);
      capture.waiting[body].push(chunk);
      enqueue(capture.job);
    };
    return {
      request: accept('request'),
      response: accept('response'),
      finish(meta) {
        if (!live()) return;
        capture.meta = meta;
        enqueue(capture.job);
      },
      abandon() {
        if (live()) abandon(capture);
      },
    };
  }

  function abandon(capture: Open): void {
    capture.abandoned = true;
    forget(capture);
    enqueue(capture.job);
  }

  /** Nothing more of it will be written. */
  function forget(capture: Open): void {
    if (!open.delete(capture)) return;
    waitingBytes -= CAPTURE_OVERHEAD;
    for (const body of BODIES) {
      for (const chunk of capture.waiting[body].splice(0)) waitingBytes -= costOf(chunk);
    }
  }

  async function advance(capture: Open): Promise<void> {
    try {
      if (capture.abandoned && capture.path !== null) await removeCapture(capture.path);
      if (!open.has(capture)) return;
      if (capture.path === null) await place(capture);
      for (const body of BODIES) await writeWaiting(capture, body);
      if (!open.has(capture)) return; // abandoned meanwhile: its job is queued again
      if (BODIES.some((body) => capture.waiting[body].length > 0)) enqueue(capture.job);
      else if (capture.meta !== null) {
        await complete(capture, capture.meta);
        forget(capture);
      }
    } catch (error) {
      const removed = capture.path !== null && (error as NodeJS.ErrnoException).code === 'ENOENT';
      // Somebody emptied the folder: this capture is lost, the disk is well.
      if (removed) forget(capture);
      else await fail(error as Error);
    }
  }

  /** Makes the folder; mkdir is what decides between two captures of one id. */
  async function place(capture: Open): Promise<void> {
    let repeat = repeats.get(capture.wanted) ?? 1;
    for (let missing = 0; capture.path === null; ) {
      const path = repeat === 1 ? capture.wanted : `${capture.wanted}-${repeat}`;
      try {
        await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        await mkdir(path, { mode: 0o700 });
        capture.path = path;
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        // The sweeper may remove the empty day between the two.
        if (code === 'ENOENT' && missing < PLACE_ATTEMPTS) missing += 1;
        else if (code === 'EEXIST') repeat += 1;
        else throw error;
      }
    }
    if (repeat > 1) {
      // Without it the thousandth request of one id would try a thousand names.
      repeats.delete(capture.wanted);
      repeats.set(capture.wanted, repeat);
      const oldest = repeats.keys().next();
      if (repeats.size > REMEMBERED_REPEATS && !oldest.done) repeats.delete(oldest.value);
    }
    for (const body of BODIES) {
      await writeFile(join(capture.path, CAPTURE_FILES[body]), '', { flag: 'wx', mode: 0o600 });
    }
  }

  async function writeWaiting(capture: Open, body: Body): Promise<void> {
    const waiting = capture.waiting[body];
    if (capture.path === null || waiting.length === 0) return;
    let bytes = 0;
    let count = 0;
    while (count < waiting.length && (count === 0 || bytes < BATCH_BYTES)) {
      bytes += waiting[count]?.length ?? 0;
      count += 1;
    }
    const batch = waiting.splice(0, count);
    try {
      await appendFile(join(capture.path, CAPTURE_FILES[body]), Buffer.concat(batch), { flag: APPEND });
    } finally {
      for (const chunk of batch) waitingBytes -= costOf(chunk);
    }
  }

  async function complete(capture: Open, meta: CaptureMeta): Promise<void> {
    if (capture.path === null) return;
    const unfinished = join(capture.path, CAPTURE_FILES.unfinishedMeta);
    await writeFile(unfinished, renderMeta(meta, capture.cut.size > 0), { mode: 0o600 });
    await rename(unfinished, join(capture.path, CAPTURE_FILES.meta));
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
    clear: () => new Promise((resolved, rejected) => enqueue(() => removeAll().then(resolved, rejected))),
    async usage() {
      const captures = await listCaptures(dir);
      return { captures: captures.length, bytes: captures.reduce((sum, { bytes }) => sum + bytes, 0) };
    },
    async close() {
      closed = true;
      for (const capture of [...open]) {
        if (capture.meta === null) abandon(capture);
      }
      while (running !== null) await running;
    },
  };
}

const costOf = (chunk: Buffer) => chunk.length + CHUNK_OVERHEAD;
const ignore = () => undefined;
const NOTHING: CaptureWriter = { request: ignore, response: ignore, finish: ignore, abandon: ignore };
