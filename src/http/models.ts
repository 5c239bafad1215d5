/** GET /v1/models and /v1/models/{id}: what can serve a request right now (contract 2.3, 4.2). */
import type { RequestHandler } from 'express';
import { GatewayError } from '../errors.ts';
import { languagesOf, type RoutableModel, resolveAlias } from '../transcription/routing.ts';

export interface ListedModel extends RoutableModel {
  loaded: boolean;
}

export interface ModelsDeps {
  /** ASR models that can serve, installed or to be downloaded. */
  list(): ListedModel[];
  aliases: Readonly<Record<string, string>>;
  startedAtSec: number;
}

/** The European engine decodes a whole chunk at once; the others give each segment as it is decoded. */
export const streams = (model: Pick<RoutableModel, 'family'>) => model.family !== 'european';

export function listModels(deps: ModelsDeps): RequestHandler {
  return (_req, res) => {
    res.json({ object: 'list', data: entries(deps) });
  };
}

export function getModel(deps: ModelsDeps): RequestHandler {
  return (req, res) => {
    const asked = String(req.params.id);
    const id = resolveAlias(asked, deps.aliases);
    const entry = entries(deps).find((model) => model.id === id);
    if (entry === undefined) {
      throw new GatewayError('not_found', `No model "${asked.slice(0, 80)}" can serve now`, {
        code: 'model_not_found',
      });
    }
    res.json(entry);
  };
}

function entries(deps: ModelsDeps) {
  const models = deps.list();
  if (models.length === 0) return [];
  const installed = models.filter((model) => model.installed);
  const entry = (id: string, extra: object) => ({
    id,
    object: 'model',
    created: deps.startedAtSec,
    owned_by: 'voxgate',
    capabilities: ['asr'],
    ...extra,
  });
  return [
    entry('auto', {
      supports_streaming: (installed.length > 0 ? installed : models).every(streams),
      is_routing_alias: true,
      installed: installed.length > 0,
      loaded: models.some((model) => model.loaded),
    }),
    ...[...installed, ...models.filter((model) => !model.installed)].map((model) =>
      entry(model.id, {
        languages: languagesOf(model),
        supports_streaming: streams(model),
        is_routing_alias: false,
        installed: model.installed,
        loaded: model.loaded,
      }),
    ),
  ];
}
