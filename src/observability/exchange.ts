/**
 * What is known of one request when it is over. `http/observe.ts` makes one for each; metrics, access log and
 * Prometheus series are views of it, so that they can never disagree.
 */
import type { Category } from '../category.ts';
import type { ErrorKind } from '../errors.ts';

/** `503-busy` is load shedding and `client-disconnect` the client's own choice: neither is an error. */
export const TRAFFIC_CLASSES = ['2xx', '4xx', '5xx', '503-busy', 'client-disconnect'] as const;
export type TrafficClass = (typeof TRAFFIC_CLASSES)[number];

export interface Exchange {
  requestId: string;
  /** Arrival. */
  at: Date;
  method: string;
  /** Without the query. */
  path: string;
  /** Absent on what is not inference: models, health, pages, admin. */
  category?: Category | undefined;
  model?: string | undefined;
  /** `requested`, or `auto:` and the rule. */
  route?: string | undefined;
  provider: string;
  /** As it ended: 499 for a client that left, the failure's own after a stream broke. */
  status: number;
  class: TrafficClass;
  /** From arrival to the last byte. */
  latencyMs: number;
  /** From arrival to the slot: upload and validation; nobody ever queues. Absent when the slot was not taken. */
  slotWaitMs?: number | undefined;
  /** Of the bodies. */
  bytesIn: number;
  bytesOut: number;
  clientIp?: string | undefined;
  userAgent?: string | undefined;
  audioSec?: number | undefined;
  /** Real-time factor: seconds the slot was held for a second of audio. */
  rtf?: number | undefined;
  /** ISO 639. */
  language?: string | undefined;
  errorKind?: ErrorKind | undefined;
}

/** @param status of the answer; 1xx and 3xx count as success */
export function classify(status: number, code: string | null): TrafficClass {
  if (status === 499) return 'client-disconnect';
  if (code === 'slot_busy') return '503-busy';
  if (status >= 500) return '5xx';
  return status >= 400 ? '4xx' : '2xx';
}
