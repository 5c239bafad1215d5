/** A question for the text of a file, and how it fails, whether a gateway is asked or this process answers. */
import { access, constants, realpath, stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import { addAbortSignal, type Readable } from 'node:stream';
import { parsedJson } from '../parsed-json.ts';
import { readUpTo } from '../streams.ts';
import type { Fields } from './transcribe-fields.ts';

export interface Question {
  /** The path of a file, or the bytes of one. */
  audio: string | Blob;
  fields: Fields;
  signal: AbortSignal;
  /** Called with each segment as soon as it is known; only for texts without speakers. */
  onSegment?: ((segment: { delta: string; end: number }) => void) | undefined;
  /** Called with the second of the audio up to which the text is known; a gateway tells it with segments only. */
  onTextUntil?: ((sec: number) => void) | undefined;
}

export interface Transcriber extends AsyncDisposable {
  /**
   * The body that a gateway answers.
   * @throws RequestError with the message of the API
   * @throws Error with the path of a file that cannot be read
   * @throws `signal.reason` after an abort
   */
  ask(question: Question): Promise<string>;
  /** The seconds of audio that the head of a file tells; null where it tells none. Absent where the files are not read. */
  durationOf?: (path: string) => Promise<number | null>;
}

/** A gateway that is busy is asked again for this long: the slot may serve somebody else's long file. */
export const BUSY_SEC = 3600;
const MOST_BYTES = 256 * 1024 * 1024;
const PIECE_BYTES = 1024 * 1024;

/** A gateway answered with an error. The message is a sentence for people; programs look at `status` and `kind`. */
export class RequestError extends Error {
  override readonly name = 'RequestError';
  /** Of HTTP. */
  readonly status: number;
  /** One of the error kinds of the API; undefined where something else than a gateway answered. */
  readonly kind: string | undefined;
  /** The code of the API; undefined where something else than a gateway answered. */
  readonly code: string | undefined;

  constructor(status: number, body: string) {
    const { message, kind, code } = errorIn(body);
    super(status === 200 || kind !== undefined ? message : `${message} (status ${status})`);
    this.status = status;
    this.kind = kind;
    this.code = code;
  }
}

export const STDIN = '/dev/stdin';
/** What a shell has opened for the command: `<(arecord …)` and standard input. */
const OPENED = /^\/dev\/(?:stdin|fd\/(\d+))$/;

/**
 * The path of a file, or the bytes of a pipe. A pipe can be read only once, and a busy gateway is asked several times,
 * so its bytes are kept. A pipe that the shell has not opened is refused, because opening it may block the process.
 */
export async function readable(path: string, signal: AbortSignal): Promise<string | Blob> {
  const info = await stat(path);
  const opened = OPENED.exec(path);
  // Standard input is a socket under ssh. Under sudo its owner is another user, and it can be read all the same.
  const isPipe = opened !== null && (info.isFIFO() || info.isSocket());
  if (!isPipe) await access(path, constants.R_OK);
  // ffmpeg would find a file of its own at /dev/stdin.
  if (info.isFile()) return opened === null ? path : await realpath(path).catch(() => path);
  if (!isPipe) throw new Error(`${path} is no regular file`);
  const pipe = new Socket({ fd: Number(opened[1] ?? 0), readable: true, writable: false });
  const tooLong = `${path} has more than ${MOST_BYTES / 1024 ** 2} MiB: give a file`;
  return new Blob([await bytesOf(addAbortSignal(signal, pipe), tooLong)]);
}

/**
 * The stream of a Blob that is left before its end would keep the file open until Node collects it.
 * @param name stands in the error when it cannot be read
 */
export async function* piecesOf(content: Blob, name: string): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < content.size; at += PIECE_BYTES) {
    const piece = content.slice(at, at + PIECE_BYTES).arrayBuffer();
    yield new Uint8Array(
      await piece.catch((cause) => {
        throw new Error(`${name} cannot be read`, { cause });
      }),
    );
  }
}

/** @throws Error with this message for more than is kept in memory */
export async function bytesOf(stream: Readable, tooLong: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  if (!(await readUpTo(stream, MOST_BYTES, chunks))) throw new Error(tooLong);
  return Buffer.concat(chunks);
}

function errorIn(body: string): { message: string; kind?: string; code?: string } {
  const { error } = Object(parsedJson(body));
  if (error) return { message: String(error.message), kind: error.kind, code: error.code };
  return { message: body.slice(0, 200) || 'The gateway said nothing' };
}
