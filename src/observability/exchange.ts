/**
 * The record of one request, made when the request is over. `http/observe.ts` makes one for each request. Metrics,
 * access log and Prometheus series are all views of it, so that they can never disagree.
 */
import type { Category } from '../category.ts';
import type { ErrorKind } from '../errors.ts';

/** `503-busy` is load shedding and `client-disconnect` is the choice of the client, so neither counts as an error. */
export const TRAFFIC_CLASSES = ['2xx', '4xx', '5xx', '503-busy', 'client-disconnect'] as const;
export type TrafficClass = (typeof TRAFFIC_CLASSES)[number];

export interface Exchange {
  requestId: string;
  /** When the request arrived. */
  at: Date;
  /** Absent, as the path is, when the head of the request could not be read. */
  method?: string | undefined;
  /** The path without the query. */
  path?: string | undefined;
  /** Absent on requests that are not inference: models, health, pages, admin. */
  category?: Category | undefined;
  /** The id of the model that was chosen, or else the name that the client sent, which may be long. */
  model?: string | undefined;
  /** `requested`, or `auto:` and the rule. */
  route?: string | undefined;
  provider: string;
  /** The HTTP status of the answer; 499 when the client left, and the status of the failure after a broken stream. */
  status: number;
  class: TrafficClass;
  /** The time from arrival to the last byte; 0 when the head of the request could not be read. */
  latencyMs: number;
  /** The time from arrival to taking the slot: upload, validation, and a wait that was asked for. Absent when not taken. */
  slotWaitMs?: number | undefined;
  /** The time that a request with `Prefer: wait` waited; absent when it did not have to. */
  waitedMs?: number | undefined;
  /** Bytes of the request body that were read. */
  bytesIn: number;
  /** Bytes of the response body that were written. */
  bytesOut: number;
  clientIp?: string | undefined;
  userAgent?: string | undefined;
  audioSec?: number | undefined;
  /** Real-time factor: the seconds that the slot was held for each second of audio. */
  rtf?: number | undefined;
  /** The number of speakers found; absent when they were not told apart. */
  speakers?: number | undefined;
  /** The seconds spent on telling voices apart, within those that the slot was held. */
  diarizationSec?: number | undefined;
  /** ISO 639 code. */
  language?: string | undefined;
  errorKind?: ErrorKind | undefined;
  errorCode?: string | undefined;
  /** What the client was told. */
  errorMessage?: string | undefined;
  /** The name of the key that the request had; absent without one, and for a key that has none. */
  key?: string | undefined;
}

/**
 * The class that a request counts in.
 * @param status the HTTP status of the answer; 1xx and 3xx count as success
 * @param kind the kind of the failure, if there was one; an upstream may answer 499 to a client that stays
 * @param code the code of the failure
 */
export function classify(status: number, kind?: ErrorKind, code?: string): TrafficClass {
  if (kind === 'cancelled') return 'client-disconnect';
  if (code === 'slot_busy') return '503-busy';
  if (status >= 500) return '5xx';
  return status >= 400 ? '4xx' : '2xx';
}
