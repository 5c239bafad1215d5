/**
 * Watches every request from its arrival to its last byte, and then reports it once to the instruments, however it
 * ended. Handlers write what they learn about a request into its notes.
 */
import { isIP } from 'node:net';
import type { RequestHandler, Response } from 'express';
import type { CaptureWriter } from '../capture/capture.ts';
import type { Category } from '../category.ts';
import type { GatewayError } from '../errors.ts';
import { type HoldsKey, MASKED } from '../gateway-keys.ts';
import { classify, type Exchange } from '../observability/exchange.ts';
import type { Instruments } from '../observability/instruments.ts';
import { onceOver } from './server/client-signal.ts';

export interface Notes {
  readonly requestId: string;
  category: Category | undefined;
  model: string | undefined;
  route: string | undefined;
  provider: string;
  language: string | undefined;
  audioSec: number | undefined;
  rtf: number | undefined;
  speakers: number | undefined;
  diarizationSec: number | undefined;
  /** The time that a request with `Prefer: wait` waited for the slot. */
  waitedMs: number | undefined;
  /** The failure. Set it before destroying the connection, or the request counts as one that its client left. */
  error: GatewayError | undefined;
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

export interface Observer {
  watch: RequestHandler;
}

export interface ObserverDeps extends Pick<Instruments, 'finished' | 'beginCapture'> {
  holdsKey: HoldsKey;
}

export function createObserver({ holdsKey, ...instruments }: ObserverDeps): Observer {
  const watch: RequestHandler = (req, res, next) => {
    const at = new Date();
    const startedAt = performance.now();
    // The value is rounded here, so that the metrics and the log agree to the last digit.
    const sinceArrival = () => Math.round((performance.now() - startedAt) * 100) / 100;
    // A trusted proxy names the client. It may forward a name from further away, which need not be an address.
    const clientIp = isIP(req.ip ?? '') ? req.ip : req.socket.remoteAddress;
    const path = req.originalUrl.split('?', 1)[0] ?? '';
    const requestHeaders = withoutKeys(req.headers, holdsKey);
    let bytesIn = 0;
    let bytesOut = 0;
    let slotWaitMs: number | undefined;
    let capture: CaptureWriter | null | undefined;
    const captured = () => {
      if (capture === undefined)
        capture = notes.category ? instruments.beginCapture(notes.requestId, at) : null;
      return capture;
    };
    const notes: Notes = {
      requestId: res.locals.requestId,
      category: undefined,
      model: undefined,
      route: undefined,
      provider: 'voxgate',
      language: undefined,
      audioSec: undefined,
      rtf: undefined,
      speakers: undefined,
      diarizationSec: undefined,
      waitedMs: undefined,
      error: undefined,
      slotTaken: () => {
        slotWaitMs = sinceArrival();
      },
      requestBody: (chunk) => {
        bytesIn += chunk.length;
        captured()?.request(chunk);
      },
    };
    res.locals.notes = notes;
    // A request refused because of a busy slot is not worth a folder. A request without access is not captured either,
    // because strangers must not be able to fill the disk.
    const isRefused = () =>
      notes.error?.code === 'slot_busy' || ['unauthorized', 'forbidden'].includes(notes.error?.kind ?? '');
    onResponseBody(res, (chunk) => {
      bytesOut += chunk.length;
      if (!isRefused()) captured()?.response(chunk);
    });

    const finish = (delivered: boolean) => {
      const { error, requestId, category, model, route, language, audioSec, rtf } = notes;
      const { speakers, diarizationSec, waitedMs } = notes;
      const left = error === undefined && !delivered;
      const status = left ? 499 : (error?.status ?? res.statusCode);
      const errorKind = left ? 'cancelled' : error?.kind;
      const exchange: Exchange = {
        ...{ requestId, at, method: req.method, path, category, model, route },
        // A client leaves the provider that works for it.
        provider: (error?.kind === 'cancelled' ? undefined : error?.provider) ?? notes.provider,
        status,
        class: classify(status, errorKind, error?.code),
        ...{ latencyMs: sinceArrival(), slotWaitMs, bytesIn, bytesOut },
        ...{ clientIp, userAgent: requestHeaders['user-agent'], audioSec, rtf, language },
        ...{ speakers, diarizationSec, waitedMs },
        errorKind,
      };
      if (isRefused()) {
        capture?.abandon(); // the body may have been read by then
      } else {
        const responseHeaders = withoutKeys(res.getHeaders(), holdsKey);
        captured()?.finish({
          ...{ exchange, url: req.originalUrl, complete: req.complete, requestHeaders, responseHeaders },
          errorMessage: error?.message,
        });
      }
      instruments.finished(exchange);
    };
    // When a failure breaks the connection, 'close' comes before the handler has noted the failure. One turn of the
    // event loop later the note is there.
    onceOver(res, (delivered) => {
      if (delivered) finish(true);
      else setImmediate(finish, false);
    });
    next();
  };
  return { watch };
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
