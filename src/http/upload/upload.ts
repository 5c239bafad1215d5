/**
 * Receives a multipart upload into a file, within limits on the upload itself (size, least rate, timeout) and on all
 * uploads together. The file has a random name, and neither the name nor the type that the client sends reaches the
 * disk. It exists until the returned `Upload` is disposed.
 */
import { Readable } from 'node:stream';
import type { Request, Response } from 'express';
import multer from 'multer';
import { GatewayError } from '../../errors.ts';
import { BUDGETS } from '../../limits/budgets.ts';
import { type Body, createByteShares } from '../../limits/byte-shares.ts';
import { notesOf } from '../observe.ts';
import { codingRefusal } from '../server/refusals.ts';
import { type Form, type FormReading, readUploadForm } from './form.ts';
import { formRefusal, missingFile } from './form-refusal.ts';
import {
  type Arrival,
  announcedBytes,
  arrivalOf,
  type BodyStorage,
  continueIfAsked,
  isCoded,
  tooLarge,
  watchArrival,
} from './request-body.ts';
import type { Spool, SpooledFile } from './spool.ts';

export interface Upload extends AsyncDisposable {
  /** The client, as `networkOf` names it. */
  network: string;
  path: string;
  /** The text fields by name (`FormFields.all`). */
  fields: Readonly<Record<string, unknown>>;
  /** Stores what a field holds in another file, which exists as long as this one. @returns its path */
  store(content: Buffer): Promise<string>;
}

/** What an endpoint reads of a form. */
export interface UploadForm {
  /** The name of the part with the file. */
  field: string;
  /** The names of the text fields; absent for none. */
  texts?: readonly string[];
  /** What is stored before the content, for audio that comes without the head of a file. */
  head?: Buffer;
}

export type ReceiveUpload = ReturnType<typeof uploadReceiver>;

const FORM = BUDGETS.form.transcription;
/** The most bytes of a form beside its file, with generous room for the head of each part. */
const MAX_BYTES_OF_FIELDS =
  FORM.parts * (FORM.fieldSize + 1024) + BUDGETS.speakers.references * BUDGETS.speakers.referenceBytes;

export function uploadReceiver(storage: BodyStorage) {
  const { spool, places, maxBytes, limits } = storage;
  const fieldMemory = createByteShares(limits.maxFieldBytes);

  /** Receives an upload that has a place. */
  async function receiveAt(arrival: Arrival, res: Response, asked: UploadForm): Promise<Upload> {
    const { req, signal, balance, claim } = arrival;
    await spool.assertRoom(claim.network, Math.min(announcedBytes(req), maxBytes));
    signal.throwIfAborted();
    if (continueIfAsked(req, res)) balance.restart(limits.graceMs); // the client sends only after a round trip
    const files = createUploadFiles(spool, claim.network, asked.head);
    const fields: Body = {
      network: claim.network,
      isWhole: false,
      refuse: () => form.refuse(new GatewayError('overloaded', {})),
    };
    const form = readUploadForm(req, res, {
      field: asked.field,
      texts: asked.texts ?? [],
      maxFileBytes: maxBytes,
      storeFile: files.storeFile,
      takeFieldMemory: (bytes) => fieldMemory.take(fields, bytes),
    });
    const release = async () => {
      await files.remove();
      fieldMemory.release(fields);
      places.release(claim);
    };
    try {
      const received = await withinLimits(form, arrival, res, storage);
      fields.isWhole = true;
      const { path } = await files.stored(asked.field, received);
      return {
        network: claim.network,
        path,
        fields: received.fields,
        store: files.storeOther,
        [Symbol.asyncDispose]: release,
      };
    } catch (error) {
      void release(); // removes files in the background, so that the answer does not wait for the disk
      throw uploadError(error, maxBytes);
    }
  }

  /**
   * @throws GatewayError for a form that cannot be used, and when a limit on all uploads leaves no room for it;
   *   `signal.reason` after an abort
   */
  return async (req: Request, res: Response, signal: AbortSignal, asked: UploadForm): Promise<Upload> => {
    assertForm(req, asked.field, maxBytes);
    const arrival = arrivalOf(req, signal, limits);
    await places.take(arrival.claim);
    try {
      return await receiveAt(arrival, res, asked);
    } catch (error) {
      places.release(arrival.claim);
      throw error;
    }
  };
}

/** Refuses what its head already shows to be of no use. */
function assertForm(req: Request, field: string, maxBytes: number): void {
  if (!req.is('multipart/form-data')) throw new GatewayError('invalid_content_type', { field });
  if (isCoded(req)) throw codingRefusal(req.get('Content-Encoding') ?? '');
  if (announcedBytes(req) > mostBytes(maxBytes)) throw uploadTooLarge(maxBytes);
}

/** The files of one upload: that of its form, and others that its handler makes of the text fields. */
function createUploadFiles(spool: Spool, network: string, head: Buffer = Buffer.alloc(0)) {
  let storing: Promise<SpooledFile | null> = Promise.resolve(null);
  const others: SpooledFile[] = [];
  return {
    storeFile(content: Readable): Promise<SpooledFile> {
      const file = spool.store(network, content, head);
      storing = file;
      return file;
    },
    async storeOther(content: Buffer): Promise<string> {
      const other = await spool.store(network, Readable.from([content]));
      others.push(other);
      return other.path;
    },
    /** The file of a form that has come. @throws GatewayError when it has none, or no byte of it came */
    async stored(field: string, { isNamed, otherFile }: Form): Promise<SpooledFile> {
      const file = await storing;
      if (file === null) throw missingFile(field, otherFile);
      if (file.bytes > head.length) return file;
      throw isNamed ? new GatewayError('empty_file', {}, { param: field }) : missingFile(field, otherFile);
    },
    async remove(): Promise<void> {
      await storing.then((file) => file?.remove()).catch(() => undefined);
      for (const file of others.splice(0)) await file.remove();
    },
  };
}

/** Resolves when the form is complete, and ends it when the client leaves or breaks a limit. */
async function withinLimits(
  form: FormReading,
  arrival: Arrival,
  res: Response,
  { maxBytes, limits }: BodyStorage,
): Promise<Form> {
  const stop = watchArrival(arrival, limits, {
    mostBytes: mostBytes(maxBytes), // the parser bounds the file that it keeps, but not the files that it skips
    tooLarge: uploadTooLarge(maxBytes),
    isReading: form.isWaiting,
    onChunk: notesOf(res).requestBody,
    fail: form.refuse,
  });
  return await form.done.finally(stop);
}

const mostBytes = (maxBytes: number) => maxBytes + MAX_BYTES_OF_FIELDS;

const uploadTooLarge = (maxBytes: number) => tooLarge(maxBytes, { param: 'file' });

function uploadError(error: unknown, maxBytes: number): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  if (error instanceof GatewayError) return error;
  if (error instanceof multer.MulterError)
    return error.code === 'LIMIT_FILE_SIZE' ? uploadTooLarge(maxBytes) : formRefusal(error, FORM);
  // An error without a code comes from multer, about a form that ended early or is invalid.
  if ('code' in error && 'errno' in error) return error;
  if (error.message === 'Request aborted') return new GatewayError('client_left', {});
  return formRefusal(error, FORM);
}
