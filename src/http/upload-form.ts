/** Reads a multipart form with one file. Everything that must not happen after a refusal stops with it. */
import type { Readable, Writable } from 'node:stream';
import type { Request, Response } from 'express';
import multer from 'multer';
import { BUDGETS } from '../budgets.ts';
import { GatewayError } from '../errors.ts';
import { fieldSizeOf, missingFile } from './form-limits.ts';

const LIMITS = BUDGETS.form.transcription;
/** A character of a string takes up to two bytes of memory. */
const BYTES_PER_CHARACTER = 2;

export interface FormParts {
  /** The name of the part with the file. */
  field: string;
  maxFileBytes: number;
  /** Stores the content of the first part of this name; other files are skipped. A failure refuses the form. */
  storeFile(content: Readable): Promise<{ bytes: number }>;
  /** Takes memory for a text field. False refuses the form. */
  takeFieldMemory(bytes: number): boolean;
}

export interface FormReading {
  /** Resolves when the form is complete; the text fields are then in `req.body`. */
  readonly done: Promise<void>;
  /** True while the parser waits for the client, and not for the disk. */
  isWaiting(): boolean;
  /** Ends the reading now and rejects `done`. The parser itself would first receive the rest of the body. */
  refuse(reason: unknown): void;
}

/** Begins to read the body of `req` at once. */
export function readUploadForm(req: Request, res: Response, parts: FormParts): FormReading {
  const { promise: done, resolve, reject } = withResolvers();
  let parser: Writable | null = null;
  let hasFile = false;
  let refused = false;

  const refuse = (reason: unknown) => {
    refused = true;
    reject(reason);
    if (parser === null) return;
    req.unpipe(parser);
    req.resume(); // bytes left unread would reset the connection before the client has read its answer
    // The parser may be in the middle of a chunk, and goes on with it after its listeners have returned.
    process.nextTick(() => parser?.destroy(reason as Error));
  };
  // A file that is sent without a name comes as a text field.
  const tooLong = (name: string) =>
    name === parts.field && !hasFile ? missingFile(name) : new multer.MulterError('LIMIT_FIELD_VALUE', name);
  const storage: multer.StorageEngine = {
    _handleFile(_req, { stream }, stored) {
      hasFile = true;
      parts.storeFile(stream).then(
        ({ bytes }) => stored(null, { size: bytes }),
        (error) => {
          refuse(error);
          stored(error);
        },
      );
    },
    _removeFile: (_req, _file, removed) => removed(null as unknown as Error), // the owner of the file removes it
  };
  const feed = (_req: Request, stream: Writable) => {
    parser = stream;
    // A field without a name has `undefined` for it.
    stream.prependListener('field', (name = '', value = '') => {
      // The parser has one limit for all fields, and this field may have a smaller one.
      if (!refused && Buffer.byteLength(value) > fieldSizeOf(name, LIMITS)) refuse(tooLong(name));
      if (!refused && !parts.takeFieldMemory(BYTES_PER_CHARACTER * (name.length + value.length)))
        refuse(new GatewayError('overloaded', {}));
    });
    // Multer would wait for the rest of the body, however slowly it comes, before it says why it refuses the form. It
    // does not where the request looks read.
    stream.once('unpipe', () => {
      req.readable = false;
    });
    req.pipe(stream);
  };
  const parse = multer({
    storage,
    limits: { ...LIMITS, fieldSize: BUDGETS.speakers.referenceBytes, fileSize: parts.maxFileBytes },
    fileFilter: (_req, { fieldname }, decide) =>
      decide(null, fieldname === parts.field && !hasFile && !refused),
    defParamCharset: 'utf8',
    streamHandler: feed,
  } as multer.Options).any();
  parse(req, res, (error: unknown) => (error ? reject(error) : resolve()));
  return { done, refuse, isWaiting: () => parser?.writableNeedDrain === false };
}

function withResolvers() {
  let resolve: () => void = () => undefined;
  let reject: (reason: unknown) => void = () => undefined;
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}
