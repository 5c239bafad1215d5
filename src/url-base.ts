/** Addresses that paths are appended to. */

/** An address that a path starting with a slash can be put behind. */
export function withoutTrailingSlashes(url: string): string {
  return url.replace(/(?<!\/)\/+$/, '');
}
