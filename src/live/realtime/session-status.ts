/** What a session does now, what went wrong last, and how long its last answer took, for the operator. */
import type { ResponseOutcome } from '../../conversation/response.ts';
import { toGatewayError } from '../../http/error-handler.ts';
import type { LiveStatus } from '../../limits/live-places.ts';
import type { LiveEvent } from '../../transcription/live/live-session.ts';
import { answerRecord } from '../exchanges.ts';

export class SessionStatus {
  #isHearing = false;
  /** The utterances that have ended and have no text yet. */
  #untranscribed = 0;
  #lastError: LiveStatus['lastError'] = null;
  #lastAnswer: LiveStatus['lastAnswer'] = null;

  heard(event: LiveEvent): void {
    if (event.type === 'started') this.#isHearing = true;
    if (['stopped', 'dropped', 'committed'].includes(event.type)) this.#isHearing = false;
    if (event.type === 'committed') this.#untranscribed += 1;
    if (event.type === 'completed' || event.type === 'failed') this.#untranscribed -= 1;
    if (event.type === 'failed') this.failed(event.error);
  }

  failed(thrown: unknown): void {
    const { code, message } = toGatewayError(thrown);
    this.#lastError = { code, says: message, at: new Date() };
  }

  answered(outcome: ResponseOutcome): void {
    const { status, stagesMs } = answerRecord(outcome);
    const stages = Object.entries(stagesMs).map(([name, ms]) => ({ name, ms }));
    this.#lastAnswer = { status, stages };
    if (outcome.status === 'failed') this.failed(outcome.error);
  }

  /** @param conversation null where the session only transcribes */
  now(conversation: { isResponding: boolean } | null): LiveStatus {
    const state = this.#isHearing
      ? 'hearing'
      : conversation?.isResponding
        ? 'answering'
        : this.#untranscribed > 0
          ? 'transcribing'
          : 'waiting';
    return {
      kind: conversation === null ? 'transcription' : 'conversation',
      state,
      lastError: this.#lastError,
      lastAnswer: this.#lastAnswer,
    };
  }
}
