/**
 * Receives a multipart upload into a file, up to a number of bytes. The file has a random name, and neither the name
 * nor the type that the client sends reaches the disk. It exists until the returned `Upload` is disposed.
 */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Request, Response } from 'express';
import multer from 'multer';
import { BUDGETS } from '../budgets.ts';
import { GatewayError } from '../errors.ts';
import { isAlive } from '../process-alive.ts';
import { formRefusal } from './form-limits.ts';
import { notesOf } from './observe.ts';

export interface Upload extends AsyncDisposable {
  path: string;
  bytes: number;
  /** The text fields by name; a field that was sent several times is an array. */
  fields: Readonly<Record<string, unknown>>;
}

export interface UploadReceiver {
  /** @throws GatewayError for a form that cannot be used; `signal.reason` after an abort */
  receive(req: Request, res: Response, signal: AbortSignal): Promise<Upload>;
  /** Removes the folder of the uploads. */
  close(): void;
}

const LIMITS = BUDGETS.form.transcription;
/** The most bytes of a form beside its file, with generous room for the head of each part. */
const MAX_BYTES_OF_FIELDS = LIMITS.parts * (LIMITS.fieldSize + 1024);

/** @param options.tmpDir an existing folder; the uploads go to a folder of this process in it */
export function createUploadReceiver(options: {
  tmpDir: string;
  maxBytes: number;
  stallMs: number;
}): UploadReceiver {
  sweepAbandoned(options.tmpDir);
  const mostBytes = options.maxBytes + MAX_BYTES_OF_FIELDS;
  const withFile = new WeakSet<Request>();
  const dir = mkdtempSync(join(options.tmpDir, `voxgate-${process.pid}-`));
  const parse = multer({
    storage: multer.diskStorage({
      destination: dir,
      filename: (_req, _file, done) => done(null, randomUUID()),
    }),
    limits: { ...LIMITS, fileSize: options.maxBytes },
    fileFilter(req, { fieldname }, done) {
      const isFirst = fieldname === 'file' && !withFile.has(req);
      if (isFirst) withFile.add(req);
      done(null, isFirst);
    },
    defParamCharset: 'utf8',
  }).any();

  return {
    async receive(req, res, signal) {
      refuseWithoutReading(req, options.maxBytes, mostBytes);
      continueIfAsked(req, res);
      const parsed = new Promise<void>((resolve, reject) => {
        parse(req, res, (error: unknown) => (error ? reject(error) : resolve()));
      });
      const givenUp = new Promise<never>((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        // The parser bounds the file that it keeps, but not the files that it skips.
        let bytes = 0;
        req.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > mostBytes) reject(tooLarge(options.maxBytes));
        });
      });
      // This listener must be added in the turn in which the form parser begins to read. An earlier one would start
      // the flow, and the parser would lose data.
      req.on('data', notesOf(res).requestBody);
      const stall = watchForStall(req, options.stallMs);
      try {
        await Promise.race([parsed, givenUp]);
      } catch (error) {
        // The parser still handles the data that arrives, and may keep a file after all.
        void parsed.then(() => removeKept(req)).catch(() => undefined);
        throw uploadError(error, options.maxBytes);
      } finally {
        stall.stop();
      }
      const file = keptFile(req);
      if (file === undefined) throw new GatewayError('missing_file', {}, { param: 'file' });
      const remove = () => removeKept(req);
      if (file.size === 0) {
        await remove();
        throw new GatewayError('empty_file', {}, { param: 'file' });
      }
      return { path: file.path, bytes: file.size, fields: { ...req.body }, [Symbol.asyncDispose]: remove };
    },
    close: () => rmSync(dir, { recursive: true, force: true }),
  };
}

/** Sends `100 Continue` to a client that waits for it. A client that is refused instead never sends its body. */
export function continueIfAsked(req: Request, res: Response): void {
  if (req.get('Expect')?.toLowerCase() !== '100-continue') return;
  res.writeContinue();
  delete req.headers.expect; // later handlers see an ordinary request
}

const keptFile = (req: Request) => (Array.isArray(req.files) ? req.files : [])[0];

async function removeKept(req: Request): Promise<void> {
  const file = keptFile(req);
  if (file !== undefined) await rm(file.path, { force: true });
}

function refuseWithoutReading(req: Request, maxBytes: number, mostBytes: number): void {
  if (!req.is('multipart/form-data')) {
    throw new GatewayError('invalid_content_type', {});
  }
  if (Number(req.get('Content-Length') ?? 0) > mostBytes) throw tooLarge(maxBytes);
}

function tooLarge(maxBytes: number): GatewayError {
  const megabytes = Number((maxBytes / 1024 / 1024).toFixed(3));
  return new GatewayError('file_too_large', { maxMb: megabytes }, { param: 'file' });
}

function uploadError(error: unknown, maxBytes: number): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  if (error instanceof GatewayError) return error;
  if (error instanceof multer.MulterError)
    return error.code === 'LIMIT_FILE_SIZE' ? tooLarge(maxBytes) : formRefusal(error, LIMITS);
  // An error of the file system, such as a full disk, has a code and is a failure of the gateway. An error without a
  // code comes from multer, about a form that ended early or is invalid.
  if ('code' in error && 'errno' in error) return error;
  if (error.message === 'Request aborted') return new GatewayError('client_left', {});
  return formRefusal(error, LIMITS);
}

function watchForStall(req: Request, stallMs: number): { stop(): void } {
  const timer = setTimeout(() => req.destroy(), stallMs);
  const rearm = () => timer.refresh();
  req.on('data', rearm);
  return {
    stop() {
      clearTimeout(timer);
      req.off('data', rearm);
    },
  };
}

/** Removes the upload folders of processes that no longer run. */
function sweepAbandoned(tmpDir: string): void {
  for (const name of readdirSync(tmpDir)) {
    const pid = Number(/^voxgate-(\d+)-\w+$/.exec(name)?.[1] ?? Number.NaN);
    // A folder with the pid of this process is from an earlier run: in a container every run may get the same pid.
    if (Number.isNaN(pid) || (pid !== process.pid && isAlive(pid))) continue;
    rmSync(join(tmpDir, name), { recursive: true, force: true });
  }
}
