/**
 * Tables of contents as Express routes: method, path, chain, handler. Other methods on a known path are a 405, and
 * OPTIONS is answered here with those that are allowed (RFC 9110, section 9.3.7): a browser's preflight must neither
 * reach an upstream nor take the slot.
 */
import type { IRouter, RequestHandler } from 'express';
import { GatewayError } from '../errors.ts';

export interface RouteRow {
  method: 'get' | 'post' | 'all';
  path: string;
  chain: RequestHandler[];
  handler: RequestHandler;
}

/** Methods that a row for `all` stands for where they have to be named. */
export const ALL_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

export function mountRows(router: IRouter, rows: readonly RouteRow[]): void {
  for (const path of new Set(rows.map((row) => row.path))) {
    const here = rows.filter((row) => row.path === path);
    const methods = here.flatMap(({ method }) => (method === 'all' ? ALL_METHODS : method.toUpperCase()));
    if (methods.includes('GET')) methods.push('HEAD');
    router.options(path, (_req, res) => {
      res.set('Allow', methods.join(', ')).status(204).end();
    });
    for (const { method, chain, handler } of here) router[method](path, ...chain, handler);
    router.all(path, (req, res) => {
      res.setHeader('Allow', methods.join(', '));
      throw new GatewayError('method_not_allowed', { method: req.method, allowed: methods.join(' or ') });
    });
  }
}
