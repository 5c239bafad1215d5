/** GET /v1/models and /v1/models/{id} list the models that can serve a request right now (contract 2.3, 4.2). */
import type { RequestHandler } from 'express';
import { excerpt, GatewayError } from '../errors.ts';
import type { ModelProgress } from '../models/source.ts';
import type { Inventory, UpstreamModel } from '../proxy/inventory.ts';
import { MODEL_IDS, modelMeant, type RoutableModel, resolveName } from '../transcription/routing.ts';

export interface ListedModel extends RoutableModel {
  loaded: boolean;
  /** True when requests for it may have their speakers told apart by voice. */
  diarizes: boolean;
  /** The size of its weights: on disk, or to be downloaded. */
  bytes: number;
  /** How far its weights are, while they are made ready. */
  fetching: ModelProgress | undefined;
}

export interface ModelsDeps {
  /** The recognition models that can serve a request, installed or to be downloaded. */
  list(): ListedModel[];
  /** The weights that are being prepared now. */
  fetching(): ModelProgress | undefined;
  /** The models that the speech upstream and the chat daemon serve now. */
  upstreams: Inventory;
  /** The names of the settings, which are entries of their own. */
  aliases: Readonly<Record<string, string>>;
  startedAtSec: number;
}

export function listModels(deps: ModelsDeps): RequestHandler {
  return async (_req, res) => {
    res.json({ object: 'list', data: await entries(deps) });
  };
}

export function getModel(deps: ModelsDeps): RequestHandler {
  return async (req, res) => {
    // The ids of a chat daemon may hold slashes.
    const asked = [req.params.id].flat().join('/');
    const all = await entries(deps);
    // A name that is listed is that of the entry, also where it is a built-in name as well.
    const entry = all.find(({ id }) => id === asked) ?? namedEntry(asked, all, deps);
    if (entry === undefined) throw new GatewayError('model_not_found', { model: excerpt(asked) });
    res.json(entry);
  };
}

/** The entry of the model that the name stands for, under the name. */
function namedEntry<E extends { id: string; installed: boolean }>(
  name: string,
  all: readonly E[],
  { aliases }: ModelsDeps,
) {
  const entry = modelMeant(resolveName(name, aliases), all);
  return entry && { ...entry, id: name, is_routing_alias: false, alias_of: entry.id };
}

/**
 * Each id is listed once. Where several entries have it, in one list or in several, the first one counts. The ids of
 * this gateway are never those of an upstream's model, also where nothing can be transcribed.
 */
async function entries(deps: ModelsDeps) {
  const upstream = deps.upstreams.models();
  const own = recognitionEntries(deps);
  const others = (await upstream)
    .filter(({ id }) => !MODEL_IDS.includes(id))
    .map((model) => upstreamEntry(model, deps.startedAtSec));
  const byId = new Map<string, (typeof own | typeof others)[number]>();
  for (const entry of [...own, ...others]) if (!byId.has(entry.id)) byId.set(entry.id, entry);
  return [...byId.values()];
}

function upstreamEntry({ id, category, embeds, created, ownedBy }: UpstreamModel, startedAtSec: number) {
  return {
    id,
    object: 'model',
    created: created ?? startedAtSec,
    owned_by: ownedBy ?? category,
    capabilities: [embeds ? 'embedding' : category],
    supports_streaming: !embeds,
    is_routing_alias: false,
    installed: true,
    loaded: true,
  };
}

function recognitionEntries(deps: ModelsDeps) {
  const models = deps.list();
  if (models.length === 0) return [];
  const installed = models.some((model) => model.installed);
  const entry = <E extends { installed: boolean }>(id: string, extra: E) => ({
    id,
    object: 'model',
    created: deps.startedAtSec,
    owned_by: 'voxgate',
    capabilities: ['asr'],
    ...extra,
  });
  const auto = entry('auto', {
    supports_streaming: models.every((model) => model.streams),
    supports_translation: models.some((model) => model.translates),
    supports_diarization: models.some((model) => model.diarizes),
    supports_alignment: models.some((model) => model.aligns),
    is_routing_alias: true,
    installed,
    loaded: models.some((model) => model.loaded),
    ...fetchingOf(deps.fetching()),
  });
  const byId = models.map((model) =>
    entry(model.id, {
      languages: model.languages,
      supports_streaming: model.streams,
      supports_translation: model.translates,
      supports_diarization: model.diarizes,
      supports_alignment: model.aligns === true,
      is_routing_alias: false,
      size_bytes: model.bytes,
      installed: model.installed,
      loaded: model.loaded,
      ...fetchingOf(model.fetching),
    }),
  );
  const own = Object.keys(deps.aliases).flatMap((name) => namedEntry(name, [auto, ...byId], deps) ?? []);
  const further = [...byId, ...own];
  return [auto, ...further.filter((one) => one.installed), ...further.filter((one) => !one.installed)];
}

function fetchingOf(progress: ModelProgress | undefined) {
  if (progress === undefined) return {};
  const { id: model, phase, doneBytes, totalBytes } = progress;
  return { fetching: { model, phase, done_bytes: doneBytes, total_bytes: totalBytes } };
}
