/**
 * The items of a conversation as clients send and read them (OpenAI's API reference, Realtime, `conversation.item`). The
 * beta has other names for what the assistant says.
 */
import { z } from 'zod';
import type { Item, Message, Part } from '../../conversation/items.ts';
import { invalidValue } from '../../errors.ts';
import { checked } from '../checked.ts';

const id = z.string().min(1, 'Expected an id').max(64, 'Expected at most 64 characters');

/** OpenAI's are shorter. What a client names is held for as long as its item. */
const callId = z.string().max(256, 'Expected at most 256 characters');

const part = z.object({
  type: z.string(),
  text: z.string().nullish(),
  audio: z.string().nullish(),
  transcript: z.string().nullish(),
});

const message = z.object({
  type: z.literal('message'),
  id: id.nullish(),
  role: z.enum(['system', 'user', 'assistant'], { error: 'Expected system, user or assistant' }),
  content: z.array(part).max(32, 'Expected at most 32 parts'),
});
const call = z.object({
  type: z.literal('function_call'),
  id: id.nullish(),
  call_id: callId.nullish(),
  name: z.string(),
  arguments: z.string(),
});
const result = z.object({
  type: z.literal('function_call_output'),
  id: id.nullish(),
  call_id: callId,
  output: z.string(),
});

const HEARD_IN_BUFFER =
  'Expected what is said in the audio; send audio that is to be heard with input_audio_buffer.append';
const EXPECTED = 'Expected message, function_call or function_call_output';
const itemSchema = z.discriminatedUnion('type', [message, call, result], { error: EXPECTED });

export const referenceSchema = z.object({ type: z.literal('item_reference'), id });

type Sent = z.infer<typeof itemSchema>;

/**
 * @param newId makes the id of an item that comes without one
 * @throws GatewayError `invalid_value` for what it is not, and for parts that nothing here can read
 */
export function readItem(value: unknown, newId: (kind: 'item' | 'call') => string, at = ['item']): Item {
  const sent: Sent = checked(itemSchema, value, at);
  const common = { id: sent.id ?? newId('item'), status: 'completed' } as const;
  switch (sent.type) {
    case 'function_call':
      return {
        kind: 'call',
        ...common,
        callId: sent.call_id ?? newId('call'),
        name: sent.name,
        arguments: sent.arguments,
      };
    case 'function_call_output':
      return { kind: 'result', ...common, callId: sent.call_id, output: sent.output };
    case 'message':
      return {
        kind: 'message',
        ...common,
        role: sent.role,
        parts: sent.content.map((each, i) => readPart(each, [...at, 'content', String(i)])),
      };
  }
}

function readPart({ type, text, audio, transcript }: z.infer<typeof part>, at: readonly string[]): Part {
  if (['input_text', 'output_text', 'text'].includes(type)) return { kind: 'text', text: text ?? '' };
  // Audio that comes as a whole is heard through the buffer. Here it is what was said, as histories are sent again.
  const isAudio = ['input_audio', 'output_audio', 'audio'].includes(type);
  if (isAudio && audio && typeof transcript !== 'string')
    throw invalidValue([...at, 'transcript'].join('.'), undefined, HEARD_IN_BUFFER);
  if (isAudio) return { kind: 'audio', text: transcript ?? '' };
  throw invalidValue(
    [...at, 'type'].join('.'),
    type,
    'Expected input_text, input_audio, output_text or output_audio',
  );
}

/** An item on the wire. */
export function shownItem(item: Item, { beta }: { beta: boolean }) {
  const common = { id: item.id, object: 'realtime.item', status: item.status };
  switch (item.kind) {
    case 'call':
      return {
        ...common,
        type: 'function_call',
        call_id: item.callId,
        name: item.name,
        arguments: item.arguments,
      };
    case 'result':
      return { ...common, type: 'function_call_output', call_id: item.callId, output: item.output };
    case 'message':
      return {
        ...common,
        type: 'message',
        role: item.role,
        content: item.parts.map((each) => shownPart(each, item, beta)),
      };
  }
}

function shownPart({ kind, text }: Part, { role }: Message, beta: boolean) {
  const said = role === 'assistant' ? (beta ? '' : 'output_') : 'input_';
  // Some clients need a transcript, be it null while it is not known.
  return kind === 'text'
    ? { type: `${said}text`, text: text ?? '' }
    : { type: `${said}audio`, transcript: text };
}

/** The events for an item that is in the conversation from now on. */
export function itemAdded(item: Item, previousId: string | null, beta: boolean) {
  const type = beta ? 'conversation.item.created' : 'conversation.item.added';
  return [{ type, previous_item_id: previousId, item: shownItem(item, { beta }) }];
}

export const itemDone = (item: Item, previousId: string | null) => ({
  type: 'conversation.item.done',
  previous_item_id: previousId,
  item: shownItem(item, { beta: false }),
});

/** The events for an item that comes as a whole. */
export const itemCreated = (item: Item, previousId: string | null, beta: boolean) => [
  ...itemAdded(item, previousId, beta),
  ...(beta ? [] : [itemDone(item, previousId)]),
];
