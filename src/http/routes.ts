/** The table of contents of the HTTP surface: method, path, chain, handler. */
import type { Express, RequestHandler } from 'express';
import { GatewayError } from '../errors.ts';
import type { Forward } from '../proxy/reverse-proxy.ts';
import { admission } from './admission.ts';
import { health } from './health.ts';
import { getModel, listModels, type ModelsDeps } from './models.ts';
import { counts } from './observe.ts';
import { mountDocs, openapi } from './openapi.ts';
import { mountPages } from './pages.ts';
import { proxied } from './proxied.ts';
import { type TranscriptionsDeps, transcriptions } from './transcriptions.ts';

export interface RouteDeps {
  version: string;
  models: ModelsDeps;
  transcriptions: TranscriptionsDeps;
  speech: Forward;
  chat: Forward;
}

interface RouteRow {
  method: 'get' | 'post' | 'all';
  path: string;
  chain: RequestHandler[];
  handler: RequestHandler;
}

function table({ version, models, transcriptions: asr, speech, chat }: RouteDeps): RouteRow[] {
  const recognition = [counts('asr'), admission(asr.slot)];
  return [
    { method: 'get', path: '/health', chain: [], handler: health(version) },
    { method: 'get', path: '/openapi.json', chain: [], handler: openapi(version) },
    { method: 'get', path: '/v1/models', chain: [], handler: listModels(models) },
    { method: 'get', path: '/v1/models/*id', chain: [], handler: getModel(models) },
    {
      method: 'post',
      path: '/v1/audio/transcriptions',
      chain: recognition,
      handler: transcriptions(asr, 'transcribe'),
    },
    {
      method: 'post',
      path: '/v1/audio/translations',
      chain: recognition,
      handler: transcriptions(asr, 'translate'),
    },
    {
      method: 'post',
      path: '/v1/chat/completions',
      chain: [counts('llm')],
      handler: proxied('llm', { ...asr, forward: chat }),
    },
    {
      method: 'all',
      path: '/v1/audio/*path',
      chain: [counts('tts')],
      handler: proxied('tts', { ...asr, forward: speech }),
    },
  ];
}

export function mountRoutes(app: Express, deps: RouteDeps): void {
  const rows = table(deps);
  for (const path of new Set(rows.map((row) => row.path))) {
    const here = rows.filter((row) => row.path === path);
    for (const { method, chain, handler } of here) app[method](path, ...chain, handler);
    if (here.some((row) => row.method === 'all')) continue;
    const methods = here.map((row) => row.method.toUpperCase());
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
  mountPages(app);
  app.use((req) => {
    throw new GatewayError('not_found', `Nothing is at ${req.method} ${req.path.slice(0, 200)}`);
  });
}
