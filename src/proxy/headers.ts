/**
 * Which headers are forwarded, and how. Those of one connection never are (RFC 9110, section 7.6.1). What an upstream
 * answers comes from the gateway's own origin, so its headers must not give it what belongs to that origin.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { withoutTrailingSlashes } from '../address.ts';
import type { Upstream } from './upstream.ts';

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

/**
 * What a browser says of the page that asks. It is for the gateway, which judges it (`http/access/protection.ts`); a
 * daemon that does not know the page would refuse the call.
 */
const OF_THE_PAGE = /^(origin|referer|sec-fetch-.*)$/;

/** Changes the headers in place. The caller sets the framing of the body and the host. */
export function stripRequestHeaders(headers: IncomingHttpHeaders): void {
  for (const name of Object.keys(headers)) if (OF_THE_PAGE.test(name)) delete headers[name];
  const framing = ['transfer-encoding', 'content-length', 'host'];
  for (const name of hopByHop(headers.connection)) if (!framing.includes(name)) delete headers[name];
  // The gateway itself answers `Expect`, so the upstream must not see it.
  delete headers.expect;
}

/**
 * Headers with which an answer changes what a browser keeps for the whole origin or does on its own: cookies and logins,
 * service workers, policies of transport and reporting, other addresses of the service, another page after this one.
 */
const OF_THE_ORIGIN = new Set([
  'accept-ch',
  'alt-svc',
  'clear-site-data',
  'critical-ch',
  'expect-ct',
  'nel',
  'origin-agent-cluster',
  'public-key-pins',
  'refresh',
  'report-to',
  'reporting-endpoints',
  'service-worker-allowed',
  'set-cookie',
  'set-login',
  'sourcemap',
  'speculation-rules',
  'strict-transport-security',
  'use-as-dictionary',
  'www-authenticate',
  'x-sourcemap',
]);
/** `Access-Control-*` and the sessions that are bound to a device. A page must ask for those with these prefixes. */
const FAMILIES_OF_THE_ORIGIN = /^(access-control-|sec-session-|secure-session-)/;

/** What the gateway sets itself, or what stands in the way of that. */
const SET_HERE = [
  'content-security-policy',
  'content-security-policy-report-only',
  'cross-origin-resource-policy',
  'transfer-encoding',
  'x-content-type-options',
  'x-request-id',
];

export interface ResponseHeadersOptions {
  /** The path of the request at the upstream, against which a reference is resolved. */
  path: string;
  upstream: Upstream;
  /** The path below which a reverse proxy serves the gateway, such as `/voice`; empty without one. */
  servedBelow: string;
  /** True where pages of other sites may show the answer (SVC_CORS_ORIGINS). */
  isEmbeddable: boolean;
}

/**
 * The headers of an upstream's answer in their order, including repeated ones, and those with which a browser takes no
 * answer for a page of the gateway: scripts in it never run, and have no part in the gateway's origin. A 204 must have
 * no length (RFC 9110, section 8.6). The length comes last, because Node changes the bytes of a `Content-Disposition`
 * behind it.
 */
export function responseHeaders(
  { headers, rawHeaders, statusCode = 502 }: IncomingMessage,
  { isEmbeddable, ...options }: ResponseHeadersOptions,
): [name: string, value: string][] {
  const dropped = new Set([...hopByHop(headers.connection), ...OF_THE_ORIGIN, ...SET_HERE]);
  if (statusCode === 204) dropped.add('content-length');
  if (statusCode === 503) dropped.add('retry-after'); // a 503 with Retry-After always means a busy slot (contract 7)
  const lengths: [string, string][] = [];
  const others: [string, string][] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const [name, value] = [String(rawHeaders[i]), String(rawHeaders[i + 1])];
    const known = name.toLowerCase();
    if (dropped.has(known) || FAMILIES_OF_THE_ORIGIN.test(known)) continue;
    if (known === 'content-length') lengths.push([name, value]);
    else if (known === 'location' || known === 'content-location')
      others.push([name, addressHere(value, options)]);
    else others.push([name, value]);
  }
  return [
    ...others,
    ['Content-Security-Policy', 'sandbox'],
    ['X-Content-Type-Options', 'nosniff'],
    ['Cross-Origin-Resource-Policy', isEmbeddable ? 'cross-origin' : 'same-origin'],
    ...unbuffered(headers, statusCode),
    ...lengths,
  ];
}

/**
 * Keeps nginx from collecting an answer whose end is not known, such as a stream of events. Its default is to buffer, and
 * the reader would get all of it at once.
 */
function unbuffered(headers: IncomingHttpHeaders, statusCode: number): [string, string][] {
  const hasBody = statusCode !== 204 && statusCode !== 304;
  const isStream =
    headers['content-length'] === undefined || /^text\/event-stream/i.test(headers['content-type'] ?? '');
  return hasBody && isStream && headers['x-accel-buffering'] === undefined
    ? [['X-Accel-Buffering', 'no']]
    : [];
}

/**
 * What a reference of an upstream means at the gateway: a path below those that lead to the upstream becomes the
 * gateway's. Every other one keeps its meaning, so a path of the upstream alone becomes its whole address.
 */
function addressHere(
  reference: string,
  { path, upstream: { url, takes }, servedBelow }: Omit<ResponseHeadersOptions, 'isEmbeddable'>,
): string {
  const base = new URL(url);
  const utf8 = Buffer.from(reference, 'latin1').toString();
  if (!URL.canParse(utf8, base.origin + path)) return reference;
  const { origin, pathname, search, hash, href } = new URL(utf8, base.origin + path);
  if (origin !== base.origin) return reference;
  const prefix = withoutTrailingSlashes(base.pathname);
  const below = pathname.startsWith(`${prefix}/`) ? pathname.slice(prefix.length) : '';
  return takes(below) ? servedBelow + below + search + hash : href;
}
