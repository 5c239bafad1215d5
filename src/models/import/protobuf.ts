/**
 * Reads the fields of a message in the wire format of Protocol Buffers, without its schema
 * (https://protobuf.dev/programming-guides/encoding/). Nothing is copied, and no field goes past the end of its message.
 */

/** The values of the wire types: a varint as its 64 bits, fixed numbers as 8 or 4 bytes, and texts, bytes, messages. */
export type Field =
  | { number: number; type: 'varint'; value: bigint }
  | { number: number; type: 'fixed64' | 'bytes' | 'fixed32'; value: Buffer };

const WIRE_TYPES = { 0: 'varint', 1: 'fixed64', 2: 'bytes', 5: 'fixed32' } as const;
const VARINT_BYTES = 10;

/** @throws Error for bytes that are not a message */
export function* readFields(message: Buffer): Generator<Field> {
  let at = 0;
  const take = (length: number) => {
    if (length > message.length - at) throw new Error('a field of it is cut short');
    at += length;
    return message.subarray(at - length, at);
  };
  const varint = () => {
    const [value, bytes] = readVarint(message, at);
    at += bytes;
    return value;
  };
  while (at < message.length) {
    const tag = varint();
    const number = Number(tag >> 3n);
    const type = WIRE_TYPES[Number(tag & 7n) as keyof typeof WIRE_TYPES];
    if (type === undefined || number === 0) throw new Error('a field of it has an unknown type');
    if (type === 'varint') yield { number, type, value: varint() };
    else
      yield { number, type, value: take(type === 'bytes' ? Number(varint()) : type === 'fixed64' ? 8 : 4) };
  }
}

/** The varints that follow each other in a packed field. @throws Error when the last one is cut short */
export function* readVarints(bytes: Buffer): Generator<bigint> {
  for (let at = 0; at < bytes.length; ) {
    const [value, length] = readVarint(bytes, at);
    at += length;
    yield value;
  }
}

function readVarint(bytes: Buffer, start: number): [value: bigint, bytes: number] {
  let value = 0n;
  for (let i = 0; i < VARINT_BYTES; i++) {
    const byte = bytes[start + i];
    if (byte === undefined) throw new Error('a number in it is cut short');
    value |= BigInt(byte & 0x7f) << BigInt(7 * i);
    if (byte < 0x80) return [BigInt.asUintN(64, value), i + 1];
  }
  throw new Error('a number in it is too long');
}
