/** The `meta.json` of a capture: a view of the exchange, and the headers without secrets. */
import { MASKED } from '../gateway-keys.ts';
import type { Exchange } from '../observability/exchange.ts';

export interface CaptureMeta {
  exchange: Exchange;
  /** The path with the query. */
  url: string;
  requestHeaders: Headers;
  responseHeaders: Headers;
  /** False where the client did not send all of the body, or was answered before its end. */
  complete: boolean;
  /** The message of the error envelope. */
  errorMessage?: string | undefined;
}

/**
 * The text of meta.json.
 * @param isCut true when not all of a body was kept, because the disk was too slow or the capture too large
 */
export function renderMeta(meta: CaptureMeta, isCut: boolean): string {
  const { exchange } = meta;
  const failed = exchange.errorKind !== undefined || meta.errorMessage !== undefined;
  return `${JSON.stringify(
    {
      request_id: exchange.requestId,
      method: exchange.method,
      url: meta.url,
      request_headers: scrubHeaders(meta.requestHeaders),
      response_headers: scrubHeaders(meta.responseHeaders),
      status: exchange.status,
      class: exchange.class,
      timings: {
        at: exchange.at.toISOString(),
        latency_ms: exchange.latencyMs,
        slot_wait_ms: exchange.slotWaitMs,
      },
      model: exchange.model,
      route: exchange.route,
      error: failed ? { kind: exchange.errorKind, message: meta.errorMessage } : undefined,
      truncated: isCut || !meta.complete || undefined,
    },
    null,
    2,
  )}\n`;
}

/** The names that carry credentials end with one of these words, such as `X-Api-Key` or `Proxy-Authorization`. */
const SECRET = /(^|[-_])(authorization|cookie|api-?key|token|secret|password)$/i;

export type Headers = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/**
 * A copy with `***` for the value of each header with credentials, in any case. Undefined values are left out. The
 * gateway's own keys were found by their value before, and bodies are captured unchanged.
 */
export function scrubHeaders(headers: Headers): Record<string, string | number | readonly string[]> {
  const scrubbed: [string, string | number | readonly string[]][] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) scrubbed.push([name, SECRET.test(name) ? MASKED : value]);
  }
  return Object.fromEntries(scrubbed);
}
