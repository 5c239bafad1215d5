/** Transcribes in this process, without a server: for the command `transcribe`, and for programs. */
import type { AppDeps } from '../app.ts';
import type { Config } from '../config/config.ts';
import { createModelCaches, type ModelCaches } from '../model-caches.ts';
import { VOICE_ACTIVITY } from '../models/catalogue.ts';
import type { ModelProgress } from '../models/source.ts';
import type { ModelStore } from '../models/store.ts';
import { createNaming, type Naming } from '../recognition.ts';
import type { RouteRequest } from '../transcription/routing.ts';
import type { Transcriber } from './question.ts';

/**
 * It shows the progress of what it downloads on stderr.
 * @param coming the first request, whose model is loaded meanwhile
 */
export async function startTranscriber(
  config: Config,
  { store, ...parts }: Pick<AppDeps, 'engine' | 'device' | 'store' | 'log'>,
  coming?: RouteRequest,
): Promise<Transcriber> {
  const deps = { ...parts, store: withProgress(store) };
  const caches = createModelCaches(config, deps);
  const naming = createNaming(config, deps, caches);
  if (coming) loadAhead(coming, naming, deps, caches);
  const { createAnswering } = await import('./answering.ts');
  return createAnswering(config, deps, { caches, naming });
}

function withProgress(store: ModelStore): ModelStore {
  return {
    ...store,
    async ensure(id, options) {
      if (store.isInstalled(id)) return await store.ensure(id, options);
      const { createProgressView } = await import('./model-progress.ts');
      const view = createProgressView();
      const onProgress = (progress: ModelProgress) => {
        view.update(progress);
        options?.onProgress?.(progress);
      };
      return await store.ensure(id, { ...options, onProgress }).finally(() => view.close());
    },
  };
}

/**
 * Loads what a request will use in threads of its own while the other modules load. What has to be downloaded, and what
 * fails, is left to the request.
 */
function loadAhead(
  request: RouteRequest,
  naming: Naming,
  { store }: Pick<AppDeps, 'store'>,
  { models, voiceActivity }: ModelCaches,
): void {
  const load = async () => {
    const { model } = naming.route(request);
    if (!store.isInstalled(model.id) || !store.isInstalled(VOICE_ACTIVITY.id)) return;
    await using _model = await models.lease(model.id);
    await using _voices = await voiceActivity.lease(VOICE_ACTIVITY.id);
  };
  load().catch(() => undefined);
}
