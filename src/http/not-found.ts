/**
 * The 404 for a path that nothing serves. Clients join addresses and paths in many ways (`/v1/v1/…`, `/audio/…`, `//v1/…`,
 * a whole path as the address), so the message names the path that was meant, where there is one.
 */
import type { Request } from 'express';
import { excerpt, GatewayError } from '../errors.ts';
import { forwardedPrefix } from './server/forwarded-prefix.ts';
import { decoded } from './server/request-target.ts';

/** A path with more parts than this is not one of ours with something before or after it. */
const MAX_PARTS = 16;

/** The gateway's own operations, in any spelling that a reader takes for one, and all that is below them. */
const MEANS_OWN_AUDIO = /^\/+v1\/+audio\/+(transcriptions|translations|alignments)(?![\w-])/i;

/** True for a path that must not reach the speech upstream, although it is below `/v1/audio`: it was meant for us. */
export const isOwnAudio = (path: string): boolean => MEANS_OWN_AUDIO.test(decoded(path));

/** @param paths those that are served, as Express has them: `:name` is one part, and `*name` at the end several */
export function notFound(paths: readonly string[], req: Request): GatewayError {
  const path = req.baseUrl + req.path;
  const meant = pathMeant(paths, path);
  const prefix = forwardedPrefix(req);
  const hint = meant === undefined ? '' : `; perhaps ${prefix}${excerpt(meant, 200)} was meant`;
  return new GatewayError('not_found', { method: req.method, path: `${prefix}${excerpt(path, 200)}`, hint });
}

function pathMeant(paths: readonly string[], path: string): string | undefined {
  const parts = decoded(path)
    .split('/')
    .map((part) => (part.split(';', 1)[0] ?? '').trim())
    .filter((part) => part !== '');
  if (parts.length > MAX_PARTS) return undefined;
  const templates = paths.map((served) => served.slice(1).split('/'));
  for (let from = 0; from < parts.length; from++)
    for (let to = parts.length; to > from; to--)
      for (const before of [[], ['v1']])
        for (const template of templates) {
          const meant = filled(template, [...before, ...parts.slice(from, to)]);
          if (meant !== undefined && meant !== path && (paths.includes(meant) || !isOwnAudio(meant)))
            return meant;
        }
  return undefined;
}

/** The path of a template with these parts; undefined where they do not fit. The case of the parts may differ. */
function filled(template: readonly string[], parts: readonly string[]): string | undefined {
  const takesRest = template.at(-1)?.startsWith('*') === true;
  if (takesRest ? parts.length < template.length : parts.length !== template.length) return undefined;
  const isParameter = (i: number) => /^[:*]/.test(template[i] ?? '*');
  if (!parts.every((part, i) => isParameter(i) || part.toLowerCase() === template[i])) return undefined;
  return `/${parts.map((part, i) => (isParameter(i) ? encodeURIComponent(part) : template[i])).join('/')}`;
}
