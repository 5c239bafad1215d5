/** Reads the events of a client: JSON with a `type`, each type with its own fields. */
import { z } from 'zod';
import { excerpt, GatewayError, invalidValue } from '../../errors.ts';
import type { Budgets } from '../../limits/budgets.ts';
import { checked } from '../checked.ts';
import { hasMoreValues } from '../json-values.ts';
import {
  betaSessionUpdate,
  fromBeta,
  type SessionKind,
  type SessionUpdate,
  sessionUpdate,
} from './session-settings.ts';

/** What only conversations have. `name` is that of the wire. */
export type ConversationEvent = { name: string } & (
  | { type: 'item-create'; item: unknown; after: string | null }
  | { type: 'item-retrieve'; id: string }
  | { type: 'item-delete'; id: string }
  | { type: 'item-truncate'; id: string; contentIndex: number; audioEndMs: number }
  | { type: 'response-create'; response: unknown }
  | { type: 'response-cancel'; id: string | null }
);

export type ClientEvent = { eventId: string | null } & (
  | ConversationEvent
  /** `kind` is undefined where the client does not name it, and `session` is what it sent. */
  | { type: 'update'; update: SessionUpdate; beta: boolean; kind: SessionKind | undefined; session: unknown }
  | { type: 'append'; audio: Buffer }
  | { type: 'commit' }
  | { type: 'clear' }
);

/** An event that cannot be used, with the id that the client gave it. */
export class BadEvent extends Error {
  override readonly name = 'BadEvent';
  readonly eventId: string | null;
  readonly error: GatewayError;
  constructor(eventId: string | null, error: GatewayError) {
    super(error.message);
    this.eventId = eventId;
    this.error = error;
  }
}

const event = z.looseObject({ type: z.string(), event_id: z.string().nullish() });
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const BASE64_INSIDE = /^[A-Za-z0-9+/]*$/;
/** The names of the beta's flat fields that the API has at another place. */
const FLAT = /^input_audio_|^turn_detection$|^modalities$|^voice$|^output_audio_format$/;
const MAX_SHOWN = 64;
/** That of OpenAI's API reference for `event_id`. */
const LONGEST_ID = 512;
/** Characters of base64 that are decoded at a time. A multiple of four, so that they stand for whole bytes. */
const BASE64_PIECE = 64 * 1024;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * Reads an event of at most `eventValues` values. Only audio may be longer than `eventBytes`: it is cut out of the event,
 * so that nothing long is parsed as JSON, and each piece of it is decoded in a slice of the event loop.
 * @throws BadEvent as `parseClientEvent`
 */
export async function readClientEvent(
  message: Buffer,
  { eventBytes, eventValues }: Pick<Budgets['live'], 'eventBytes' | 'eventValues'>,
  slice: () => Promise<void>,
): Promise<ClientEvent> {
  if (message.length <= eventBytes) return parseClientEvent(message, eventValues);
  const audio = audioIn(message);
  const rest = Buffer.concat([message.subarray(0, audio.start), message.subarray(audio.end)]);
  if (rest.length > eventBytes) throw tooLong(message, eventBytes);
  const event = parseClientEvent(rest, eventValues);
  if (event.type !== 'append') throw tooLong(message, eventBytes);
  try {
    return { ...event, audio: await decoded(message.subarray(audio.start, audio.end), slice) };
  } catch (error) {
    throw error instanceof GatewayError ? new BadEvent(event.eventId, error) : error;
  }
}

const tooLong = (message: Buffer, eventBytes: number) =>
  new BadEvent(
    null,
    invalidValue(
      'event',
      excerpt(message.toString('utf8', 0, 4 * MAX_SHOWN), MAX_SHOWN),
      `Expected at most ${eventBytes} bytes besides audio`,
      'event',
    ),
  );

/** Where the text of the member `audio` begins and ends; nowhere if there is none. */
function audioIn(message: Buffer): { start: number; end: number } {
  const none = { start: message.length, end: message.length };
  const name = message.indexOf('"audio"');
  if (name < 0) return none;
  const before = /^"audio"\s*:\s*"/.exec(message.toString('latin1', name, name + MAX_SHOWN));
  if (before === null) return none;
  const start = name + before[0].length;
  const end = message.indexOf(QUOTE, start);
  return end < 0 ? none : { start, end };
}

async function decoded(base64: Buffer, slice: () => Promise<void>): Promise<Buffer> {
  const audio = Buffer.allocUnsafe(Math.ceil((base64.length * 3) / 4));
  let length = 0;
  let rest = '';
  for (let at = 0; at < base64.length; ) {
    let end = Math.min(at + BASE64_PIECE, base64.length);
    if (base64[end - 1] === BACKSLASH) end += 1;
    // Some encoders of JSON write the slash of base64 as `\/`.
    const text = rest + base64.toString('latin1', at, end).replaceAll('\\/', '/');
    const isLast = end >= base64.length;
    const whole = isLast ? text.length : text.length - (text.length % 4);
    const piece = text.slice(0, whole);
    if (!(isLast ? BASE64 : BASE64_INSIDE).test(piece)) throw notBase64('…');
    length += audio.write(piece, length, 'base64');
    rest = text.slice(whole);
    at = end;
    await slice();
  }
  return audio.subarray(0, length);
}

const notBase64 = (shown: string) => invalidValue('audio', shown, 'Expected base64', 'audio');

/**
 * @param values the most values that are read, because each wrong one is described, and each level of a list is a step
 * @throws BadEvent for anything that is not an event, has a wrong field, or is unknown
 */
function parseClientEvent(message: Buffer, values: number): ClientEvent {
  const text = message.toString();
  if (hasMoreValues(message, values)) {
    const why = `Expected at most ${values} values`;
    throw new BadEvent(null, invalidValue('event', excerpt(text, MAX_SHOWN), why, 'event'));
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new BadEvent(null, invalidValue('event', excerpt(text, MAX_SHOWN), 'Expected JSON', 'event'));
  }
  const parsed = event.safeParse(json);
  if (!parsed.success)
    throw new BadEvent(null, invalidValue('type', '', 'Expected an object with a type', 'type'));
  const { type, event_id: id, ...fields } = parsed.data;
  const eventId = id ?? null;
  if (eventId !== null && eventId.length > LONGEST_ID)
    throw new BadEvent(
      null,
      invalidValue('event_id', excerpt(eventId, MAX_SHOWN), `Expected at most ${LONGEST_ID} characters`),
    );
  try {
    return { eventId, ...readFields(type, fields) };
  } catch (error) {
    if (error instanceof GatewayError) throw new BadEvent(eventId, error);
    throw error;
  }
}

function readFields(type: string, fields: Record<string, unknown>) {
  switch (type) {
    case 'session.update': {
      // A client of the beta sends the flat fields with this name, too.
      const names = Object.keys(Object(fields.session));
      const beta = !names.includes('audio') && names.some((name) => FLAT.test(name));
      return readUpdate(fields.session, beta);
    }
    case 'transcription_session.update':
      return { ...readUpdate(fields.session, true), kind: 'transcription' } as const;
    case 'input_audio_buffer.append': {
      const { audio } = fields;
      if (typeof audio !== 'string' || !BASE64.test(audio))
        throw notBase64(typeof audio === 'string' ? '…' : '');
      return { type: 'append', audio: Buffer.from(audio, 'base64') } as const;
    }
    case 'input_audio_buffer.commit':
      return { type: 'commit' } as const;
    case 'input_audio_buffer.clear':
      return { type: 'clear' } as const;
    default:
      return readConversationEvent(type, fields);
  }
}

const itemId = { item_id: z.string() };
const truncation = z.object({
  ...itemId,
  content_index: z.int().min(0).nullish(),
  audio_end_ms: z.number().min(0),
});

function readConversationEvent(name: string, fields: Record<string, unknown>): ConversationEvent {
  const id = () => checked(z.object(itemId), fields, []).item_id;
  switch (name) {
    case 'conversation.item.create': {
      const { previous_item_id: after } = checked(
        z.object({ previous_item_id: z.string().nullish() }),
        fields,
        [],
      );
      return { name, type: 'item-create', item: fields.item, after: after ?? null };
    }
    case 'conversation.item.retrieve':
      return { name, type: 'item-retrieve', id: id() };
    case 'conversation.item.delete':
      return { name, type: 'item-delete', id: id() };
    case 'conversation.item.truncate': {
      const sent = checked(truncation, fields, []);
      const contentIndex = sent.content_index ?? 0;
      return {
        name,
        type: 'item-truncate',
        id: sent.item_id,
        contentIndex,
        audioEndMs: Math.round(sent.audio_end_ms),
      };
    }
    case 'response.create':
      return { name, type: 'response-create', response: fields.response };
    case 'response.cancel': {
      const { response_id: response } = checked(z.object({ response_id: z.string().nullish() }), fields, []);
      return { name, type: 'response-cancel', id: response ?? null };
    }
    default:
      throw new GatewayError('unknown_event', { event: excerpt(name, MAX_SHOWN) }, { param: 'type' });
  }
}

function readUpdate(session: unknown, beta: boolean) {
  if (beta) {
    const update = fromBeta(checked(betaSessionUpdate, session));
    return { type: 'update', update, beta, kind: undefined, session } as const;
  }
  const update = checked(sessionUpdate, session);
  return { type: 'update', update, beta, kind: update.type ?? undefined, session } as const;
}
