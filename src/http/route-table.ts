/** Tables of contents as Express routes: method, path, chain, handler; other methods on a known path are a 405. */
import type { IRouter, RequestHandler } from 'express';
import { GatewayError } from '../errors.ts';

export interface RouteRow {
  method: 'get' | 'post' | 'all';
  path: string;
  chain: RequestHandler[];
  handler: RequestHandler;
}

export function mountRows(router: IRouter, rows: readonly RouteRow[]): void {
  for (const path of new Set(rows.map((row) => row.path))) {
    const here = rows.filter((row) => row.path === path);
    for (const { method, chain, handler } of here) router[method](path, ...chain, handler);
    if (here.some((row) => row.method === 'all')) continue;
    const methods = here.map((row) => row.method.toUpperCase());
    if (methods.includes('GET')) methods.push('HEAD');
    router.all(path, (req, res) => {
      res.setHeader('Allow', methods.join(', '));
      throw new GatewayError(
        'method_not_allowed',
        `${req.method} is not allowed here; use ${methods.join(' or ')}`,
      );
    });
  }
}
