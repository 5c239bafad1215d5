/** Asks a gateway for the text of a file, as any client of the API does. */
import { once } from 'node:events';
import { openAsBlob } from 'node:fs';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { basename } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { reachedAt } from '../address.ts';
import { BUSY_SEC, bytesOf, piecesOf, type Question, RequestError, readable } from './question.ts';

export interface Asked extends Question {
  /** The gateway, as `http://host:port` or `unix:/path`. */
  base: string;
  key: string | undefined;
  /** After its abort nothing more is sent, but the request under way goes on; `signal` if it is absent. */
  until?: AbortSignal | undefined;
  /** Called with the message of the gateway each time that it is busy and will be asked again. */
  onBusy?: ((message: string) => void) | undefined;
}

const LONGEST_REST_SEC = 60;
/** A gateway that is overloaded does not say when to come again. */
const OVERLOADED_REST_SEC = 5;
/** The types of the answers of a gateway. A login page or a web server answers 200, too, and with something else. */
const TEXTS = ['text/plain', 'application/json', 'text/event-stream'] as const;
/** A connection whose other end is gone is noticed, also while a long file is heard and no byte is sent. */
const KEEP_ALIVE_MS = 30_000;

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
    const { 'content-type': type = TEXTS[0] } = headers;
    if (statusCode === 200 && !TEXTS.some((text) => type.startsWith(text))) {
      response.destroy();
      throw new Error(`${asked.base} is no gateway: it answered with ${type}`);
    }
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
  request.on('error', () => undefined); // `once` below rejects with it; a later error must not end the process
  request.on('socket', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
  const answered = once(request, 'response', { signal });
  let unread: unknown;
  async function* content() {
    yield parts.subarray(0, endOfFile);
    try {
      yield* piecesOf(file, typeof audio === 'string' ? audio : 'The audio');
    } catch (error) {
      unread = error;
      throw error;
    }
    yield parts.subarray(endOfFile);
  }
  // The gateway may refuse before it has the whole file. Then sending fails, and the answer says why.
  pipeline(content, request).catch((error) => request.destroy(error));
  try {
    const [response] = await answered;
    return response;
  } catch (error) {
    throw unread ?? error; // where the file could not be read, the request fails with a less helpful error
  }
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
