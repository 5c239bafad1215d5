/** Headers that belong to one connection and are never passed on (RFC 9110, section 7.6.1). */
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

/** Those above and whatever `Connection` names beside them, in lower case. */
function hopByHop(connection: string | undefined): Set<string> {
  const named = (connection ?? '').split(',').map((name) => name.trim().toLowerCase());
  return new Set([...HOP_BY_HOP, ...named]);
}

/** Changes the headers in place. How the body is framed and the host are the caller's business. */
export function stripRequestHeaders(headers: IncomingHttpHeaders): void {
  const framing = ['transfer-encoding', 'content-length', 'host'];
  for (const name of hopByHop(headers.connection)) if (!framing.includes(name)) delete headers[name];
  // The gateway has told the client to go on, or never will; the upstream has nothing to say about it.
  delete headers.expect;
}

/**
 * As they came, repeated ones too. The framing is made anew, and the request id is the gateway's own; so is the say
 * in which sites may read the answer: a second `Access-Control-Allow-Origin` would make browsers refuse it.
 */
export function responseHeaders({ headers, rawHeaders }: IncomingMessage): [name: string, value: string][] {
  const dropped = hopByHop(headers.connection).add('transfer-encoding').add('x-request-id');
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    pairs.push([String(rawHeaders[i]), String(rawHeaders[i + 1])]);
  return pairs.filter(([name]) => !dropped.has(name.toLowerCase()) && !/^access-control-/i.test(name));
}
