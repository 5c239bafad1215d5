/**
 * Finds the gateway's own keys by their value, wherever a client has put one. A key is for the gateway alone: it reaches
 * no upstream, no log and no capture, whatever the header or the parameter is called.
 */

/** True for a text that holds a key: as it is, in `%` escapes, or in base64 as HTTP Basic has it. */
export type HoldsKey = (text: string) => boolean;

/** What is written in the place of a key, and of a credential that is no key of the gateway's. */
export const MASKED = '***';

/** A key of this length does not stand in other texts by chance; a shorter one must stand there as a word. */
const MIN_LENGTH_INSIDE_TEXT = 8;

/** @param keys of ASCII characters */
export function keyFinder(keys: readonly string[]): HoldsKey {
  if (keys.length === 0) return () => false;
  return (text) => spellings(text).some((spelling) => keys.some((key) => stands(key, spelling)));
}

/** The text and what it is when decoded. Any word can be read as base64; with control characters in it, it was none. */
function spellings(text: string): string[] {
  const unescaped = text.replace(/%([0-9a-f]{2})/gi, (_escape, hex) =>
    String.fromCharCode(parseInt(hex, 16)),
  );
  const texts = [...new Set([text, unescaped, unescaped.replaceAll('+', ' ')])];
  const words = texts.flatMap((spelling) => spelling.match(/[\w+/-]{2,}/g) ?? []);
  const decoded = [...new Set(words)].map((word) => Buffer.from(word, 'base64').toString('latin1'));
  return [...texts, ...decoded.filter((word) => !/\p{Cc}/u.test(word))];
}

function stands(key: string, text: string): boolean {
  if (key.length >= MIN_LENGTH_INSIDE_TEXT) return text.includes(key);
  for (let at = text.indexOf(key); at >= 0; at = text.indexOf(key, at + 1)) {
    const around = `${text[at - 1] ?? ''}${text[at + key.length] ?? ''}`;
    if (!/[\da-z]/i.test(around)) return true;
  }
  return false;
}

/**
 * A list without the members that hold a key, so that those for an upstream stay; undefined when nothing is left.
 * @param separator what stands between the members
 */
function membersWithoutKeys(list: string, separator: string, holdsKey: HoldsKey): string | undefined {
  const kept = list
    .split(separator)
    .filter((member) => !holdsKey(member))
    .join(separator)
    .trim();
  return kept === '' || holdsKey(kept) ? undefined : kept;
}

/** Removes the keys from the headers of a request, in place. */
export function removeKeys(headers: Record<string, string | string[] | undefined>, holdsKey: HoldsKey): void {
  for (const [name, value] of Object.entries(headers)) {
    const text = String(value);
    if (!holdsKey(text)) continue;
    const kept = membersWithoutKeys(text, name === 'cookie' ? ';' : ',', holdsKey);
    if (kept === undefined) delete headers[name];
    else headers[name] = kept;
  }
}

/** The target of a request without the parameters of its query that hold a key. Such a part of its path is masked. */
export function targetWithoutKeys(target: string, holdsKey: HoldsKey): string {
  if (!holdsKey(target)) return target;
  const [path = '', ...rest] = target.split('?');
  const parts = path.split('/').map((part) => (holdsKey(part) ? MASKED : part));
  const query = membersWithoutKeys(rest.join('?'), '&', holdsKey);
  const kept = query === undefined ? parts.join('/') : `${parts.join('/')}?${query}`;
  return holdsKey(kept) ? `/${MASKED}` : kept;
}
