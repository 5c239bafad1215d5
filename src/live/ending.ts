/** What the records of all live sessions have in common: when a request came, how long it took, and how it ended. */
import type { GatewayError } from '../errors.ts';
import { classify, type Exchange } from '../observability/exchange.ts';

export const rounded = (value: number, digits = 2): number => Number(value.toFixed(digits));

/** @param error why it failed; null where it did not */
export function endingOf(tookMs: number, error: GatewayError | null) {
  const failure = error && { errorKind: error.kind, errorCode: error.code, errorMessage: error.message };
  return {
    at: new Date(Date.now() - tookMs),
    latencyMs: rounded(tookMs),
    status: error?.status ?? 200,
    class: error === null ? classify(200) : classify(error.status, error.kind, error.code),
    ...failure,
  } satisfies Partial<Exchange>;
}
