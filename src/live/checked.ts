/** Checks what a client has sent: its fields by a schema, and before that how much there is to parse. */
import type { z } from 'zod';
import { invalidValue } from '../errors.ts';

/**
 * @param at the path of the value in what the client sent
 * @throws GatewayError `invalid_value` that names the field
 */
export function checked<T>(schema: z.ZodType<T>, value: unknown, at: readonly string[] = ['session']): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const { path = [], message = '' } = parsed.error.issues[0] ?? {};
  const field = [...at, ...path.map(String)].join('.') || 'body';
  const found = path.reduce<unknown>((in_, key) => Object(in_)[key], value);
  throw invalidValue(field, found, message, field);
}

const COMMA = 0x2c;
const BRACKET = 0x5b;
const BRACE = 0x7b;

/**
 * Whether a JSON text may have more values, a measure of the cost to parse it. Commas and opening brackets tell, those
 * within texts too, before anything is parsed.
 */
export function hasMoreValues(json: Buffer, most: number): boolean {
  let count = 0;
  for (let at = 0; at < json.length && count <= most; at += 1) {
    const byte = json[at];
    if (byte === COMMA || byte === BRACKET || byte === BRACE) count += 1;
  }
  return count > most;
}
