/** The record of an utterance, in which it is a request that arrived when its speech ended. */

import { toGatewayError } from '../http/error-handler.ts';
import { classify, type Exchange } from '../observability/exchange.ts';
import type { LiveEvent } from '../transcription/live/live-session.ts';

type Outcome = LiveEvent & { type: 'completed' | 'failed' };

/** @param client who spoke, how, and to which model until one is chosen */
export function utteranceExchange(
  event: Outcome,
  client: Pick<Exchange, 'method' | 'path' | 'model' | 'bytesIn' | 'clientIp' | 'userAgent'>,
): Exchange {
  const { id, audioSec, tookMs } = event;
  const round = (value: number, digits: number) => Number(value.toFixed(digits));
  const common = {
    ...client,
    requestId: id,
    at: new Date(Date.now() - tookMs),
    category: 'asr' as const,
    latencyMs: round(tookMs, 2),
    bytesOut: 0,
    audioSec: round(audioSec, 3),
  };
  if (event.type === 'failed') {
    const { status, code, kind, provider } = toGatewayError(event.error);
    return { ...common, provider, status, class: classify(status, kind, code), errorKind: kind };
  }
  const { route, summary, slotWaitMs } = event.outcome;
  return {
    ...common,
    provider: route.model.provider,
    model: route.model.id,
    route: route.reason,
    status: 200,
    class: classify(200),
    slotWaitMs: round(slotWaitMs, 2),
    language: summary.language,
    rtf: round(summary.tookSec / audioSec, 4),
  };
}
