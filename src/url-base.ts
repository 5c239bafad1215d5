/** Base URLs that paths are appended to. */

/** The URL without the slashes at its end, so that a path which starts with a slash can be appended. */
export function withoutTrailingSlashes(url: string): string {
  return url.replace(/(?<!\/)\/+$/, '');
}
