/** The path below which a reverse proxy serves the gateway, where it takes that path off the requests. */
import type { Request } from 'express';

/** Segments of characters that need no quoting in a path, a cookie or JSON. */
const PREFIX = /^(\/[\w.~%@:+-]+)+$/;
const DOTS = /\/\.{1,2}(\/|$)/;
const MAX_CHARACTERS = 200;

/** The prefix of the proxy, such as `/voice`, where `SVC_TRUST_PROXY` believes it; else empty. */
export function forwardedPrefix(req: Request): string {
  const given = req.get('X-Forwarded-Prefix')?.replace(/\/$/, '') ?? '';
  const isValid = given.length <= MAX_CHARACTERS && PREFIX.test(given) && !DOTS.test(given);
  return isValid && req.app.get('trust proxy fn')(req.socket.remoteAddress, 0) ? given : '';
}
