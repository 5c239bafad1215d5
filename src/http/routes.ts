/** The table of contents of the HTTP surface: method, path, chain, handler. */
import type { Express, RequestHandler } from 'express';
import { GatewayError } from '../errors.ts';
import { admission } from './admission.ts';
import { health } from './health.ts';
import { getModel, listModels, type ModelsDeps } from './models.ts';
import { mountDocs, openapi } from './openapi.ts';
import { type TranscriptionsDeps, transcriptions } from './transcriptions.ts';

export interface RouteDeps {
  version: string;
  models: ModelsDeps;
  transcriptions: TranscriptionsDeps;
}

interface RouteRow {
  method: 'get' | 'post';
  path: string;
  chain: RequestHandler[];
  handler: RequestHandler;
}

function table(deps: RouteDeps): RouteRow[] {
  const inference = [admission(deps.transcriptions.slot)];
  return [
    { method: 'get', path: '/health', chain: [], handler: health(deps.version) },
    { method: 'get', path: '/openapi.json', chain: [], handler: openapi(deps.version) },
    { method: 'get', path: '/v1/models', chain: [], handler: listModels(deps.models) },
    { method: 'get', path: '/v1/models/:id', chain: [], handler: getModel(deps.models) },
    {
      method: 'post',
      path: '/v1/audio/transcriptions',
      chain: inference,
      handler: transcriptions(deps.transcriptions, 'transcribe'),
    },
    {
      method: 'post',
      path: '/v1/audio/translations',
      chain: inference,
      handler: transcriptions(deps.transcriptions, 'translate'),
    },
  ];
}

export function mountRoutes(app: Express, deps: RouteDeps): void {
  const rows = table(deps);
  for (const { method, path, chain, handler } of rows) app[method](path, ...chain, handler);
  for (const path of new Set(rows.map((row) => row.path))) {
    const methods = rows.filter((row) => row.path === path).map((row) => row.method.toUpperCase());
    if (methods.includes('GET')) methods.push('HEAD');
    app.all(path, (req, res) => {
      res.setHeader('Allow', methods.join(', '));
      throw new GatewayError(
        'method_not_allowed',
        `${req.method} is not allowed here; use ${methods.join(' or ')}`,
      );
    });
  }
  mountDocs(app);
  app.use((req) => {
    throw new GatewayError('not_found', `Nothing is at ${req.method} ${req.path.slice(0, 200)}`);
  });
}
