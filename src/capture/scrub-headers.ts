/**
 * Keeps the credentials of others in headers out of the captures, by the names of the headers. The gateway's own keys
 * are found by their value before. Bodies are captured unchanged.
 */
import { MASKED } from '../gateway-keys.ts';

/** The names that carry credentials end with one of these words, such as `X-Api-Key` or `Proxy-Authorization`. */
const SECRET = /(^|[-_])(authorization|cookie|api-?key|token|secret|password)$/i;

export type Headers = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** A copy with `***` for the value of each header with credentials, in any case. Undefined values are left out. */
export function scrubHeaders(headers: Headers): Record<string, string | number | readonly string[]> {
  const kept: [string, string | number | readonly string[]][] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) kept.push([name, SECRET.test(name) ? MASKED : value]);
  }
  return Object.fromEntries(kept);
}
