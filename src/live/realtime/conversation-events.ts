/**
 * The events of a conversation on the wire (OpenAI's API reference, Realtime, server events). The beta has other names
 * for some, and one event where there are two for an item.
 */
import type { Message } from '../../conversation/items.ts';
import type { ResponseEvent, ResponseOutcome, ResponseRequest } from '../../conversation/response.ts';
import { toGatewayError } from '../../http/error-handler.ts';
import { DEFAULT_VOICE } from './conversation-settings.ts';
import { itemAdded, itemDone, shownItem } from './items.ts';
import { type ServerEvent, shownError } from './server-events.ts';
import { shownFormat } from './session-settings.ts';

export interface Answering {
  request: ResponseRequest;
  conversationId: string;
  beta: boolean;
}

/** The events on the wire for one event of a response, in order. */
export function toResponseEvents(event: ResponseEvent, answering: Answering): ServerEvent[] {
  const { request, beta } = answering;
  const names = beta ? BETA : GA;
  const of = (type: string, rest: object = {}): ServerEvent => ({ type, response_id: request.id, ...rest });
  switch (event.type) {
    case 'created':
      return [{ type: 'response.created', response: shownResponse(answering) }];
    case 'item-added': {
      const { index, item, previousId } = event;
      return [
        of('response.output_item.added', { output_index: index, item: shownItem(item, { beta }) }),
        ...(request.isInConversation ? itemAdded(item, previousId, beta) : []),
      ];
    }
    case 'part-added':
      return [of('response.content_part.added', { ...at(event), part: shownPart(event.item) })];
    case 'text': {
      const type = request.isSpoken ? names.transcript : names.text;
      return [of(`${type}.delta`, { ...at(event), delta: event.text })];
    }
    case 'audio':
      return [of(`${names.audio}.delta`, { ...at(event), delta: event.audio.toString('base64') })];
    case 'part-done': {
      const [part] = event.item.parts;
      const text = part?.text ?? '';
      const done = request.isSpoken
        ? [
            of(`${names.audio}.done`, at(event)),
            of(`${names.transcript}.done`, { ...at(event), transcript: text }),
          ]
        : [of(`${names.text}.done`, { ...at(event), text })];
      return [...done, of('response.content_part.done', { ...at(event), part: shownPart(event.item) })];
    }
    case 'arguments': {
      const { item, index } = event;
      const common = { item_id: item.id, output_index: index, call_id: item.callId };
      return [
        of('response.function_call_arguments.delta', { ...common, delta: item.arguments }),
        of('response.function_call_arguments.done', {
          ...common,
          name: item.name,
          arguments: item.arguments,
        }),
      ];
    }
    case 'item-done': {
      const { index, item, previousId } = event;
      return [
        ...(request.isInConversation && !beta ? [itemDone(item, previousId)] : []),
        of('response.output_item.done', { output_index: index, item: shownItem(item, { beta }) }),
      ];
    }
    case 'done':
      return [
        { type: 'response.done', response: shownResponse(answering, event.outcome) },
        { type: 'rate_limits.updated', rate_limits: [] }, // there is no rate limit to report; the slot bounds the load
      ];
  }
}

const GA = {
  audio: 'response.output_audio',
  transcript: 'response.output_audio_transcript',
  text: 'response.output_text',
};
const BETA = { audio: 'response.audio', transcript: 'response.audio_transcript', text: 'response.text' };

const at = ({ index, item }: { index: number; item: Message }) => ({
  item_id: item.id,
  output_index: index,
  content_index: 0,
});

/** A part as `response.content_part` events have it. Its types there are `audio` and `text`, other than in an item. */
function shownPart({ parts: [part] }: Message) {
  const text = part?.text ?? '';
  return part?.kind === 'audio' ? { type: 'audio', transcript: text } : { type: 'text', text };
}

function shownResponse({ request, conversationId, beta }: Answering, outcome?: ResponseOutcome) {
  const modalities = request.isSpoken ? ['audio'] : ['text'];
  const { voice = DEFAULT_VOICE } = request;
  return {
    object: 'realtime.response',
    id: request.id,
    status: outcome?.status ?? 'in_progress',
    status_details: outcome === undefined ? null : detailsOf(outcome),
    output: (outcome?.items ?? []).map((item) => shownItem(item, { beta })),
    conversation_id: request.isInConversation ? conversationId : null,
    ...(beta
      ? { modalities: request.isSpoken ? ['audio', 'text'] : modalities, voice }
      : { output_modalities: modalities, audio: { output: { format: shownFormat(request.format), voice } } }),
    max_output_tokens: request.maxTokens ?? 'inf',
    usage: outcome === undefined ? null : usageOf(outcome),
    metadata: request.metadata,
  };
}

function detailsOf({ status, reason, error }: ResponseOutcome) {
  if (status === 'completed') return null;
  if (status !== 'failed') return { type: status, reason };
  const { type, code, message } = shownError(toGatewayError(error));
  return { type: status, error: { type, code, message } };
}

/** The daemon counts tokens of text; audio has none here. */
function usageOf({ usage }: ResponseOutcome) {
  const { inputTokens = 0, cachedTokens = 0, outputTokens = 0 } = usage ?? {};
  const cached = { text_tokens: cachedTokens, audio_tokens: 0, image_tokens: 0 };
  return {
    total_tokens: inputTokens + outputTokens,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    input_token_details: {
      text_tokens: inputTokens,
      audio_tokens: 0,
      image_tokens: 0,
      cached_tokens: cachedTokens,
      cached_tokens_details: cached,
    },
    output_token_details: { text_tokens: outputTokens, audio_tokens: 0 },
  };
}
