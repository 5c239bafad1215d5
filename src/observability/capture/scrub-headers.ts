/** Keeps credentials in headers out of the captures. Bodies are captured unchanged. */

const SECRET = new Set(['authorization', 'proxy-authorization', 'cookie', 'set-cookie', 'x-api-key']);

export type Headers = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** A copy with `***` for the value of each header with credentials, in any case. Undefined values are left out. */
export function scrubHeaders(headers: Headers): Record<string, string | number | readonly string[]> {
  const kept: [string, string | number | readonly string[]][] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) kept.push([name, SECRET.has(name.toLowerCase()) ? '***' : value]);
  }
  return Object.fromEntries(kept);
}
