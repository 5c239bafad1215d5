/** Checks what a client has sent, and names the field at fault. */
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
