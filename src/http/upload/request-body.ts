/**
 * What all large bodies have in common: a place of their own from before they are read, a least rate, a longest time and
 * a largest size. Uploads (`upload.ts`) and the bodies of speech and chat calls (`proxied-body.ts`) are read by these
 * rules, and share one spool and its places.
 */
import type { IncomingMessage } from 'node:http';
import type { Request, Response } from 'express';
import { onAbort } from '../../abort.ts';
import { GatewayError, type GatewayErrorOptions } from '../../errors.ts';
import type { Budgets } from '../../limits/budgets.ts';
import { watchSending } from '../../limits/client-pace.ts';
import { networkOf } from '../../limits/network.ts';
import {
  type Claim,
  createUploadBalance,
  type UploadBalance,
  type UploadPlaces,
} from '../../limits/upload-places.ts';
import type { Spool } from './spool.ts';

/** Where bodies are stored, and within which limits. */
export interface BodyStorage {
  spool: Spool;
  places: UploadPlaces;
  /** The largest file or body. */
  maxBytes: number;
  limits: Budgets['upload'];
}

/** A body on its way. */
export interface Arrival {
  req: Request;
  /** What the places see of it. */
  claim: Claim;
  balance: UploadBalance;
  /** Aborts when the client leaves, and when the place of the body goes to another one. */
  signal: AbortSignal;
}

/** @param signal aborts when the client leaves */
export function arrivalOf(req: Request, signal: AbortSignal, limits: Budgets['upload']): Arrival {
  const balance = createUploadBalance(limits);
  const replaced = new AbortController();
  const claim: Claim = {
    network: networkOf(req.ip ?? ''),
    behindMs() {
      if (req.complete) return null;
      return asksToContinue(req) ? 0 : balance.behindMs(req.readableLength);
    },
    giveUp: (reason) => replaced.abort(reason),
    signal,
  };
  return { req, claim, balance, signal: AbortSignal.any([signal, replaced.signal]) };
}

export interface ArrivalWatch {
  /** The most bytes of the body. */
  mostBytes: number;
  /** The refusal of a body that has more. */
  tooLarge: GatewayError;
  /** False while the reader pauses, so that the client cannot send. */
  isReading(): boolean;
  onChunk(chunk: Buffer): void;
  /** Ends the reading. It may be called several times. */
  fail(reason: unknown): void;
}

/**
 * Holds the body to its limits. It must be called in the turn in which the body begins to be read, because its listener
 * starts the flow, and an earlier one would lose data. Returns what must be called when the body was read.
 */
export function watchArrival(
  { req, signal, balance }: Arrival,
  limits: Budgets['upload'],
  { mostBytes, tooLarge, isReading, onChunk, fail }: ArrivalWatch,
): () => void {
  let bytes = 0;
  const read = (chunk: Buffer) => {
    onChunk(chunk);
    balance.received(chunk.length);
    bytes += chunk.length;
    if (bytes > mostBytes) fail(tooLarge);
  };
  const leaving = onAbort(signal, () => fail(signal.reason));
  req.on('data', read);
  const stop = watchSending(req, limits, { isItsTurn: () => !req.complete && isReading(), late: fail });
  const total = setTimeout(() => fail(new GatewayError('request_timeout', {})), limits.totalMs);
  return () => {
    leaving[Symbol.dispose]();
    clearTimeout(total);
    stop();
    balance.end();
  };
}

export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || announcedBytes({ headers }) > 0;
}

/** The length that the client announced; 0 when it announced none. */
export function announcedBytes({ headers }: Pick<IncomingMessage, 'headers'>): number {
  return Number(headers['content-length'] ?? 0);
}

/** True for a body in a content coding, in which a parser of forms would find no form. */
export const isCoded = ({ headers }: Pick<IncomingMessage, 'headers'>): boolean =>
  !['', 'identity'].includes(headers['content-encoding']?.trim().toLowerCase() ?? '');

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

/** HTTP/1.0 knows no interim answers, so there the field is ignored (RFC 9110, section 10.1.1). */
const asksToContinue = (req: Request) =>
  req.httpVersion !== '1.0' && req.get('Expect')?.toLowerCase() === '100-continue';

export function tooLarge(maxBytes: number, options: GatewayErrorOptions = {}): GatewayError {
  const megabytes = Number((maxBytes / 1024 / 1024).toFixed(3));
  return new GatewayError('file_too_large', { maxMb: megabytes }, options);
}
