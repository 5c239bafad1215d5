/** Keeps credentials out of the captures. Bodies are captured as they are; these headers never. */

const SECRET = new Set(['authorization', 'proxy-authorization', 'cookie', 'set-cookie', 'x-api-key']);

export type Headers = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** A copy with `***` for each value of a header that carries credentials, in whatever case; undefined left out. */
export function scrubHeaders(headers: Headers): Record<string, string | number | readonly string[]> {
  const kept: [string, string | number | readonly string[]][] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) kept.push([name, SECRET.has(name.toLowerCase()) ? '***' : value]);
  }
  return Object.fromEntries(kept);
}
