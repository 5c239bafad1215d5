/**
 * Watches every request from arrival to its last byte and hands on what is known of it then, once, however it
 * ended. Handlers leave what they learn on the way in the request's notes.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';
import type { RequestHandler, Response } from 'express';
import type { Category } from '../category.ts';
import type { GatewayError } from '../errors.ts';
import type { CaptureWriter } from '../observability/capture/capture.ts';
import { classify, type Exchange } from '../observability/exchange.ts';
import type { Instruments } from '../observability/instruments.ts';
import { onceOver } from './client-signal.ts';

export interface Notes {
  readonly requestId: string;
  category: Category | undefined;
  model: string | undefined;
  route: string | undefined;
  provider: string;
  language: string | undefined;
  audioSec: number | undefined;
  rtf: number | undefined;
  /** What it failed with; set before the connection is broken on purpose, or it would look like the client's doing. */
  error: GatewayError | undefined;
  /** The slot is taken now. */
  slotTaken(): void;
  /** A chunk of the body was read. */
  requestBody(chunk: Buffer): void;
}

export function notesOf(res: Response): Notes {
  return res.locals.notes;
}

/** What a route's traffic counts as. Only what has a category is counted and captured; OPTIONS only asks about it. */
export function countAs(category: Category): RequestHandler {
  return (req, res, next) => {
    if (req.method !== 'OPTIONS') notesOf(res).category = category;
    next();
  };
}

export interface Observer {
  watch: RequestHandler;
  /** Requests whose last byte is not out yet. */
  inFlight(): number;
}

export function createObserver(instruments: Pick<Instruments, 'finished' | 'beginCapture'>): Observer {
  let inFlight = 0;
  const watch: RequestHandler = (req, res, next) => {
    inFlight += 1;
    const at = new Date();
    const startedAt = performance.now();
    // Rounded once, so that metrics and log agree to the last digit.
    const sinceArrival = () => Math.round((performance.now() - startedAt) * 100) / 100;
    // As a trusted proxy says; what it passes on from further away may be no address at all.
    const clientIp = isIP(req.ip ?? '') ? req.ip : req.socket.remoteAddress;
    const path = req.originalUrl.split('?', 1)[0] ?? '';
    const requestHeaders: IncomingHttpHeaders = { ...req.headers };
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
    // A request refused for want of the slot was not read and is not worth a folder. One without the right to ask is
    // not captured either: strangers must not be able to fill the disk.
    const isRefused = () =>
      notes.error?.code === 'slot_busy' || ['unauthorized', 'forbidden'].includes(notes.error?.kind ?? '');
    onResponseBody(res, (chunk) => {
      bytesOut += chunk.length;
      if (!isRefused()) captured()?.response(chunk);
    });

    const finish = (delivered: boolean) => {
      const { error, requestId, category, model, route, language, audioSec, rtf } = notes;
      const left = error === undefined && !delivered;
      const status = left ? 499 : (error?.status ?? res.statusCode);
      const exchange: Exchange = {
        ...{ requestId, at, method: req.method, path, category, model, route },
        provider: error?.provider ?? notes.provider,
        status,
        class: classify(status, error?.code ?? null),
        ...{ latencyMs: sinceArrival(), slotWaitMs, bytesIn, bytesOut },
        ...{ clientIp, userAgent: requestHeaders['user-agent'], audioSec, rtf, language },
        errorKind: left ? 'cancelled' : error?.kind,
      };
      if (!isRefused()) {
        const responseHeaders = res.getHeaders();
        const errorMessage = error?.message;
        captured()?.finish({ exchange, url: req.originalUrl, requestHeaders, responseHeaders, errorMessage });
      }
      instruments.finished(exchange);
    };
    // A connection broken by a failure closes before whoever failed could say so; a turn of the loop later it has.
    onceOver(res, (delivered) => {
      inFlight -= 1;
      if (delivered) finish(true);
      else setImmediate(finish, false);
    });
    next();
  };
  return { watch, inFlight: () => inFlight };
}

/** Sees what is written as the response's body, before its framing. */
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
