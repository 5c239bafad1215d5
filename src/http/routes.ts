/** The table of the HTTP routes: method, path, handlers. */
import type { Express, Request, RequestHandler, Router } from 'express';
import type { Prometheus } from '../observability/prometheus.ts';
import type { Forward } from '../proxy/reverse-proxy.ts';
import { CHAT_PATHS, OWN_AUDIO } from '../proxy/upstream.ts';
import type { ApiKeys } from './access/api-key.ts';
import { type AdmissionDeps, admission } from './admission.ts';
import { health, ready } from './health.ts';
import { getModel, listModels, type ModelsDeps } from './models.ts';
import { countAs } from './observe.ts';
import { type Description, mountDocs, openapi } from './openapi/docs.ts';
import { mountPages } from './pages.ts';
import { passthrough } from './passthrough.ts';
import { all, del, get, isOwnAudio, mountRows, notFound, post, type RouteRow } from './route-table.ts';
import { ownPace } from './server/body-deadline.ts';
import type { GracefulStop } from './server/graceful-stop.ts';
import {
  alignmentDialect,
  type Dialect,
  openaiDialect,
  type TranscriptionHandlerDeps,
  transcriptions,
} from './transcriptions.ts';
import type { ReceiveBody } from './upload/proxied-body.ts';
import { asrDialect, detectDialect, WHISPER_ASR } from './whisper-asr.ts';

export interface RouteDeps {
  version: string;
  describe: Omit<Description, 'version'>;
  models: ModelsDeps;
  admission: AdmissionDeps;
  gracefulStop: GracefulStop;
  shutdown: AbortSignal;
  transcriptions: TranscriptionHandlerDeps;
  /** The rows of live sessions. */
  live: readonly RouteRow[];
  speech: Forward;
  chat: Forward;
  receiveBody: ReceiveBody;
  apiKeys: ApiKeys;
  prometheus: Pick<Prometheus, 'contentType' | 'render'>;
  /** Reads again which models are installed, unless that was done in the last second. */
  refreshModels(): Promise<void>;
  /** The router for all paths below `/admin`. */
  admin: Router;
}

/** The pages, which are not rows of the table. */
const PAGES = ['/docs', '/playground', '/admin'];

/** The routes of the API. Those below `/admin` are in `src/admin/routes.ts`. */
export function routeTable(deps: RouteDeps): RouteRow[] {
  const { version, describe, models, gracefulStop, shutdown, prometheus, speech, chat, receiveBody } = deps;
  const inference = [admission(deps.admission), ownPace];
  const recognition = (dialect: Dialect) => transcriptions(deps.transcriptions, dialect);
  const toDaemon = [...inference, passthrough('llm', { shutdown, receiveBody, forward: chat })];
  // A recording sent to a misspelling of the gateway's own path must not reach the speech upstream.
  const notOwn: RequestHandler = (req, _res, next) =>
    isOwnAudio(req.path) ? next(notFound(servedPaths(rows), req)) : next();
  const rows: RouteRow[] = [
    get('/health', health(version)),
    get('/ready', ready(gracefulStop)),
    get('/openapi.json', openapi({ version, ...describe })),
    get('/metrics', metricsText(prometheus)),
    get('/v1/models', listModels(models)),
    get('/v1/models/*id', getModel(models)),
    ...deps.live,
    post('/v1/audio/transcriptions', ...inference, recognition(openaiDialect('transcribe'))),
    post('/v1/audio/translations', ...inference, recognition(openaiDialect('translate'))),
    post('/v1/audio/alignments', ...inference, recognition(alignmentDialect)),
    post('/asr', ...inference, recognition(asrDialect)),
    post('/detect-language', ...inference, recognition(detectDialect)),
    ...CHAT_PATHS.map((path) => post(path, ...toDaemon)),
    get('/v1/responses/:id', ...toDaemon),
    del('/v1/responses/:id', ...toDaemon),
    post('/v1/responses/:id/cancel', ...toDaemon),
    get('/v1/responses/:id/input_items', ...toDaemon),
    all(
      '/v1/audio/*path',
      notOwn,
      ...inference,
      passthrough('tts', { shutdown, receiveBody, forward: speech }),
    ),
  ];
  return rows;
}

const servedPaths = (rows: readonly RouteRow[]) => [...rows.map(({ path }) => path), ...PAGES];

/** Sets the category of each request before anything can refuse it, so that a refusal counts in the same category. */
export function mountCategories(app: Express): void {
  app.use('/v1/audio', countAs('tts'));
  app.use([...OWN_AUDIO.map((name) => `/v1/audio/${name}`), ...WHISPER_ASR], countAs('asr'));
  app.use(CHAT_PATHS, countAs('llm'));
}

export function mountRoutes(app: Express, deps: RouteDeps): void {
  app.use(deps.apiKeys.session);
  app.use(['/v1', '/metrics', '/admin', ...WHISPER_ASR], except(isDashboardItself, deps.apiKeys.require));
  app.use(refreshInstalledModels(deps.refreshModels));
  const rows = routeTable(deps);
  mountRows(app, rows);
  app.use(deps.admin);
  mountDocs(app);
  mountPages(app);
  app.use((req) => {
    throw notFound(servedPaths(rows), req);
  });
}

/** Below these paths are the handlers that name a model. */
const NAMING_MODELS = ['/v1', '/admin', ...WHISPER_ASR];

/**
 * Refreshes the list of installed models before the handlers that name a model, so that one which another process has
 * fetched or removed is seen. It waits, and Express would cut the path that it is mounted at off `req.url` meanwhile, for
 * every listener of the server. So it is mounted at none.
 */
function refreshInstalledModels(refresh: RouteDeps['refreshModels']): RequestHandler {
  return async (req, _res, next) => {
    if (NAMING_MODELS.some((path) => req.path === path || req.path.startsWith(`${path}/`))) await refresh();
    next();
  };
}

/** The dashboard page needs no key: it asks for one itself, and holds no data. */
const isDashboardItself = (req: Request) =>
  ['GET', 'HEAD'].includes(req.method) && /^\/admin\/?$/.test(req.baseUrl + req.path);

const except =
  (exempt: (req: Request) => boolean, handler: RequestHandler): RequestHandler =>
  (req, res, next) =>
    exempt(req) ? next() : handler(req, res, next);

/** GET /metrics answers in the text format of Prometheus. */
function metricsText({ contentType, render }: RouteDeps['prometheus']): RequestHandler {
  return async (_req, res) => {
    res.set('Content-Type', contentType).send(await render());
  };
}
