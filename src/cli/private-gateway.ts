/** A gateway for one process: on loopback, with a key that nobody else has, and without records of its traffic. */
import { randomBytes } from 'node:crypto';
import { stat } from 'node:fs/promises';
import type { AppDeps } from '../app.ts';
import { openAudio } from '../audio/open.ts';
import type { Config } from '../config/config.ts';
import { createModelCaches, type ModelCaches } from '../model-caches.ts';
import { VOICE_ACTIVITY } from '../models/catalogue.ts';
import type { ModelProgress } from '../models/source.ts';
import type { ModelStore } from '../models/store.ts';
import { createNaming, type Naming } from '../recognition.ts';
import type { RouteRequest } from '../transcription/routing.ts';
import { createProgressView } from './model-progress.ts';
import { startGateway } from './start-gateway.ts';
import { BUSY_SEC } from './transcribe-client.ts';

export interface PrivateGateway extends AsyncDisposable {
  base: string;
  key: string | undefined;
  /** The seconds of audio that the head of a file tells; null where it tells none. */
  durationOf?: ((path: string) => Promise<number | null>) | undefined;
  /** Has the listener called with the second up to which the file that is heard has its text. */
  onHeard?: ((listener: (sec: number) => void) => void) | undefined;
}

const UNCOUNTED = { modelLoaded: () => undefined, modelUnloaded: () => undefined };

/**
 * It shows the progress of what it downloads on stderr.
 * @param coming the first request, whose model is loaded meanwhile
 */
export async function startPrivateGateway(
  config: Config,
  { store, ...parts }: Pick<AppDeps, 'engine' | 'device' | 'store' | 'log'>,
  coming?: RouteRequest,
): Promise<PrivateGateway> {
  const key = randomBytes(24).toString('base64url');
  const view = createProgressView();
  const shown: ModelStore = {
    ...store,
    ensure: (id, options) =>
      store
        .ensure(id, {
          ...options,
          onProgress(progress: ModelProgress) {
            view.update(progress);
            options?.onProgress?.(progress);
          },
        })
        .finally(() => view.close()),
  };
  const off = { metrics: false, accessLog: false, payload: false };
  // What is in the folders belongs to a gateway that serves, which may have other limits.
  const forever = Number.POSITIVE_INFINITY;
  const kept = { logMaxDays: forever, logMaxGb: forever, payloadMaxDays: forever, payloadMaxGb: forever };
  const observability = { ...config.observability, ...off, ...kept };
  const own = {
    host: '127.0.0.1',
    port: 0,
    wyomingPort: undefined,
    apiKeys: [key],
    adminKeys: [],
    keyNames: new Map(),
    maxWaitSec: BUSY_SEC,
  };
  const deps = { ...parts, store: shown };
  const caches = createModelCaches(config, { ...deps, prometheus: UNCOUNTED });
  if (coming) loadAhead(coming, createNaming(config, deps, caches), deps, caches);
  let heard: (sec: number) => void = () => undefined;
  const { app, base } = await startGateway(
    { ...config, ...own, observability },
    { ...deps, caches, crashes: { list: () => [] }, onHeard: (sec) => heard(sec) },
  );
  async function durationOf(path: string): Promise<number | null> {
    try {
      // A pipe could be read only once.
      if (!(await stat(path)).isFile()) return null;
      const { maxAudioSec } = config;
      await using source = await openAudio(path, { engine: parts.engine, ffmpeg: null, maxAudioSec });
      return source.durationSec;
    } catch {
      return null; // the gateway says what is wrong with it
    }
  }
  return {
    base,
    key,
    durationOf,
    onHeard: (listener) => {
      heard = listener;
    },
    [Symbol.asyncDispose]: () => app.close(),
  };
}

/**
 * Loads what a request will use in threads of its own while the modules of the gateway load. What has to be downloaded,
 * and what fails, is left to the request.
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
