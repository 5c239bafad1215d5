/** The table of the routes below `/admin`. Keys and origins are checked before it. */
import type { Router } from 'express';
import { hasSession } from '../http/access/api-key.ts';
import { pageHeaders, withoutSlash } from '../http/pages.ts';
import { caseSensitiveRouter, mountRows, type RouteRow } from '../http/route-table.ts';
import { sendHtml } from './answer.ts';
import { downloadBody, playBody, replayCapture, showCapture } from './captures.ts';
import { listCrashes, showCrashes } from './crashes.ts';
import type { AdminDeps } from './deps.ts';
import { changeModel, models, removeModel, resetAsrState } from './models.ts';
import { clearPayload, observability, showLog, toggle } from './observability.ts';
import { showRequests } from './requests.ts';
import { showSettings } from './settings.ts';
import { slot, stopSlot } from './slot.ts';
import { showState } from './state.ts';
import { metrics, series, showUpstreams, summaryView, takeSnapshot } from './traffic.ts';
import { dashboard } from './views/dashboard.ts';

export function adminTable(deps: AdminDeps): RouteRow[] {
  const { captures, cpuLevel, toggles, version } = deps;
  const row =
    (method: 'get' | 'post', chain: RouteRow['chain'] = []) =>
    (path: string, handler: RouteRow['handler']): RouteRow => ({ method, path, chain, handler });
  const get = row('get');
  const page = row('get', [withoutSlash]);
  const post = row('post');
  return [
    page('/admin', (_req, res) => sendHtml(res, dashboard(hasSession(res)))),

    get('/admin/api/metrics', metrics(deps)),
    get('/admin/api/series', series(deps)),
    get('/admin/api/crashes', listCrashes(deps)),
    post('/admin/api/observability/toggle', toggle(deps)),
    post('/admin/api/observability/clear-payload', clearPayload(deps)),
    post('/admin/api/reset-asr-state', resetAsrState(deps.models)),
    post('/admin/api/models/*id/pull', changeModel(deps.models, 'pull')),
    post('/admin/api/models/*id/load', changeModel(deps.models, 'load')),
    post('/admin/api/models/*id/unload', changeModel(deps.models, 'unload')),
    post('/admin/api/models/*id/remove', removeModel(deps.models)),
    post('/admin/api/slot/stop', stopSlot(deps)),

    get('/admin/fragments/state', showState(deps)),
    get('/admin/fragments/summary', (_req, res) =>
      sendHtml(res, summaryView(takeSnapshot(deps), { version, cpuLevel, counting: toggles.metrics })),
    ),
    get('/admin/fragments/slot', slot(deps)),
    get('/admin/fragments/observability', observability(deps)),
    get('/admin/fragments/models', models(deps.models)),
    get('/admin/fragments/upstreams', showUpstreams(deps)),
    get('/admin/fragments/log', showLog(deps)),
    get('/admin/fragments/crashes', showCrashes(deps)),
    get('/admin/fragments/requests', showRequests(deps)),
    get('/admin/fragments/settings', showSettings(deps)),

    page('/admin/captures/:requestId', showCapture(captures)),
    get('/admin/captures/:requestId/req.bin', downloadBody(captures, 'req.bin')),
    get('/admin/captures/:requestId/resp.bin', downloadBody(captures, 'resp.bin')),
    get('/admin/captures/:requestId/req.sound', playBody(captures, 'request')),
    get('/admin/captures/:requestId/resp.sound', playBody(captures, 'response')),
    post('/admin/captures/:requestId/replay', replayCapture(deps)),
  ];
}

export function adminRoutes(deps: AdminDeps): Router {
  const router = caseSensitiveRouter();
  router.use('/admin', pageHeaders());
  mountRows(router, adminTable(deps));
  return router;
}
