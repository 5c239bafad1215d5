/** Which model a name means now, by what is installed here, and the parts that a transcription is made of. */
import type { Config } from './config/config.ts';
import type { NativeEngine } from './engine/types.ts';
import type { ListedModel } from './http/models.ts';
import type { ModelCaches } from './model-caches.ts';
import { CATALOGUE, DIARIZATION, VOICE_ACTIVITY } from './models/catalogue.ts';
import { publishedFile } from './models/hub.ts';
import type { ModelProgress } from './models/source.ts';
import type { ModelStore } from './models/store.ts';
import {
  modelNamed,
  type RoutableModel,
  type Route,
  type RouteOptions,
  type RouteRequest,
  route,
} from './transcription/routing.ts';
import type { TranscriptionDeps } from './transcription/session.ts';

interface Parts {
  store: ModelStore;
  engine: NativeEngine;
}

export interface Naming extends Required<RouteOptions> {
  /** The id of the model that requests with this name use now, for the operator; undefined for an unknown name. */
  modelId(name: string): string | undefined;
  /** Chooses a model for a request. @throws GatewayError for an unknown name, or a model that requests may not use */
  route(request: RouteRequest): Route;
}

/** How names become models here, for requests and for the operator alike. */
export function createNaming(
  config: Pick<Config, 'modelAllow' | 'modelAliases' | 'modelDefaultSize'>,
  { store, engine }: Parts,
  caches: Pick<ModelCaches, 'models'>,
): Naming {
  const options = { defaultSize: config.modelDefaultSize, aliases: config.modelAliases };
  const named = (name: string, isAllowed?: RouteOptions['isAllowed']) =>
    modelNamed(name, routable(store, engine, caches), { ...options, ...(isAllowed && { isAllowed }) })?.id;
  const allowed = new Set(config.modelAllow.map((name) => named(name)));
  const isAllowed = ({ id }: { id: string }) => allowed.size === 0 || allowed.has(id);
  return {
    ...options,
    isAllowed,
    modelId: (name) => named(name, isAllowed),
    route: (request) => route(request, routable(store, engine, caches), { ...options, isAllowed }),
  };
}

export function servable(config: Config, { store, engine }: Parts, caches: ModelCaches): ListedModel[] {
  const loaded = new Set(caches.models.entries().map((entry) => entry.key));
  // Every recognition model needs the voice activity model.
  const complete = store.isInstalled(VOICE_ACTIVITY.id);
  const diarizes = config.modelDownload || hasSpeakerModel(store, caches);
  const fetching = new Map(store.activity().map((progress) => [progress.id, progress]));
  return routable(store, engine, caches)
    .filter(
      (model) => model.servable && model.fits && ((model.installed && complete) || config.modelDownload),
    )
    .map((model) => ({
      ...model,
      diarizes,
      loaded: loaded.has(model.id),
      bytes: store.filesOf(model.id)[0]?.bytes ?? publishedFile(model, 'q8_0')?.bytes ?? 0,
      fetching: fetching.get(model.id),
    }));
}

export function createTranscription(
  naming: Pick<Naming, 'aliases' | 'route'>,
  { store }: Pick<Parts, 'store'>,
  shared: Pick<TranscriptionDeps, 'slot' | 'beamSize' | 'onTextUntil'>,
  caches: ModelCaches,
): TranscriptionDeps {
  return {
    aliases: naming.aliases,
    route: naming.route,
    hasWeights: ({ modelId, speakers }) =>
      (!speakers || hasSpeakerModel(store, caches)) &&
      (isLoaded(caches.voiceActivity, VOICE_ACTIVITY.id) || store.isInstalled(VOICE_ACTIVITY.id)) &&
      (isLoaded(caches.models, modelId) || store.isInstalled(modelId)),
    async ensureWeights({ modelId, speakers }, signal, onFetching) {
      const onProgress = ({ phase, doneBytes }: ModelProgress) => {
        // Verifying a file, and a download without its first byte, may still fail with a status of their own.
        if (phase !== 'verifying' && (phase !== 'downloading' || doneBytes > 0)) onFetching();
      };
      // A loaded model serves on when its file is gone or has changed; the file matters when it is loaded again.
      const isMissing = !isLoaded(caches.models, modelId);
      if (isMissing) caches.models.assertFits(modelId); // before a download, which would be in vain
      if (!isLoaded(caches.voiceActivity, VOICE_ACTIVITY.id))
        await store.ensure(VOICE_ACTIVITY.id, { signal, onProgress });
      if (speakers && !isLoaded(caches.speakers, DIARIZATION.id))
        await store.ensure(DIARIZATION.id, { signal, onProgress });
      if (isMissing) await store.ensure(modelId, { signal, onProgress });
    },
    ...shared,
    ...caches,
  };
}

/** Whether speakers can be told apart without a download. */
export const hasSpeakerModel = (
  store: Pick<ModelStore, 'isInstalled'>,
  caches: Pick<ModelCaches, 'speakers'>,
) => isLoaded(caches.speakers, DIARIZATION.id) || store.isInstalled(DIARIZATION.id);

function isLoaded(cache: Pick<ModelCaches['models'], 'entries'>, id: string): boolean {
  return cache.entries().some((entry) => entry.key === id && entry.state === 'resident');
}

function routable(
  store: ModelStore,
  engine: NativeEngine,
  caches: Pick<ModelCaches, 'models'>,
): RoutableModel[] {
  return CATALOGUE.map((model) => ({
    ...model,
    servable: engine.info.families.includes(model.family),
    fits: isLoaded(caches.models, model.id) || caches.models.fits(model.id),
    installed: store.isInstalled(model.id),
  }));
}
