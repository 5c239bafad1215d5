/**
 * Receives a multipart upload into a file, within limits on the upload itself and on all uploads together. The file has
 * a random name, and neither the name nor the type that the client sends reaches the disk. It exists until the returned
 * `Upload` is disposed.
 */
import { Readable } from 'node:stream';
import type { Request, Response } from 'express';
import multer from 'multer';
import { BUDGETS, type Budgets } from '../budgets.ts';
import { GatewayError } from '../errors.ts';
import { watchSending } from '../proxy/client-pace.ts';
import { createFieldMemory } from './field-memory.ts';
import { formRefusal, missingFile } from './form-limits.ts';
import { networkOf } from './network.ts';
import { notesOf } from './observe.ts';
import { createSpool, type SpooledFile } from './spool.ts';
import type { SpoolFolderOptions } from './spool-folder.ts';
import { createUploadBalance, type UploadBalance } from './upload-balance.ts';
import { type FormReading, readUploadForm } from './upload-form.ts';
import { createUploadPlaces, type UploadPlace } from './upload-places.ts';

export interface Upload extends AsyncDisposable {
  path: string;
  bytes: number;
  /** The text fields by name; a field that was sent several times is an array. */
  fields: Readonly<Record<string, unknown>>;
  /** Stores what a field holds in another file, which exists as long as this one. @returns its path */
  store(content: Buffer): Promise<string>;
}

/** Where in a form the file is. */
export interface UploadForm {
  /** The name of the part. */
  field: string;
  /** What is stored before the content, for audio that comes without the head of a file. */
  head?: Buffer;
}

export interface UploadReceiver {
  /**
   * @throws GatewayError for a form that cannot be used, and when a limit on all uploads leaves no room for it;
   *   `signal.reason` after an abort
   */
  receive(req: Request, res: Response, signal: AbortSignal, form: UploadForm): Promise<Upload>;
  /** Removes the folder of the uploads. */
  close(): void;
}

export interface UploadReceiverOptions extends SpoolFolderOptions {
  /** The largest upload. */
  maxBytes: number;
  /** The most uploads at once. */
  maxUploads: number;
  /** The most bytes of all uploads together. */
  maxSpoolBytes: number;
  limits?: Budgets['upload'];
}

/** An upload that has a place. */
interface Reception {
  req: Request;
  res: Response;
  /** Aborts when the client leaves, and when the place goes to another upload. */
  signal: AbortSignal;
  balance: UploadBalance;
  place: UploadPlace;
  asked: UploadForm;
}

const FORM = BUDGETS.form.transcription;
/** The most bytes of a form beside its file, with generous room for the head of each part. */
const MAX_BYTES_OF_FIELDS =
  FORM.parts * (FORM.fieldSize + 1024) + BUDGETS.speakers.references * BUDGETS.speakers.referenceBytes;

export function createUploadReceiver(options: UploadReceiverOptions): UploadReceiver {
  const { maxBytes, maxUploads, maxSpoolBytes, limits = BUDGETS.upload, ...folder } = options;
  const spool = createSpool({
    ...folder,
    maxBytes: Math.max(maxSpoolBytes, maxBytes + 1), // the parser sees by one byte more that a file is too large
    leastFreeBytes: limits.leastFreeBytes,
  });
  const places = createUploadPlaces({ maxUploads, lookMs: limits.lookMs });
  const fieldMemory = createFieldMemory(limits.maxFieldBytes);
  const mostBytes = maxBytes + MAX_BYTES_OF_FIELDS;

  async function receiveAt(reception: Reception) {
    const { req, res, signal, balance, place, asked } = reception;
    const { field, head = Buffer.alloc(0) } = asked;
    await spool.assertRoom(Math.min(Number(req.get('Content-Length') ?? 0), maxBytes));
    signal.throwIfAborted();
    if (continueIfAsked(req, res)) balance.restart(limits.lookMs); // the first bytes are a round trip away
    let storing: Promise<SpooledFile | null> = Promise.resolve(null);
    const fields = fieldMemory.open(() => form.refuse(new GatewayError('overloaded', {})));
    const others: SpooledFile[] = [];
    const release = async () => {
      await storing.then((file) => file?.remove()).catch(() => undefined);
      for (const file of others.splice(0)) await file.remove();
      fields.release();
      place.release();
    };
    const form = readUploadForm(req, res, {
      field,
      maxFileBytes: maxBytes,
      storeFile(content) {
        const file = spool.store(content, head);
        storing = file;
        return file;
      },
      takeFieldMemory: fields.take,
    });
    try {
      await withinLimits(form, reception);
      fields.arrived();
      const file = await storing;
      if (file === null) throw missingFile(field);
      if (file.bytes === head.length) throw new GatewayError('empty_file', {}, { param: field });
      return {
        path: file.path,
        bytes: file.bytes,
        fields: { ...req.body },
        async store(content: Buffer) {
          const other = await spool.store(Readable.from([content]));
          others.push(other);
          return other.path;
        },
        [Symbol.asyncDispose]: release,
      };
    } catch (error) {
      void release(); // the answer does not wait for the disk
      throw uploadError(error, maxBytes);
    }
  }

  /** Resolves when the form is complete, and ends it when the client leaves or breaks a limit. */
  async function withinLimits(form: FormReading, { req, res, signal, balance }: Reception): Promise<void> {
    const leave = () => form.refuse(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    // This listener must be added in the turn in which the form parser begins to read. An earlier one would start the
    // flow, and the parser would lose data. The parser bounds the file that it keeps, but not the files that it skips.
    let bytes = 0;
    req.on('data', (chunk: Buffer) => {
      notesOf(res).requestBody(chunk);
      balance.received(chunk.length);
      bytes += chunk.length;
      if (bytes > mostBytes) form.refuse(tooLarge(maxBytes));
    });
    const isItsTurn = () => !req.complete && form.isWaiting();
    const pace = watchSending(req, limits, { isItsTurn, late: form.refuse });
    const tooLong = new GatewayError('client_stalled', { what: `sent for ${limits.totalMs / 1000} s` });
    const total = setTimeout(() => form.refuse(tooLong), limits.totalMs);
    try {
      await form.done;
    } finally {
      signal.removeEventListener('abort', leave);
      clearTimeout(total);
      pace.stop();
      balance.end();
    }
  }

  return {
    async receive(req, res, signal, asked) {
      refuseWithoutReading(req, asked.field, { maxBytes, mostBytes });
      const balance = createUploadBalance(limits);
      const replaced = new AbortController();
      const place = await places.take({
        network: networkOf(req.ip ?? ''),
        behindMs() {
          if (req.complete) return null;
          return asksToContinue(req) ? 0 : balance.behindMs(req.readableLength);
        },
        giveUp: (reason) => replaced.abort(reason),
        signal,
      });
      const either = AbortSignal.any([signal, replaced.signal]);
      try {
        return await receiveAt({ req, res, signal: either, balance, place, asked });
      } catch (error) {
        place.release();
        throw error;
      }
    },
    close: spool.close,
  };
}

/**
 * Sends `100 Continue` to a client that waits for it, and is then true. A client that is refused instead never sends
 * its body.
 */
export function continueIfAsked(req: Request, res: Response): boolean {
  if (!asksToContinue(req)) return false;
  res.writeContinue();
  delete req.headers.expect; // later handlers see an ordinary request
  return true;
}

/** HTTP/1.0 knows no interim answers, so there the wish is ignored (RFC 9110, section 10.1.1). */
const asksToContinue = (req: Request) =>
  req.httpVersion !== '1.0' && req.get('Expect')?.toLowerCase() === '100-continue';

function refuseWithoutReading(
  req: Request,
  field: string,
  { maxBytes, mostBytes }: { maxBytes: number; mostBytes: number },
): void {
  if (!req.is('multipart/form-data')) {
    throw new GatewayError('invalid_content_type', { field });
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
    return error.code === 'LIMIT_FILE_SIZE' ? tooLarge(maxBytes) : formRefusal(error, FORM);
  // An error without a code comes from multer, about a form that ended early or is invalid.
  if ('code' in error && 'errno' in error) return error;
  if (error.message === 'Request aborted') return new GatewayError('client_left', {});
  return formRefusal(error, FORM);
}
