/**
 * Messages of Wyoming (https://github.com/OHF-Voice/wyoming, version 1.10): a line of JSON with the type and the
 * lengths, then data as JSON, then a payload. The payload is handed on as it comes, so a large one takes no memory.
 */
import { z } from 'zod';
import { GatewayError } from '../../errors.ts';
import type { Budgets } from '../../limits/budgets.ts';
import { parsedJson } from '../../parsed-json.ts';
import { addChunk } from '../../streams.ts';
import { hasMoreValues } from '../checked.ts';

/** The version of the protocol that is spoken. */
const VERSION = '1.10.2';

/** A message, or a further piece of its payload. */
export interface Part {
  type: string;
  /** The members of the line's `data` and of the data after it, which win. */
  data: Readonly<Record<string, unknown>>;
  /** Empty on the first part. */
  payload: Buffer;
  isFirst: boolean;
}

export type MessageLimits = Pick<Budgets['wyoming'], 'lineBytes' | 'dataBytes' | 'values' | 'payloadBytes'>;

export type MessageReader = ReturnType<typeof createMessageReader>;

const NEWLINE = 0x0a;
const EMPTY = Buffer.alloc(0);
const invalid = (why: string) => new GatewayError('invalid_message', { why });

/** The error for an event that cannot come now. @param when for example `before audio-stop` */
export const unexpected = (event: string, when: string) =>
  new GatewayError('unexpected_event', { event, when });

/** A message whose line is read. */
interface Message {
  type: string;
  data: Part['data'];
  /** The bytes of data after the line; 0 once they are read. */
  dataBytes: number;
  /** The bytes of payload that are still to come. */
  payloadBytes: number;
}

export function createMessageReader(limits: MessageLimits) {
  const readHeader = headerReader(limits);
  /** What has come of the line or of the data. */
  const held = createPieces(limits.values);
  let message: Message | null = null;

  return {
    /**
     * The parts that these bytes hold or complete.
     * @throws GatewayError `invalid_message`, after which the reader is of no use
     */
    *push(bytes: Buffer): Generator<Part, void, undefined> {
      let rest = bytes;
      const take = (count: number) => {
        const front = rest.subarray(0, count);
        rest = rest.subarray(count);
        return front;
      };
      while (rest.length > 0) {
        if (message === null) {
          const end = rest.indexOf(NEWLINE);
          held.add(take(end < 0 ? rest.length : end + 1));
          if (held.bytes > limits.lineBytes)
            throw invalid(`its first line is longer than ${limits.lineBytes} bytes`);
          if (end < 0) return;
          message = readHeader(held.takeText());
          if (message.dataBytes === 0) yield firstPart(message);
        } else if (message.dataBytes > 0) {
          held.add(take(message.dataBytes - held.bytes));
          if (held.bytes < message.dataBytes) return;
          message = withData(message, held.takeText());
          yield firstPart(message);
        } else {
          const { type, data } = message;
          const payload = take(message.payloadBytes);
          message = { ...message, payloadBytes: message.payloadBytes - payload.length };
          yield { type, data, payload, isFirst: false };
        }
        if (message.dataBytes === 0 && message.payloadBytes === 0) message = null;
      }
    },
    /** True between the first byte of a message and its last. */
    get isWithin() {
      return message !== null || held.bytes > 0;
    },
  };
}

const firstPart = ({ type, data }: Message): Part => ({ type, data, payload: EMPTY, isFirst: true });

/** @param maxValues the most values in the JSON that the pieces are */
function createPieces(maxValues: number) {
  const pieces: Buffer[] = [];
  const held = {
    bytes: 0,
    add(piece: Buffer): void {
      addChunk(pieces, piece);
      held.bytes += piece.length;
    },
    takeText(): string {
      const bytes = Buffer.concat(pieces.splice(0));
      held.bytes = 0;
      if (hasMoreValues(bytes, maxValues)) throw invalid(`it has more than ${maxValues} values`);
      return bytes.toString('utf8');
    },
  };
  return held;
}

function headerReader(limits: MessageLimits): (line: string) => Message {
  const length = (field: string, most: number) =>
    z
      .int(`${field} must be a whole number`)
      .min(0, `${field} must not be negative`)
      .max(most, `${field} may be at most ${most}`)
      .nullish();
  const header = z.object(
    {
      type: z.string('it has no type').max(128, 'its type is too long'),
      data: z.record(z.string(), z.unknown(), 'its data is no object').nullish(),
      data_length: length('data_length', limits.dataBytes),
      payload_length: length('payload_length', limits.payloadBytes),
    },
    'its first line is no object',
  );
  return (line) => {
    const parsed = header.safeParse(jsonIn(line, 'its first line'));
    if (!parsed.success) throw invalid(parsed.error.issues[0]?.message ?? '');
    const { type, data, data_length, payload_length } = parsed.data;
    return { type, data: data ?? {}, dataBytes: data_length ?? 0, payloadBytes: payload_length ?? 0 };
  };
}

function withData(message: Message, text: string): Message {
  const data = jsonIn(text, 'its data');
  if (typeof data !== 'object' || data === null || Array.isArray(data))
    throw invalid('its data is no object');
  return { ...message, data: { ...message.data, ...data }, dataBytes: 0 };
}

function jsonIn(text: string, what: string): unknown {
  const json = parsedJson(text);
  if (json === undefined) throw invalid(`${what} is no JSON`);
  return json;
}

/** The bytes of a message. Its data comes after the line, as from the reference, whose readers bound the line. */
export function writeMessage(type: string, data: object = {}, payload: Buffer = EMPTY): Buffer {
  const body = Buffer.from(JSON.stringify(data));
  const line = {
    type,
    version: VERSION,
    data_length: body.length,
    ...(payload.length > 0 && { payload_length: payload.length }),
  };
  return Buffer.concat([Buffer.from(`${JSON.stringify(line)}\n`), body, payload]);
}
