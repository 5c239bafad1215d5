/**
 * Messages of Wyoming (https://github.com/OHF-Voice/wyoming, version 1.10): a line of JSON with the type and the
 * lengths, then data as JSON, then a payload. The payload is handed on as it comes, so a large one takes no memory.
 */
import { z } from 'zod';
import { GatewayError } from '../../errors.ts';
import type { Budgets } from '../../limits/budgets.ts';
import { hasMoreValues } from '../json-values.ts';

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

export interface MessageReader {
  /**
   * The parts that these bytes hold or complete.
   * @throws GatewayError `invalid_message`, after which the reader is of no use
   */
  push(bytes: Buffer): Generator<Part, void, undefined>;
  /** True between the first byte of a message and its last. */
  readonly isWithin: boolean;
}

const NEWLINE = 0x0a;
const MOST_PIECES = 64;
const NOTHING = Buffer.alloc(0);
const invalid = (why: string) => new GatewayError('invalid_message', { why });

export function createMessageReader(limits: MessageLimits): MessageReader {
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

  /** What has come of the line or of the data. */
  let held: Buffer[] = [];
  let heldBytes = 0;
  let message: { type: string; data: Part['data']; dataBytes: number; payloadBytes: number } | null = null;

  function hold(bytes: Buffer): void {
    held.push(bytes);
    heldBytes += bytes.length;
    // A client may send one byte at a time, and each of the pieces takes far more memory than its bytes.
    if (held.length > MOST_PIECES) held = [Buffer.concat(held)];
  }

  function takeHeld(): string {
    const bytes = Buffer.concat(held);
    [held, heldBytes] = [[], 0];
    if (hasMoreValues(bytes, limits.values)) throw invalid(`it has more than ${limits.values} values`);
    return bytes.toString('utf8');
  }

  function readHeader(line: string): NonNullable<typeof message> {
    const parsed = header.safeParse(jsonIn(line, 'its first line'));
    if (!parsed.success) throw invalid(parsed.error.issues[0]?.message ?? '');
    const { type, data, data_length, payload_length } = parsed.data;
    return { type, data: data ?? {}, dataBytes: data_length ?? 0, payloadBytes: payload_length ?? 0 };
  }

  function withData(of: NonNullable<typeof message>, text: string): NonNullable<typeof message> {
    const data = jsonIn(text, 'its data');
    if (typeof data !== 'object' || data === null || Array.isArray(data))
      throw invalid('its data is no object');
    return { ...of, data: { ...of.data, ...data }, dataBytes: 0 };
  }

  return {
    *push(bytes) {
      let rest = bytes;
      const take = (count: number) => {
        const taken = rest.subarray(0, count);
        rest = rest.subarray(count);
        return taken;
      };
      const first = ({ type, data }: NonNullable<typeof message>): Part => ({
        ...{ type, data, payload: NOTHING, isFirst: true },
      });
      while (rest.length > 0) {
        if (message === null) {
          const end = rest.indexOf(NEWLINE);
          hold(take(end < 0 ? rest.length : end + 1));
          if (heldBytes > limits.lineBytes)
            throw invalid(`its first line is longer than ${limits.lineBytes} bytes`);
          if (end < 0) return;
          message = readHeader(takeHeld());
          if (message.dataBytes === 0) yield first(message);
        } else if (message.dataBytes > 0) {
          hold(take(message.dataBytes - heldBytes));
          if (heldBytes < message.dataBytes) return;
          message = withData(message, takeHeld());
          yield first(message);
        } else {
          const { type, data } = message;
          const payload = take(message.payloadBytes);
          message = { ...message, payloadBytes: message.payloadBytes - payload.length };
          yield { type, data, payload, isFirst: false };
        }
        if (message.dataBytes === 0 && message.payloadBytes === 0) message = null;
      }
    },
    get isWithin() {
      return message !== null || heldBytes > 0;
    },
  };
}

function jsonIn(text: string, what: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid(`${what} is no JSON`);
  }
}

/** The bytes of a message. Its data comes after the line, as from the reference, whose readers bound the line. */
export function writeMessage(type: string, data: object = {}): Buffer {
  const body = Buffer.from(JSON.stringify(data));
  const line = { type, version: VERSION, data_length: body.length };
  return Buffer.concat([Buffer.from(`${JSON.stringify(line)}\n`), body]);
}
