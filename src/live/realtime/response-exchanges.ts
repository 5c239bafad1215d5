/**
 * The records of a response: a request to the chat daemon and, where it was spoken, one to the speech upstream; and that
 * of the answer as a whole.
 */
import type { ResponseOutcome, ResponseRequest, Stage } from '../../conversation/response.ts';
import { toGatewayError } from '../../http/error-handler.ts';
import type { AnswerRecord, AnswerStage } from '../../observability/answer-record.ts';
import type { Exchange } from '../../observability/exchange.ts';
import { endingOf, rounded } from '../exchanges.ts';

/** @param client who asked, and how */
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
