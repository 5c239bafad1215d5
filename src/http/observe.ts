/**
 * Watches every request from its arrival to its last byte, and then reports it once to the instruments (metrics, access
 * log, capture), however it ended: answered, failed, or with a client that disconnected. Handlers write what they learn
 * about a request into its notes.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import type { Request, RequestHandler, Response } from 'express';
import type { CaptureWriter } from '../capture/capture.ts';
import type { Category } from '../category.ts';
import type { GatewayError } from '../errors.ts';
import { type HoldsKey, MASKED } from '../gateway-keys.ts';
import { classify, type Exchange } from '../observability/exchange.ts';
import type { Instruments } from '../observability/instruments.ts';
import { onceOver } from './server/client-signal.ts';

export interface Notes
  extends Pick<Exchange, 'requestId' | 'category' | 'model' | 'route' | 'provider' | 'language' | 'audioSec'>,
    Pick<Exchange, 'rtf' | 'speakers' | 'diarizationSec' | 'waitedMs' | 'key'> {
  /** The failure. Set it before destroying the connection, or the request counts as one that its client left. */
  error?: GatewayError | undefined;
  /** Called when the request has taken the slot. */
  slotTaken(): void;
  /** Called for every chunk of the body that is read. */
  requestBody(chunk: Buffer): void;
}

export function notesOf(res: Response): Notes {
  return res.locals.notes;
}

/**
 * Sets the category of a route's requests. Requests without a category are neither counted nor captured. OPTIONS only
 * asks about the route, so it gets none.
 */
export function countAs(category: Category): RequestHandler {
  return (req, res, next) => {
    if (req.method !== 'OPTIONS') notesOf(res).category = category;
    next();
  };
}

export function observeRequests({
  holdsKey,
  ...instruments
}: Pick<Instruments, 'finished' | 'beginCapture'> & { holdsKey: HoldsKey }): RequestHandler {
  return (req, res, next) => {
    const arrival = arrivalOf(req, holdsKey);
    const measured: Measured = { bytesIn: 0, bytesOut: 0, slotWaitMs: undefined };
    const notes: Notes = {
      requestId: res.locals.requestId,
      provider: 'voxgate',
      slotTaken: () => {
        measured.slotWaitMs = arrival.msSince();
      },
      requestBody: (chunk) => {
        measured.bytesIn += chunk.length;
        captured()?.request(chunk);
      },
    };
    res.locals.notes = notes;
    let capture: CaptureWriter | null | undefined;
    const captured = () => {
      if (capture === undefined)
        capture = notes.category ? instruments.beginCapture(notes.requestId, arrival.at) : null;
      return capture;
    };
    onResponseBody(res, (chunk) => {
      measured.bytesOut += chunk.length;
      if (!isUncaptured(notes)) captured()?.response(chunk);
    });

    const finish = (delivered: boolean) => {
      const exchange = exchangeOf(arrival, notes, measured, { delivered, status: res.statusCode });
      if (isUncaptured(notes)) {
        capture?.abandon(); // the body may have been read by then
      } else {
        captured()?.finish({
          exchange,
          url: req.originalUrl,
          complete: req.complete,
          requestHeaders: arrival.headers,
          responseHeaders: withoutKeys(res.getHeaders(), holdsKey),
          errorMessage: notes.error?.message,
        });
      }
      instruments.finished(exchange);
    };
    // When a failure breaks the connection, 'close' comes before the handler has noted the failure. One pass of the
    // event loop later the note is there.
    onceOver(res, (delivered) => {
      if (delivered) finish(true);
      else setImmediate(finish, false);
    });
    next();
  };
}

/** What is measured while a request runs. */
type Measured = Pick<Exchange, 'bytesIn' | 'bytesOut' | 'slotWaitMs'>;

/** What is known when a request arrives. */
interface Arrival extends Pick<Exchange, 'at' | 'method' | 'path' | 'clientIp'> {
  headers: IncomingHttpHeaders;
  msSince(): number;
}

function arrivalOf(req: Request, holdsKey: HoldsKey): Arrival {
  const startedAt = performance.now();
  return {
    at: new Date(),
    method: req.method,
    path: req.originalUrl.split('?', 1)[0] ?? '',
    // A trusted proxy names the client. It may forward a name from further away, which need not be an address.
    clientIp: isIP(req.ip ?? '') ? req.ip : req.socket.remoteAddress,
    headers: withoutKeys(req.headers, holdsKey),
    // The value is rounded here, so that the metrics and the log agree to the last digit.
    msSince: () => Math.round((performance.now() - startedAt) * 100) / 100,
  };
}

/**
 * A request refused because of a busy slot is not worth a folder. A request without access is not captured either,
 * because strangers must not be able to fill the disk.
 */
function isUncaptured({ error }: Notes): boolean {
  return error?.code === 'slot_busy' || ['unauthorized', 'forbidden'].includes(error?.kind ?? '');
}

function exchangeOf(
  arrival: Arrival,
  notes: Notes,
  measured: Measured,
  answer: { delivered: boolean; status: number },
): Exchange {
  const { headers, msSince, ...arrived } = arrival;
  const { error, provider, slotTaken, requestBody, ...noted } = notes;
  const left = error === undefined && !answer.delivered;
  const status = left ? 499 : (error?.status ?? answer.status);
  const errorKind = left ? 'cancelled' : error?.kind;
  return {
    ...arrived,
    ...noted,
    ...measured,
    // A client leaves the provider that works for it.
    provider: (error?.kind === 'cancelled' ? undefined : error?.provider) ?? provider,
    status,
    class: classify(status, errorKind, error?.code),
    latencyMs: msSince(),
    userAgent: headers['user-agent'],
    errorKind,
    errorCode: error?.code,
    errorMessage: error?.message,
  };
}

/** A copy in which a value that holds a key is masked. */
function withoutKeys<Headers extends NodeJS.Dict<string | string[] | number>>(
  headers: Headers,
  holdsKey: HoldsKey,
): Headers {
  const masked = { ...headers };
  for (const [name, value] of Object.entries(headers))
    if (holdsKey(String(value))) Object.assign(masked, { [name]: MASKED });
  return masked;
}

/** Calls `see` with each chunk of the response body, before it is framed for HTTP. */
function onResponseBody(res: Response, see: (chunk: Buffer) => void): void {
  const seen = (chunk: unknown, encoding: unknown) => {
    if (typeof chunk === 'string') {
      see(Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8'));
    } else if (chunk instanceof Uint8Array) {
      see(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    }
  };
  for (const name of ['write', 'end'] as const) {
    const original = res[name] as (...args: unknown[]) => unknown;
    res[name] = function watched(this: Response, ...args: unknown[]) {
      seen(args[0], args[1]);
      return original.apply(this, args);
    } as never;
  }
}
