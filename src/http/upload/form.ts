/** Reads a multipart form with one file. Everything that must not happen after a refusal stops with it. */
import type { Readable, Writable } from 'node:stream';
import type { Request, Response } from 'express';
import multer from 'multer';
import { GatewayError } from '../../errors.ts';
import { BUDGETS } from '../../limits/budgets.ts';
import { addChunk } from '../../streams.ts';
import { createFormFields, type FormFields, textOfJson } from './form-fields.ts';
import { fieldSizeOf } from './form-refusal.ts';

const LIMITS = BUDGETS.form.transcription;
/** A character of a string takes up to two bytes of memory. */
const BYTES_PER_CHARACTER = 2;

export interface FormParts {
  /** The name of the part with the file. */
  field: string;
  /** The names of the text fields that are read. All others are skipped. */
  texts: readonly string[];
  maxFileBytes: number;
  /** Stores the content of the first part of this name; other files are skipped. A failure refuses the form. */
  storeFile(content: Readable): Promise<{ bytes: number }>;
  /** Takes memory for a text field. False refuses the form. */
  takeFieldMemory(bytes: number): boolean;
}

export interface Form {
  /** The text fields, as `FormFields.all` returns them. */
  fields: Readonly<Record<string, unknown>>;
  /** True when the file came with a file name. A page whose visitor chose no file sends an empty one without. */
  isNamed: boolean;
  /** The name of the first part with a file that nothing reads. */
  otherFile: string | undefined;
}

export type FormReading = ReturnType<typeof readUploadForm>;

/** What the parser tells about a part. */
interface Part {
  filename?: string;
  mimeType: string;
}

/** Begins to read the body of `req` at once. */
export function readUploadForm(req: Request, res: Response, parts: FormParts) {
  const fields = createFormFields(parts.texts);
  let parser: Writable | null = null;
  let hasFile = false;
  let isNamed = false;
  let otherFile: string | undefined;
  let refused = false;
  let reject: (reason: unknown) => void = () => undefined;

  /** Ends the reading now and rejects `done`. The parser itself would first receive the rest of the body. */
  const refuse = (reason: unknown) => {
    refused = true;
    reject(reason);
    if (parser === null) return;
    req.unpipe(parser);
    req.resume(); // bytes left unread would reset the connection before the client has read its answer
    // The parser may be in the middle of a chunk, and goes on with it after its listeners have returned.
    process.nextTick(() => parser?.destroy(reason as Error));
  };
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
    _removeFile: (_req, _file, removed) => removed(null as unknown as Error), // `Upload` removes its own files
  };
  const texts = textReader(fields, { refuse, isRefused: () => refused, take: parts.takeFieldMemory });
  const feed = (_req: Request, stream: Writable) => {
    parser = stream;
    // Multer would turn the brackets of any name into arrays and objects.
    stream.removeAllListeners('field');
    stream.on('field', texts.field);
    stream.prependListener('file', (name: string | undefined, content: Readable, part: Part) => {
      if (name === parts.field && !hasFile) {
        isNamed = part.filename !== undefined;
        part.filename ??= name; // multer would skip a file without one
      } else if (!texts.file(name, content)) otherFile ??= name;
    });
    takeTypedFiles(stream, parts.field);
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
  /** Resolves when the form is complete. */
  const done = new Promise<Form>((resolve, fail) => {
    reject = fail;
    parse(req, res, (error: unknown) => {
      if (error) reject(error);
      // Multer reads no body whose Content-Type it cannot parse, and reports no error either.
      else if (parser === null) reject(new Error('Malformed content type'));
      else resolve({ fields: fields.all(), isNamed, otherFile });
    });
  });
  return {
    done,
    refuse,
    /** True while the parser waits for the client, and not for the disk. */
    isWaiting: () => parser?.writableNeedDrain === false,
  };
}

/** Takes the parts that hold known fields, as texts or as files. */
function textReader(
  fields: FormFields,
  form: { refuse(reason: unknown): void; isRefused(): boolean; take(bytes: number): boolean },
) {
  const tooLong = (name: string) => form.refuse(new multer.MulterError('LIMIT_FIELD_VALUE', name));

  function take(characters: number): boolean {
    const isTaken = form.take(BYTES_PER_CHARACTER * characters);
    if (!isTaken) form.refuse(new GatewayError('overloaded', {}));
    return isTaken;
  }

  function add(name: string, value: string): void {
    try {
      fields.add(name, value);
    } catch (error) {
      form.refuse(error);
    }
  }

  return {
    /** `value` is undefined where the part names a character set that the parser does not know. */
    field(name: string | undefined, value: string | undefined, { mimeType }: Part): void {
      if (form.isRefused()) return;
      const field = name === undefined ? undefined : fields.fieldOf(name);
      if (name === undefined) form.refuse(new multer.MulterError('MISSING_FIELD_NAME'));
      else if (field === undefined) return;
      else if (value === undefined) form.refuse(unreadable(field));
      // The parser has one limit for all fields, and this field may have a smaller one.
      else if (Buffer.byteLength(value) > fieldSizeOf(field, LIMITS)) tooLong(field);
      else if (take(name.length + value.length)) add(name, isJson(mimeType) ? textOfJson(value) : value);
    },
    /** A script that appends a `Blob` sends its text as a file. False for a part that holds no known field. */
    file(name: string | undefined, content: Readable): boolean {
      const field = name === undefined ? undefined : fields.fieldOf(name);
      if (name === undefined || field === undefined) return false;
      const chunks: Buffer[] = [];
      let bytes = 0;
      content.on('data', (chunk: Buffer) => {
        if (form.isRefused()) return;
        bytes += chunk.length;
        if (bytes > fieldSizeOf(field, LIMITS)) tooLong(field);
        else if (take(chunk.length)) addChunk(chunks, chunk);
      });
      content.once('end', () => {
        if (!form.isRefused()) add(name, Buffer.concat(chunks).toString());
      });
      return true;
    },
  };
}

const unreadable = (field: string) =>
  new GatewayError(
    'invalid_value',
    { field, value: 'in its character set', expected: 'Expected UTF-8' },
    { param: field },
  );

const isJson = (mimeType: string) => /[/+]json$/i.test(mimeType);

type PartHead = Record<string, string[] | undefined>;
type HeadParser = { cb(head: PartHead): void };

/**
 * Makes the parser take the part `field` for a file where its type is no text. By itself it goes by the file name and by
 * the type `application/octet-stream` alone, and decodes the bytes of any other part as text. It has no option for this,
 * and its documented events come too late: that of such a part is `field`, with a text in which bytes are lost and no
 * more of it than a text may have. So this changes the head of the part on its way through a member that is not
 * documented. With a version that lacks the member such a part stays a text, and the form is refused for the missing
 * file.
 */
function takeTypedFiles(parser: Writable, field: string): void {
  const seen = new WeakSet<HeadParser>();
  let current: HeadParser | null = null;
  Object.defineProperty(parser, '_hparser', {
    get: () => current,
    set(next: HeadParser | null) {
      current = next;
      if (next === null || seen.has(next)) return;
      seen.add(next);
      const read = next.cb;
      next.cb = (head) => {
        const [type = 'text/plain'] = head['content-type'] ?? [];
        const [disposition = ''] = head['content-disposition'] ?? [];
        const [, name] = /;\s*name="?([^";]+)/i.exec(disposition) ?? [];
        if (name === field && !/^\s*text\//i.test(type)) head['content-type'] = ['application/octet-stream'];
        read(head);
      };
    },
  });
}
