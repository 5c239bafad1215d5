/**
 * Mounts tables of routes on Express, each with a method, path and handlers. Other methods on a known path get a
 * 405. OPTIONS is answered with the allowed methods (RFC 9110, section 9.3.7), because a browser's preflight must
 * neither reach an upstream nor take the slot.
 */
import { type IRouter, type Request, type RequestHandler, Router } from 'express';
import { excerpt, GatewayError } from '../errors.ts';
import { forwardedPrefix } from './server/forwarded-prefix.ts';
import { decoded } from './server/request-target.ts';

export interface RouteRow {
  method: 'get' | 'post' | 'delete' | 'all';
  path: string;
  /** They run in this order. */
  handlers: readonly RequestHandler[];
}

const rowOf =
  (method: RouteRow['method']) =>
  (path: string, ...handlers: RequestHandler[]): RouteRow => ({ method, path, handlers });
export const get = rowOf('get');
export const post = rowOf('post');
export const del = rowOf('delete');
export const all = rowOf('all');

const ALL_VERBS = ['get', 'post', 'put', 'patch', 'delete'] as const;
/** The methods of a row with the method `all`: none such as TRACE, which would send a client's own headers back. */
export const ALL_METHODS = ALL_VERBS.map((name) => name.toUpperCase());

/** A router that compares the case of paths, as the app does; Express alone would not. */
export const caseSensitiveRouter = (): Router => Router({ caseSensitive: true });

export function mountRows(router: IRouter, rows: readonly RouteRow[]): void {
  for (const path of new Set(rows.map((row) => row.path))) {
    const here = rows.filter((row) => row.path === path);
    const methods = here.flatMap(({ method }) => (method === 'all' ? ALL_METHODS : method.toUpperCase()));
    if (methods.includes('GET')) methods.push('HEAD');
    for (const { method, handlers } of here)
      for (const name of method === 'all' ? ALL_VERBS : [method]) router[name](path, ...handlers);
    allowOnly(router, path, methods);
  }
}

/** Answers the methods that the path does not have. What it has is mounted before. */
export function allowOnly(router: IRouter, path: string, methods: readonly string[]): void {
  router.options(path, (_req, res) => {
    res.set('Allow', methods.join(', ')).status(204).end();
  });
  router.all(path, (req, res) => {
    res.setHeader('Allow', methods.join(', '));
    throw new GatewayError('method_not_allowed', { method: req.method, allowed: methods.join(' or ') });
  });
}

/** A path with more parts than this is not one of ours with something before or after it. */
const MAX_PARTS = 16;

/** The gateway's own operations, in any spelling that a reader takes for one, and all that is below them. */
const MEANS_OWN_AUDIO = /^\/+v1\/+audio\/+(transcriptions|translations|alignments)(?![\w-])/i;

/** True for a path that must not reach the speech upstream, although it is below `/v1/audio`: it was meant for us. */
export const isOwnAudio = (path: string): boolean => MEANS_OWN_AUDIO.test(decoded(path));

/**
 * The 404 for a path that nothing serves. Clients join addresses and paths in many ways (`/v1/v1/…`, `/audio/…`, `//v1/…`,
 * a whole path as the address), so the message names the path that was meant, where there is one.
 * @param paths those that are served, as Express has them: `:name` is one part, and `*name` at the end several
 */
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
