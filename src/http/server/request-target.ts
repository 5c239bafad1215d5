/**
 * Reads the target of a request once, before anything else looks at it. Keys, protection, routes and upstreams then
 * all see the same string, so that no two of them can understand it differently. A target that servers read in more
 * than one way is refused: an upstream could take it for a path outside of the prefix that was checked here.
 */
import type { IncomingMessage } from 'node:http';

/** Model ids may hold slashes, which clients encode. In every other path an encoded slash is ambiguous. */
const BEFORE_MODEL_ID = /^\/(v1|admin\/api)\/models\//;
/** A backslash, plain or encoded, and an encoded NUL. */
const NEVER_IN_PATH = /\\|%(5c|00)/i;
/** A dot segment (RFC 3986, section 3.3). Some servers cut off what follows a semicolon and see one only then. */
const DOT_SEGMENT = /(^|\/)\.{1,2}(;|\/|$)/;

/** The model that a path of Azure names, by request. */
const deployments = new WeakMap<IncomingMessage, string>();

/** The model that the path names; undefined where the path is none of Azure's. */
export const deploymentOf = (req: IncomingMessage): string | undefined => deployments.get(req);

/**
 * Azure's packages send OpenAI's operations to `/openai/deployments/{model}/…` and `/openai/v1/…`. What follows is the
 * same operation, so from here on the request has OpenAI's path.
 */
export function withoutAzure(req: IncomingMessage, target: string): string {
  const [prefix, model] = /^\/openai\/(?:deployments\/([^/?]+)|v1)(?=\/)/.exec(target) ?? [];
  if (prefix === undefined) return target;
  if (model !== undefined) deployments.set(req, decoded(model));
  return `/v1${target.slice(prefix.length)}`;
}

/** A path, or a part of one, without its escapes; as it is where they are not of UTF-8. */
export function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/**
 * The path and query of a request, byte for byte as they were sent. An absolute target loses its scheme and host
 * (RFC 9112, section 3.2.2); the host must be the one in `Host`. Null for a target that is ambiguous or has no path.
 */
export function requestTarget({ url = '', headers }: IncomingMessage): string | null {
  const [origin = '', authority] = /^https?:\/\/([^/?#]*)/i.exec(url) ?? [];
  if (authority !== undefined && authority.toLowerCase() !== headers.host?.toLowerCase()) return null;
  const rest = url.slice(origin.length);
  const target = authority !== undefined && !rest.startsWith('/') ? `/${rest}` : rest;
  const path = target.split('?', 1)[0] ?? '';
  // A target has no fragment; a server that cuts one off would see another path.
  if (!path.startsWith('/') || NEVER_IN_PATH.test(path) || target.includes('#')) return null;
  if (/%2f/i.test(path) && !BEFORE_MODEL_ID.test(path)) return null;
  const plain = path.replace(/%2e/gi, '.').replace(/%2f/gi, '/');
  return DOT_SEGMENT.test(plain) ? null : target;
}
