/**
 * The events of the server, as OpenAI's transcription sessions send them. Two dialects differ in one place: the beta
 * says `conversation.item.created` where the API says `.added` and `.done`.
 */
import { randomUUID } from 'node:crypto';
import { saidBy } from '../../conversation/items.ts';
import type { GatewayError } from '../../errors.ts';
import { errorEnvelope, toGatewayError } from '../../http/error-handler.ts';
import type { LiveEvent } from '../../transcription/live/live-session.ts';
import { fullText, logprobs, toDiarizedSegment, usage } from '../../wire/formats.ts';
import { itemCreated } from './items.ts';

export interface ServerEvent {
  type: string;
  [field: string]: unknown;
}

/** Ids as OpenAI's: a word for the kind, and letters and digits. */
export const newId = (kind: 'event' | 'sess' | 'item' | 'conv' | 'resp' | 'call'): string =>
  `${kind}_${randomUUID().replaceAll('-', '').slice(0, 20)}`;

const TRANSCRIPTION = 'conversation.item.input_audio_transcription';

export interface Dialect {
  beta: boolean;
  logprobs: boolean;
}

/** The events on the wire for one event of the session, in order. */
export function toServerEvents(event: LiveEvent, dialect: Dialect): ServerEvent[] {
  const { id } = event;
  const part = { item_id: id, content_index: 0 };
  switch (event.type) {
    case 'started':
      return [{ type: 'input_audio_buffer.speech_started', audio_start_ms: event.startMs, item_id: id }];
    case 'stopped':
      return [{ type: 'input_audio_buffer.speech_stopped', audio_end_ms: event.endMs, item_id: id }];
    case 'dropped':
      return []; // the client has dropped it itself
    case 'committed':
      return committed(id, event.previousId, dialect);
    case 'delta':
      return [{ type: `${TRANSCRIPTION}.delta`, ...part, delta: event.text }];
    case 'segment':
      return [{ ...toDiarizedSegment(event.part), ...part, type: `${TRANSCRIPTION}.segment` }];
    case 'unlabeled':
      return [errorEvent(toGatewayError(event.error), null)];
    case 'failed':
      return [{ type: `${TRANSCRIPTION}.failed`, ...part, error: shownError(toGatewayError(event.error)) }];
    case 'completed': {
      const { segments, summary } = event.outcome;
      const transcript = fullText(segments);
      return [
        {
          type: `${TRANSCRIPTION}.completed`,
          ...part,
          transcript,
          usage: usage({ durationSec: event.audioSec }),
          ...(transcript !== '' && { languages: [{ code: summary.language }] }),
          ...logprobs(segments, dialect),
        },
      ];
    }
  }
}

function committed(id: string, previousId: string | null, { beta }: Dialect): ServerEvent[] {
  return [
    { type: 'input_audio_buffer.committed', previous_item_id: previousId, item_id: id },
    ...itemCreated(saidBy(id, null), previousId, beta),
  ];
}

/** @param eventId the client's id of the event at fault */
export const errorEvent = (error: GatewayError, eventId: string | null): ServerEvent => ({
  type: 'error',
  error: { ...shownError(error), event_id: eventId },
});

export function shownError(error: GatewayError) {
  const { type, code, message, param } = errorEnvelope(error, null).error;
  return { type, code, message, param };
}
