/** Asks a gateway for the text of a file, as any client of the API does. */
import { once } from 'node:events';
import { openAsBlob } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { Socket } from 'node:net';
import { basename } from 'node:path';
import { createInterface } from 'node:readline';
import { addAbortSignal, type Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { reachedAt } from '../address.ts';
import type { Fields } from './transcribe-fields.ts';

export interface Asked {
  /** The gateway, as `http://host:port` or `unix:/path`. */
  base: string;
  key: string | undefined;
  /** The path of a file, or the bytes of one. */
  audio: string | Blob;
  fields: Fields;
  signal: AbortSignal;
  /** After its abort nothing more is sent, but the request under way goes on; `signal` if it is absent. */
  until?: AbortSignal | undefined;
  /** Called with the message of the gateway each time that it is busy and will be asked again. */
  onBusy?: ((message: string) => void) | undefined;
  /** Called with each segment as soon as it is known; only for texts without speakers. */
  onSegment?: ((segment: { delta: string; end: number }) => void) | undefined;
}

/** A gateway that is busy is asked again for this long: the slot may serve somebody else's long file. */
export const BUSY_SEC = 3600;
const LONGEST_REST_SEC = 60;
/** A gateway that is overloaded does not say when to come again. */
const OVERLOADED_REST_SEC = 5;
/** A connection whose other end is gone is noticed, also while a long file is heard and no byte is sent. */
const KEEP_ALIVE_MS = 30_000;
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

/**
 * The body of the answer.
 * @throws RequestError with the message of the gateway
 * @throws Error with the path of a file that cannot be read
 * @throws the reason of `signal` or `until` after an abort
 */
export async function askFor(asked: Asked): Promise<string> {
  try {
    return await askWhileBusy(asked);
  } catch (error) {
    asked.signal.throwIfAborted(); // what is thrown after an abort is mostly the AbortError of Node
    throw error;
  }
}

async function askWhileBusy(asked: Asked): Promise<string> {
  const { signal, until = signal } = asked;
  const startedAt = performance.now();
  const audio = typeof asked.audio === 'string' ? await readable(asked.audio, signal) : asked.audio;
  for (;;) {
    const response = await send({ ...asked, audio, until });
    const { statusCode = 0, headers } = response;
    if (statusCode === 200 && asked.onSegment) return await streamedText(response, asked.onSegment);
    const body = (await bytesOf(response, 'The answer is too long')).toString();
    if (statusCode === 200) return body;
    const refusal = new RequestError(statusCode, body);
    const restSec = Number(
      headers['retry-after'] ?? (refusal.code === 'overloaded' ? OVERLOADED_REST_SEC : 0),
    );
    const isBusy = statusCode === 503 && restSec > 0 && performance.now() - startedAt < BUSY_SEC * 1000;
    if (!isBusy) throw refusal;
    asked.onBusy?.(refusal.message);
    const restMs = Math.min(restSec, LONGEST_REST_SEC) * 1000;
    await sleep(restMs, undefined, { signal: until }).catch(() => until.throwIfAborted());
  }
}

/** What a shell has opened for the command: `<(arecord …)` and `/dev/stdin`. */
const OPENED = /^\/dev\/(?:stdin|fd\/(\d+))$/;

/**
 * The path of a file, or the bytes of a pipe. A pipe can be read only once, and a busy gateway is asked several times,
 * so its bytes are kept. A pipe that the shell has not opened is refused, because opening it may block the process.
 */
async function readable(path: string, signal: AbortSignal): Promise<string | Blob> {
  const info = await stat(path);
  await access(path, constants.R_OK);
  if (info.isFile()) return path;
  const opened = OPENED.exec(path);
  if (opened === null || !info.isFIFO()) throw new Error(`${path} is no regular file`);
  const pipe = new Socket({ fd: Number(opened[1] ?? 0), readable: true, writable: false });
  const tooLong = `${path} has more than ${MOST_BYTES / 1024 ** 2} MiB: give a file`;
  return new Blob([await bytesOf(addAbortSignal(signal, pipe), tooLong)]);
}

async function send({
  base,
  key,
  audio,
  fields: given,
  signal,
  until,
  onSegment,
}: Asked): Promise<IncomingMessage> {
  const fields = { ...given, ...(onSegment && { stream: 'true' }) };
  const form = new FormData();
  for (const [name, value] of Object.entries(fields))
    for (const one of [value].flat()) form.append(Array.isArray(value) ? `${name}[]` : name, one);
  const [file, name] =
    typeof audio === 'string' ? [await openAsBlob(audio), basename(audio)] : [audio, 'audio'];
  form.append('file', new Blob([]), name); // the bytes of the file are put in below
  const encoded = new Response(form);
  const parts = Buffer.from(await encoded.arrayBuffer());
  const endOfFile = parts.lastIndexOf('\r\n--');
  until?.throwIfAborted();
  const { url: origin, socketPath } = reachedAt(base);
  const url = `${origin}/v1/audio/transcriptions`;
  // Fetch gives up when no header has come for 5 min, and a long file takes longer.
  const request = (url.startsWith('https:') ? requestHttps : requestHttp)(url, {
    method: 'POST',
    socketPath,
    headers: {
      'Content-Type': encoded.headers.get('Content-Type') ?? '',
      Prefer: `wait=${BUSY_SEC}`, // a gateway that lets clients wait for the slot (RFC 7240) needs no second upload
      ...(key !== undefined && { Authorization: `Bearer ${key}` }),
    },
    signal,
  });
  request.on('error', () => undefined); // `once` below tells it, and after the answer or an abort nobody needs it
  request.on('socket', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
  const answered = once(request, 'response', { signal });
  let unread: unknown;
  async function* content() {
    yield parts.subarray(0, endOfFile);
    try {
      yield* piecesOf(file);
    } catch (error) {
      unread = new Error(`${typeof audio === 'string' ? audio : 'The audio'} cannot be read`, {
        cause: error,
      });
      throw error;
    }
    yield parts.subarray(endOfFile);
  }
  // A refusal may come before the file is sent; what fails then is told by the answer or by the request itself.
  pipeline(content, request).catch((error) => request.destroy(error));
  try {
    const [response] = await answered;
    return response;
  } catch (error) {
    throw unread ?? error; // the request only knows that it was not sent whole
  }
}

/** The stream of a Blob that is left before its end would keep the file open until Node collects it. */
async function* piecesOf(file: Blob): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < file.size; at += PIECE_BYTES)
    yield new Uint8Array(await file.slice(at, at + PIECE_BYTES).arrayBuffer());
}

async function bytesOf(stream: Readable, tooLong: string): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of stream) {
    bytes += part.length;
    if (bytes > MOST_BYTES) throw new Error(tooLong);
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/**
 * The text of a stream, as the whole answer has it.
 * @throws RequestError for a failure on the way
 */
async function streamedText(stream: Readable, onSegment: NonNullable<Asked['onSegment']>): Promise<string> {
  for await (const line of createInterface({ input: stream })) {
    if (!line.startsWith('data: ')) continue;
    const event = JSON.parse(line.slice('data: '.length));
    if (event.type === 'transcript.text.delta') onSegment(event);
    else if (event.type === 'transcript.text.done') return `${event.text}\n`;
    else if (event.type === 'error') throw new RequestError(200, JSON.stringify(event));
  }
  throw new Error('The answer broke off');
}

function errorIn(body: string): { message: string; kind?: string; code?: string } {
  try {
    const { message, kind, code } = JSON.parse(body).error;
    return { message: String(message), kind, code };
  } catch {
    return { message: body.slice(0, 200) || 'The gateway said nothing' };
  }
}
