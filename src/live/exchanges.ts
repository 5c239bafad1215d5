/** The records of live sessions: when a request came, how long it took and how it ended. */
import type { GatewayError } from '../errors.ts';
import { toGatewayError } from '../http/error-handler.ts';
import { classify, type Exchange } from '../observability/exchange.ts';
import type { LiveEvent } from '../transcription/live/live-session.ts';

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

type Outcome = LiveEvent & { type: 'completed' | 'failed' };

/**
 * The record of an utterance, as of a request that arrived when its speech ended.
 * @param client who spoke, how, and to which model until one is chosen
 */
export function utteranceExchange(
  event: Outcome,
  client: Pick<Exchange, 'method' | 'path' | 'model' | 'bytesIn' | 'clientIp' | 'userAgent'>,
): Exchange {
  const { id, audioSec, tookMs } = event;
  const error = event.type === 'failed' ? toGatewayError(event.error) : null;
  const common = {
    ...client,
    ...endingOf(tookMs, error),
    requestId: id,
    category: 'asr' as const,
    bytesOut: 0,
    audioSec: rounded(audioSec, 3),
  };
  if (event.type === 'failed') return { ...common, provider: error?.provider ?? 'voxgate' };
  const { route, summary, slotWaitMs } = event.outcome;
  return {
    ...common,
    provider: route.model.provider,
    model: route.model.id,
    route: route.reason,
    slotWaitMs: rounded(slotWaitMs),
    language: summary.language,
    rtf: rounded(summary.tookSec / audioSec, 4),
  };
}
