/**
 * Mounts tables of routes on Express, each with a method, path and handlers. Other methods on a known path get a
 * 405. OPTIONS is answered with the allowed methods (RFC 9110, section 9.3.7), because a browser's preflight must
 * neither reach an upstream nor take the slot.
 */
import { type IRouter, type RequestHandler, Router } from 'express';
import { GatewayError } from '../errors.ts';

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
