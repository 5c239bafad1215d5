/** Reads the events of a client: JSON with a `type`, of which each has its fields. */
import { z } from 'zod';
import { excerpt, GatewayError, invalidValue } from '../../errors.ts';
import {
  betaSessionUpdate,
  checked,
  fromBeta,
  type SessionUpdate,
  sessionUpdate,
} from './session-settings.ts';

export type ClientEvent = { eventId: string | null } & (
  | { type: 'update'; update: SessionUpdate; beta: boolean }
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
/** The names of the beta's flat fields that the API has at another place. */
const FLAT = /^input_audio_|^turn_detection$/;
const MAX_SHOWN = 64;
/** That of OpenAI's API reference for `event_id`. */
const LONGEST_ID = 512;
/** What is longer is audio, which is one text. Many values of that length would take seconds to read, and gigabytes. */
const LONG_EVENT = 256 * 1024;
const MOST_IN_LONG_EVENT = 100;

/** @throws BadEvent for everything that is no event, has a wrong field, or is unknown */
export function parseClientEvent(text: string): ClientEvent {
  if (text.length > LONG_EVENT && hasManyValues(text))
    throw new BadEvent(
      null,
      invalidValue('event', excerpt(text, MAX_SHOWN), 'Expected audio in so long an event', 'event'),
    );
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

/** True where commas and brackets say so. Base64 has none. */
function hasManyValues(text: string): boolean {
  let count = 0;
  for (const _ of text.matchAll(/[,[{]/g)) {
    count += 1;
    if (count > MOST_IN_LONG_EVENT) return true;
  }
  return false;
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
      return readUpdate(fields.session, true);
    case 'input_audio_buffer.append': {
      const { audio } = fields;
      if (typeof audio !== 'string' || !BASE64.test(audio))
        throw invalidValue('audio', typeof audio === 'string' ? '…' : '', 'Expected base64', 'audio');
      return { type: 'append', audio: Buffer.from(audio, 'base64') } as const;
    }
    case 'input_audio_buffer.commit':
      return { type: 'commit' } as const;
    case 'input_audio_buffer.clear':
      return { type: 'clear' } as const;
    default:
      throw new GatewayError('unknown_event', { event: excerpt(type, MAX_SHOWN) }, { param: 'type' });
  }
}

function readUpdate(session: unknown, beta: boolean) {
  if (beta) {
    const update = fromBeta(checked(betaSessionUpdate, session));
    return { type: 'update', update, beta } as const;
  }
  return { type: 'update', update: checked(sessionUpdate, session), beta } as const;
}
