/** The records of live sessions: when a request came, how long it took and how it ended. */
import type { ResponseOutcome, ResponseRequest, Stage } from '../conversation/response.ts';
import type { GatewayError } from '../errors.ts';
import { toGatewayError } from '../http/error-handler.ts';
import type { AnswerRecord, AnswerStage } from '../observability/answer-record.ts';
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

/**
 * The records of a response: a request to the chat daemon and, where it was spoken, one to the speech upstream.
 * @param client who asked, and how
 */
export function responseExchanges(
  { id }: ResponseRequest,
  { status, error: thrown, stages }: ResponseOutcome,
  client: Pick<Exchange, 'method' | 'path' | 'clientIp' | 'userAgent'>,
  speechModel: string,
): Exchange[] {
  const { model, slotWaitMs, chat, speech } = stages;
  const error = status === 'failed' ? toGatewayError(thrown) : null;
  const exchange = (
    stage: Stage | null,
    own: Pick<Exchange, 'category' | 'model' | 'provider'>,
  ): Exchange => {
    const tookMs = stage?.endMs ?? slotWaitMs ?? 0;
    // What an upstream did before the other one failed was not at fault.
    const failed = error !== null && [own.provider, 'voxgate'].includes(error.provider) ? error : null;
    return {
      ...client,
      ...own,
      requestId: id,
      ...endingOf(tookMs, failed),
      bytesIn: stage?.bytesIn ?? 0,
      bytesOut: stage?.bytesOut ?? 0,
      ...(slotWaitMs !== null && { slotWaitMs: rounded(slotWaitMs) }),
    };
  };
  return [
    exchange(chat, { category: 'llm', model, provider: 'llm' }),
    ...(speech === null ? [] : [exchange(speech, { category: 'tts', model: speechModel, provider: 'tts' })]),
  ];
}

/** The record of an answer as a whole. */
export function answerRecord({ status, reason, error: thrown, stages }: ResponseOutcome): AnswerRecord {
  const error = status === 'failed' ? toGatewayError(thrown) : null;
  const { textMs, slotWaitMs, chat, speech } = stages;
  // Each stage ends where the next one begins. All but the first are told from the beginning of the response.
  const ends: readonly [AnswerStage, number | null | undefined][] = [
    ['slot', slotWaitMs],
    ['chat', chat?.firstMs],
    ['speech', speech?.firstMs],
  ];
  const stagesMs: AnswerRecord['stagesMs'] = textMs === null ? {} : { text: textMs };
  let before = 0;
  for (const [stage, end] of ends) {
    if (end === null || end === undefined) break;
    stagesMs[stage] = end - before;
    before = end;
  }
  return {
    // A client that leaves has cancelled it.
    status: error?.kind === 'cancelled' ? 'cancelled' : status,
    reason: reason ?? error?.code ?? '',
    stagesMs,
    ...(textMs !== null && speech?.firstMs != null && { firstAudioMs: textMs + speech.firstMs }),
  };
}
