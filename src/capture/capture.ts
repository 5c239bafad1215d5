/**
 * Payload capture: writes the bodies of requests and answers to disk, for replay. It runs off the request path: the
 * calls of a CaptureWriter never wait or throw, one file is open at a time however many requests run, and the memory
 * that waits for the disk is bounded over all captures. A full disk, or one that fails, switches capture off
 * (`capture-retry.ts`: until it takes captures again).
 *
 * All writing and removing happens in jobs of one queue. Jobs never run at the same time, so a disk that hangs blocks
 * one thread of Node's pool instead of all four.
 */
import { resolve } from 'node:path';
import type { Logger } from 'winston';
import { type ByteBudget, byteBudget } from '../limits/budgets.ts';
import {
  appendBody,
  BODIES,
  type Body,
  createBodies,
  createFolderMaker,
  FOLDER_BYTES,
  listCaptures,
  onDisk,
  removeCapture,
  removeEmptyDays,
  writeMeta,
} from './capture-folder.ts';
import { type CaptureMeta, renderMeta } from './capture-meta.ts';
import {
  createJobQueue,
  createWaitingBody,
  type Job,
  type JobQueue,
  type WaitingBody,
} from './capture-queue.ts';
import { type CaptureRetention, createCaptureRetention } from './capture-retention.ts';

export interface CaptureWriter {
  /** Adds a chunk of the request body. The chunk is kept without a copy, so it must not change afterwards. */
  request(chunk: Buffer): void;
  /** Adds a chunk of the response body, which must not change afterwards. */
  response(chunk: Buffer): void;
  /** Ends the capture with its meta data. Without this call a capture never becomes complete. */
  finish(meta: CaptureMeta): void;
  /** Drops the capture. After `finish` it does nothing. */
  abandon(): void;
}

export type Capture = ReturnType<typeof createCapture>;

export interface CaptureOptions {
  dir: string;
  log: Logger;
  /**
   * Called when writing failed and every open capture was dropped. The owner should switch capturing off; a later
   * `begin` tries again.
   */
  onFailure?(error: Error): void;
  /**
   * The memory for all open captures: 16 KiB each, and the chunks that wait for the disk. When it is used up, a body
   * is cut at its next chunk, and a new request is not captured.
   */
  maxWaitingBytes?: number;
  /** The most bytes of all captures on the disk; one capture gets at most half of them. No limit when absent. */
  maxBytes?: number;
  maxAgeMs?: number;
}

/** Bytes that an open capture counts, mostly for its headers, so that captures without chunks are bounded too. */
const CAPTURE_OVERHEAD = 16 * 1024;

interface Open {
  readonly requestId: string;
  readonly at: Date;
  /** The folder of the capture; null until it is made. */
  path: string | null;
  readonly bodies: Readonly<Record<Body, WaitingBody>>;
  meta: CaptureMeta | null;
  abandoned: boolean;
  readonly sizes: Record<Body, number>;
  bytesOnDisk: number;
  /** Always the same function, so that the queue holds it only once. */
  readonly job: Job;
}

export function createCapture(options: CaptureOptions) {
  const { log, maxWaitingBytes = 64 * 1024 * 1024 } = options;
  const { maxBytes = Number.POSITIVE_INFINITY, maxAgeMs = Number.POSITIVE_INFINITY } = options;
  const dir = resolve(options.dir);
  const queue = createJobQueue();
  const captures = createOpenCaptures(byteBudget(maxWaitingBytes), queue);
  const { open } = captures;
  const isOpen = (path: string) => [...open].some((capture) => capture.path === resolve(path));
  const retention = createCaptureRetention({ dir, log, maxAgeMs, maxBytes, isOpen });
  const write = createDiskWriter({ ...options, dir, maxBytes }, { captures, queue, retention });
  let skipping = false;
  let closed = false;

  async function removeAll(): Promise<number> {
    let count = 0;
    retention.remeasure();
    for (const capture of [...open]) captures.forget(capture);
    for (const { path } of await listCaptures(dir)) {
      // What another gateway writes at this very moment stays, and is its own to finish.
      if (await removeCapture(path).then(() => true, exceptInUse)) count += 1;
    }
    await removeEmptyDays(dir);
    return count;
  }

  return {
    /** @param at the time of arrival, whose local day names the folder */
    begin(requestId: string, at: Date): CaptureWriter {
      if (closed) return NOTHING;
      const writer = captures.add(requestId, at, write);
      if (writer === null && !skipping)
        log.warn('The disk of the captures is too slow; some requests are not captured', { dir });
      skipping = writer === null;
      return writer ?? NOTHING;
    },
    /** Removes every capture, also those being written, and returns how many were on disk. */
    clear: () =>
      new Promise<number>((resolved, rejected) => queue.add(() => removeAll().then(resolved, rejected))),
    /** Measures the captures on disk. It reads the whole folder, so do not call it every second. */
    async usage() {
      const stored = await listCaptures(dir);
      return { captures: stored.length, bytes: stored.reduce((sum, { bytes }) => sum + bytes, 0) };
    },
    /** Writes the finished captures and removes the others. Nothing is captured afterwards. */
    async close(): Promise<void> {
      closed = true;
      for (const capture of [...open]) {
        if (capture.meta === null) captures.abandon(capture);
      }
      await queue.idle();
      await retention.close();
    },
  };
}

type OpenCaptures = ReturnType<typeof createOpenCaptures>;

/** The captures of requests that are not complete on the disk. Each has a share of the memory. */
function createOpenCaptures(budget: ByteBudget, queue: JobQueue) {
  const open = new Set<Open>();

  /** Null when the memory is used up. */
  function add(requestId: string, at: Date, write: (capture: Open) => Promise<void>): CaptureWriter | null {
    if (!budget.take(CAPTURE_OVERHEAD)) return null;
    const capture: Open = {
      requestId,
      at,
      path: null,
      bodies: { request: createWaitingBody(budget), response: createWaitingBody(budget) },
      meta: null,
      abandoned: false,
      sizes: { request: 0, response: 0 },
      bytesOnDisk: FOLDER_BYTES,
      job: () => write(capture),
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

  /** Drops what the capture still holds in memory, so that nothing more of it is written. */
  function forget(capture: Open): void {
    if (!open.delete(capture)) return;
    budget.giveBack(CAPTURE_OVERHEAD);
    for (const body of BODIES) capture.bodies[body].clear();
  }

  return { open, add, abandon, forget };
}

/** Writes what waits of a capture. Its calls are the jobs of the queue. */
function createDiskWriter(
  { dir, log, onFailure, maxBytes }: CaptureOptions & { maxBytes: number },
  { captures, queue, retention }: { captures: OpenCaptures; queue: JobQueue; retention: CaptureRetention },
): (capture: Open) => Promise<void> {
  const { open, forget } = captures;
  const makeFolder = createFolderMaker(dir);

  const takeRoom = async (capture: Open, bytes: number) =>
    capture.bytesOnDisk + bytes <= maxBytes / 2 && (await retention.take(bytes));

  async function write(capture: Open, path: string): Promise<void> {
    for (const body of BODIES) await appendWaiting(capture, path, body, takeRoom);
    if (!open.has(capture)) return; // it was abandoned meanwhile, and its job is queued again
    const bodies = Object.values(capture.bodies);
    if (bodies.some(({ isEmpty }) => !isEmpty)) queue.add(capture.job);
    else if (capture.meta !== null) {
      const isCut = bodies.some((body) => body.isCut);
      const meta = renderMeta(capture.meta, isCut);
      if (await retention.take(onDisk(Buffer.byteLength(meta)))) await writeMeta(path, meta);
      else await removeCapture(path);
      forget(capture);
    }
  }

  async function switchOff(error: Error): Promise<void> {
    const incomplete = [...open];
    for (const capture of incomplete) forget(capture);
    log.error('Payload capture is switched off, because the disk failed', { dir, error: String(error) });
    onFailure?.(error);
    for (const { path } of incomplete) {
      if (path !== null) await removeCapture(path).catch(ignore);
    }
  }

  return async (capture) => {
    try {
      if (capture.abandoned && capture.path !== null) await removeCapture(capture.path);
      if (!open.has(capture)) return;
      if (capture.path === null) {
        if (!(await retention.take(FOLDER_BYTES))) return forget(capture);
        capture.path = await makeFolder(capture.requestId, capture.at);
        await createBodies(capture.path);
      }
      await write(capture, capture.path);
    } catch (error) {
      const removed = capture.path !== null && (error as NodeJS.ErrnoException).code === 'ENOENT';
      // Someone removed the folder by hand. This capture is lost, but the disk works.
      if (removed) forget(capture);
      else await switchOff(error as Error);
    }
  };
}

/** Appends what waits of a body. Where there is no room for it, the body is cut. */
async function appendWaiting(
  capture: Open,
  path: string,
  body: Body,
  takeRoom: (capture: Open, bytes: number) => Promise<boolean>,
): Promise<void> {
  await capture.bodies[body].flush(async (batch) => {
    const size = capture.sizes[body];
    const growth = onDisk(size + batch.length) - onDisk(size);
    if (!(await takeRoom(capture, growth))) return capture.bodies[body].cut();
    capture.sizes[body] += batch.length;
    capture.bytesOnDisk += growth;
    await appendBody(path, body, batch);
  });
}

function exceptInUse(error: NodeJS.ErrnoException): boolean {
  if (error.code === 'ENOTEMPTY') return false;
  throw error;
}

const ignore = () => undefined;
const NOTHING: CaptureWriter = { request: ignore, response: ignore, finish: ignore, abandon: ignore };

/** The name of the field that holds a voice, however its words are joined: a request refused for that has one as well. */
const FIELD = /known(?:%5f|[^a-z\s]){0,8}speaker/i;
/** A voice is sent as a data URL. In a form any data URL of audio counts as a voice, under any name of a field. */
const FIELD_OR_VOICE = /known(?:%5f|[^a-z\s]){0,8}speaker|data:audio/i;
/** The characters of the longest match, less one: it may begin at the end of one chunk and end in the next. */
const OVERLAP = 'known'.length + 8 * '%5f'.length + 'speaker'.length - 1;
/** A chat may have sounds in it, and is captured. Calls of chat and speech are JSON. */
const IS_JSON = /^\s*[{[]/;

/**
 * Keeps the voices of known speakers out of the captures: without them the request could not be replayed, so it is not
 * captured at all. The capture is abandoned as soon as a voice is named anywhere in the request body. The bytes are
 * searched as they come, because a form that breaks off or cannot be parsed may hold a voice as well.
 */
export function withoutVoices(capture: CaptureWriter): CaptureWriter {
  let before = '';
  let isJson: boolean | null = null;
  let found = false;
  return {
    ...capture,
    request(chunk) {
      if (found) return;
      const text = before + chunk.toString('latin1');
      if (text.trim() !== '') isJson ??= IS_JSON.test(text);
      found = (isJson ? FIELD : FIELD_OR_VOICE).test(text);
      if (found) return capture.abandon();
      before = text.slice(-OVERLAP);
      capture.request(chunk);
    },
  };
}
