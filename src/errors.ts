/**
 * Every failure the gateway can answer with. The table is that of contract 7: a code has one kind and one
 * HTTP status. `error-handler.ts` is the only place that turns one of these into a response.
 */

/** Kind (what clients branch on) to HTTP status. */
const STATUS_OF_KIND = {
  malformed: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  too_large: 413,
  cancelled: 499,
  internal: 500,
  upstream: 502,
  network: 503,
} as const;

export type ErrorKind = keyof typeof STATUS_OF_KIND;
export const ERROR_KINDS = Object.keys(STATUS_OF_KIND) as [ErrorKind, ...ErrorKind[]];

export interface GatewayErrorOptions {
  /** Who produced the failure: `voxgate` itself (the default), or the model family or upstream it speaks for. */
  provider?: string;
  /** The request field at fault, as OpenAI's `error.param`. */
  param?: string;
  /** A short stable identifier, as OpenAI's `error.code`, e.g. `slot_busy`. */
  code?: string;
  /** An HTTP status that says more than the kind's, of the same hundred. */
  status?: number;
  /** Seconds for `Retry-After`; only back-pressure carries it. */
  retryAfterSec?: number;
  /** Further members of the `error` object; `heldBy` is `held_by` on the wire. */
  details?: Record<string, string | number>;
  cause?: unknown;
}

/** What was sent, cut short enough to stand in a message. */
export function excerpt(sent: string, maxCharacters = 80): string {
  return sent.length > maxCharacters ? `${sent.slice(0, maxCharacters)}…` : sent;
}

export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly kind: ErrorKind;
  readonly provider: string;
  readonly param: string | null;
  readonly code: string | null;
  readonly status: number;
  readonly retryAfterSec: number | undefined;
  readonly details: Readonly<Record<string, string | number>>;

  constructor(kind: ErrorKind, message: string, options: GatewayErrorOptions = {}) {
    // A refusal is found by its code. Walking the stack for each would be the dearest part of refusing, just when
    // there is most to refuse.
    const { stackTraceLimit } = Error;
    if (kind !== 'internal') Error.stackTraceLimit = 0;
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    Error.stackTraceLimit = stackTraceLimit;
    this.kind = kind;
    this.provider = options.provider ?? 'voxgate';
    this.param = options.param ?? null;
    this.code = options.code ?? null;
    this.status = options.status ?? STATUS_OF_KIND[kind];
    this.retryAfterSec = options.retryAfterSec;
    this.details = options.details ?? {};
  }
}

/** The message with those of its causes: for the log and the command line, never for a client. */
export function fullMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${fullMessage(error.cause)}`;
}
