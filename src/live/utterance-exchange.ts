/** Records an utterance like a request that arrived when its speech ended. */

import { toGatewayError } from '../http/error-handler.ts';
import type { Exchange } from '../observability/exchange.ts';
import type { LiveEvent } from '../transcription/live/live-session.ts';
import { endingOf, rounded } from './ending.ts';

type Outcome = LiveEvent & { type: 'completed' | 'failed' };

/** @param client who spoke, how, and to which model until one is chosen */
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
