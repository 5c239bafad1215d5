/** The routes that the gateway serves, from its own tables, for tests that go through all of them. */
import type { AdminDeps } from '../src/admin/deps.ts';
import { adminTable } from '../src/admin/routes.ts';
import { ALL_METHODS } from '../src/http/route-table.ts';
import { type RouteDeps, routeTable } from '../src/http/routes.ts';
import { type ClientSecretDeps, clientSecretRoutes } from '../src/live/realtime/client-secrets.ts';

/** The tables are built without the parts of their handlers, which only a request would touch. */
const nothing = { admission: {}, transcriptions: {}, prometheus: {}, live: [], limits: {} };

/** Each row of the tables; a path is written as Express has it: `:name` and `*name` are parameters. */
const ROUTE_ROWS: readonly { method: string; path: string }[] = [
  ...routeTable(nothing as unknown as RouteDeps),
  { method: 'get', path: '/v1/realtime' },
  ...clientSecretRoutes(nothing as unknown as ClientSecretDeps),
  ...adminTable(nothing as unknown as AdminDeps),
  // The session's routes stand outside of the tables, because they need no key.
  { method: 'post', path: '/admin/session' },
  { method: 'delete', path: '/admin/session' },
];

/** Each operation, in the terms of OpenAPI: methods in lower case, parameters as `{name}`. */
export const SERVED = ROUTE_ROWS.flatMap(({ method, path }) => {
  const template = path.replace(/[:*](\w+)/g, '{$1}');
  const methods = method === 'all' ? ALL_METHODS.map((name) => name.toLowerCase()) : [method];
  return methods.map((name) => ({ method: name, template }));
});
