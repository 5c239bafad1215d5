/** The table of the routes below `/admin`. Keys and origins are checked before it. */
import type { Request, RequestHandler, Router } from 'express';
import { hasSession } from '../http/access/api-key.ts';
import { pageHeaders, withoutSlash } from '../http/pages.ts';
import { caseSensitiveRouter, get, mountRows, post, type RouteRow } from '../http/route-table.ts';
import { sendHtml, sendJson } from './answer.ts';
import { downloadBody, playBody, replayCapture, showCapture } from './captures.ts';
import { crashesView, crashToWire } from './crashes.ts';
import type { AdminDeps } from './deps.ts';
import { soughtIn } from './form.ts';
import { changeModel, modelsView, removeModel, resetAsrState } from './models.ts';
import { clearPayload, logView, observabilityView, toggle } from './observability.ts';
import { requestsView } from './requests.ts';
import { settingsView } from './settings.ts';
import { slotView, stopSlot } from './slot.ts';
import { stateView } from './state.ts';
import { chartData, summaryView, upstreamsView } from './traffic.ts';
import { dashboard } from './views/dashboard.ts';
import type { Html } from './views/html.ts';

export function adminTable(deps: AdminDeps): RouteRow[] {
  const { captures, crashes, metrics, models, slot, version, cpuLevel, toggles } = deps;
  const page = (path: string, handler: RequestHandler) => get(path, withoutSlash, handler);
  const json = (path: string, body: (req: Request) => unknown) =>
    get(path, (req, res) => sendJson(res, body(req)));
  const fragment = (name: string, view: (req: Request) => Html | Promise<Html>) =>
    get(`/admin/fragments/${name}`, async (req, res) => sendHtml(res, await view(req)));
  const snapshot = () => metrics.snapshot(slot.status());
  return [
    page('/admin', (_req, res) => sendHtml(res, dashboard(hasSession(res)))),

    json('/admin/api/metrics', snapshot),
    json('/admin/api/series', ({ query }) => chartData(metrics, query.only === 'rate')),
    json('/admin/api/crashes', () => ({ crashes: crashes.list().map(crashToWire) })),
    post('/admin/api/observability/toggle', toggle(deps)),
    post('/admin/api/observability/clear-payload', clearPayload(deps)),
    post('/admin/api/reset-asr-state', resetAsrState(models)),
    post('/admin/api/models/*id/pull', changeModel(models, 'pull')),
    post('/admin/api/models/*id/load', changeModel(models, 'load')),
    post('/admin/api/models/*id/unload', changeModel(models, 'unload')),
    post('/admin/api/models/*id/remove', removeModel(models)),
    post('/admin/api/slot/stop', stopSlot(deps)),

    fragment('state', stateView(deps)),
    fragment('summary', () => summaryView(snapshot(), { version, cpuLevel, counting: toggles.metrics })),
    fragment('slot', () => slotView(deps)),
    fragment('observability', () => observabilityView(deps)),
    fragment('models', () => modelsView(models)),
    fragment('upstreams', async () => upstreamsView(await deps.upstreams.health())),
    fragment('log', () => logView(deps.logLines())),
    fragment('crashes', () => crashesView(crashes.list())),
    fragment('requests', (req) => requestsView(deps, req)),
    fragment('settings', (req) => settingsView(deps.settings, soughtIn(req))),

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
