/** Reads the events of a client: JSON with a `type`, each type with its own fields. */
import { z } from 'zod';
import { excerpt, GatewayError, invalidValue } from '../../errors.ts';
import type { Budgets } from '../../limits/budgets.ts';
import { parsedJson } from '../../parsed-json.ts';
import { checked, hasMoreValues } from '../checked.ts';
import {
  betaSessionUpdate,
  fromBeta,
  type SessionKind,
  type SessionUpdate,
  sessionUpdate,
} from './session-settings.ts';

/** An event that only a conversation may know, by its name on the wire, with the fields that it came with. */
export interface OtherEvent {
  type: 'other';
  name: string;
  fields: Record<string, unknown>;
}

export type ClientEvent =
  | OtherEvent
  /** `kind` is undefined where the client does not name it, and `session` is what it sent. */
  | { type: 'update'; update: SessionUpdate; beta: boolean; kind: SessionKind | undefined; session: unknown }
  | { type: 'append'; audio: Buffer }
  | { type: 'commit' }
  | { type: 'clear' };

/** An event of which no field but its id was read. */
export interface ReceivedEvent {
  /** The one that the client gave it. */
  id: string | null;
  /**
   * @param slice resolves when the next piece of long audio may be decoded
   * @throws GatewayError for a wrong field
   */
  read(slice: () => Promise<void>): Promise<ClientEvent>;
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
 * @throws GatewayError for what is no event
 */
export function receivedEvent(
  message: Buffer,
  { eventBytes, eventValues }: Pick<Budgets['live'], 'eventBytes' | 'eventValues'>,
): ReceivedEvent {
  const isLong = message.length > eventBytes;
  const audio = isLong ? audioIn(message) : { start: message.length, end: message.length };
  const rest = isLong
    ? Buffer.concat([message.subarray(0, audio.start), message.subarray(audio.end)])
    : message;
  const tooLong = () => unusable(message, `Expected at most ${eventBytes} bytes besides audio`);
  if (rest.length > eventBytes) throw tooLong();
  const { type, event_id: id = null, ...fields } = parsedEvent(rest, eventValues);
  return {
    id,
    async read(slice) {
      const read = readFields(type, fields);
      if (!isLong) return read;
      if (read.type !== 'append') throw tooLong();
      return { ...read, audio: await decoded(message.subarray(audio.start, audio.end), slice) };
    },
  };
}

const unusable = (message: Buffer, why: string) =>
  invalidValue('event', excerpt(message.toString('utf8', 0, 4 * MAX_SHOWN), MAX_SHOWN), why, 'event');

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

/** @param values the most values that are read, because each wrong one is described, and each level of a list is a step */
function parsedEvent(message: Buffer, values: number): z.infer<typeof event> {
  if (hasMoreValues(message, values)) throw unusable(message, `Expected at most ${values} values`);
  const json = parsedJson(message.toString());
  if (json === undefined) throw unusable(message, 'Expected JSON');
  const parsed = event.safeParse(json);
  if (!parsed.success) throw invalidValue('type', '', 'Expected an object with a type', 'type');
  const { event_id: id } = parsed.data;
  if (id && id.length > LONGEST_ID)
    throw invalidValue('event_id', excerpt(id, MAX_SHOWN), `Expected at most ${LONGEST_ID} characters`);
  return parsed.data;
}

function readFields(type: string, fields: Record<string, unknown>): ClientEvent {
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
      return { type: 'other', name: type, fields };
  }
}

export const unknownEvent = (name: string) =>
  new GatewayError('unknown_event', { event: excerpt(name, MAX_SHOWN) }, { param: 'type' });

function readUpdate(session: unknown, beta: boolean) {
  if (beta) {
    const update = fromBeta(checked(betaSessionUpdate, session));
    return { type: 'update', update, beta, kind: undefined, session } as const;
  }
  const update = checked(sessionUpdate, session);
  return { type: 'update', update, beta, kind: update.type ?? undefined, session } as const;
}
