/** Removes the headers that belong to one connection and are never forwarded (RFC 9110, section 7.6.1). */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
];

/** The names above and those that the `Connection` header lists, in lower case. */
function hopByHop(connection: string | undefined): Set<string> {
  const named = (connection ?? '').split(',').map((name) => name.trim().toLowerCase());
  return new Set([...HOP_BY_HOP, ...named]);
}

/** Changes the headers in place. The caller sets the framing of the body and the host. */
export function stripRequestHeaders(headers: IncomingHttpHeaders): void {
  const framing = ['transfer-encoding', 'content-length', 'host'];
  for (const name of hopByHop(headers.connection)) if (!framing.includes(name)) delete headers[name];
  // The gateway itself answers `Expect`, so the upstream must not see it.
  delete headers.expect;
}

/**
 * The headers of an upstream's answer in their order, including repeated ones. Three kinds are left out, because the
 * gateway sets them itself: the framing, the request id, and those for sites that may read the answer. With a second
 * `Access-Control-Allow-Origin` browsers would refuse the answer. A 204 must have no length (RFC 9110, section 8.6).
 * The length comes last, because Node changes the bytes of a `Content-Disposition` behind it.
 */
export function responseHeaders({
  headers,
  rawHeaders,
  statusCode,
}: IncomingMessage): [name: string, value: string][] {
  const dropped = hopByHop(headers.connection).add('transfer-encoding').add('x-request-id');
  if (statusCode === 204) dropped.add('content-length');
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    pairs.push([String(rawHeaders[i]), String(rawHeaders[i + 1])]);
  const kept = pairs.filter(([name]) => !dropped.has(name.toLowerCase()) && !/^access-control-/i.test(name));
  const isLength = ([name]: [string, string]) => /^content-length$/i.test(name);
  return [...kept.filter((pair) => !isLength(pair)), ...kept.filter(isLength)];
}
