/** The composition root: the only place where the parts are constructed and joined. */
import { mkdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import express from 'express';
import type { Logger } from 'winston';
import { createCaptureActions } from './admin/capture-actions.ts';
import { createModelActions } from './admin/model-actions.ts';
import { adminRoutes } from './admin/routes.ts';
import { findFfmpeg } from './audio/find-ffmpeg.ts';
import { openAudio } from './audio/open.ts';
import type { Config } from './config.ts';
import { createModelCache } from './engine/cache.ts';
import { chooseDevice } from './engine/device.ts';
import { loadWithFallback } from './engine/gpu-fallback.ts';
import { createSlot, type Slot } from './engine/slot.ts';
import type { LoadOptions, NativeEngine, TranscriptionModel, VoiceActivityModel } from './engine/types.ts';
import { GatewayError } from './errors.ts';
import { baseUrl } from './http/address.ts';
import { createApiKeys } from './http/api-key.ts';
import { answerParserError, errorHandler } from './http/error-handler.ts';
import { stopServer } from './http/graceful-stop.ts';
import { linger } from './http/linger.ts';
import type { ListedModel } from './http/models.ts';
import { createObserver } from './http/observe.ts';
import { protection } from './http/protection.ts';
import { requestId } from './http/request-id.ts';
import { mountRoutes } from './http/routes.ts';
import { createUploadReceiver } from './http/upload.ts';
import { CATALOGUE, findModel, VOICE_ACTIVITY_ID } from './models/catalogue.ts';
import type { ModelStore } from './models/store.ts';
import type { Exchange } from './observability/exchange.ts';
import { createInstruments, type Instruments } from './observability/instruments.ts';
import { createInventory } from './proxy/inventory.ts';
import { createReverseProxy } from './proxy/reverse-proxy.ts';
import { chatUpstream, speechUpstream } from './proxy/upstream.ts';
import { type Family, type RoutableModel, type Route, route } from './transcription/routing.ts';
import type { TranscribeDeps } from './transcription/transcribe.ts';

export interface AppDeps {
  log: Logger;
  store: ModelStore;
  /** Null when the addon cannot be loaded: everything but transcription still works. */
  engine: NativeEngine | null;
  /** Told of every request when it is over. */
  onExchange?(exchange: Exchange): void;
}

type Caches = ReturnType<typeof createCaches>;

export interface App {
  readonly server: Server;
  readonly slot: Slot;
  /** Loads a model now, so that the first request need not wait. */
  preload(modelId: string): Promise<void>;
  /** Stops what runs, refuses what comes, frees everything. */
  close(): Promise<void>;
}

/** How long log and captures may take to reach the disk when the gateway stops. */
const LAST_LINES_MS = 3000;

export const VERSION: string = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
).version;

export function buildApp(config: Config, deps: AppDeps): App {
  const { log, store } = deps;
  const shutdown = new AbortController();
  const slot = createSlot();
  const instruments = createInstruments(config.observability, {
    log,
    slot: slot.status,
    knownModels: [...CATALOGUE.map((model) => model.id), config.tts.modelId],
  });
  const caches = createCaches(config, deps, instruments);
  mkdirSync(config.tmpDir, { recursive: true });
  const uploads = createUploadReceiver({ tmpDir: config.tmpDir, maxBytes: config.maxUploadBytes });
  const recognition = createRecognition(config, deps, slot, caches);
  const observer = createObserver({
    beginCapture: instruments.beginCapture,
    finished(exchange) {
      instruments.finished(exchange);
      deps.onExchange?.(exchange);
    },
  });

  const app = express();
  const server = createServer(app);
  app.disable('x-powered-by');
  app.disable('etag');
  app.use(requestId(), observer.watch, linger(), ...protection(config));
  mountRoutes(app, {
    version: VERSION,
    apiKeys: createApiKeys(config.apiKeys),
    models: {
      list: () => servable(config, deps, caches),
      upstreams: createInventory(config),
      aliases: config.modelAliases,
      startedAtSec: Math.floor(Date.now() / 1000),
    },
    transcriptions: { ...recognition, uploads, shutdown: shutdown.signal, log },
    speech: createReverseProxy(speechUpstream(config.tts)),
    chat: createReverseProxy(chatUpstream(config.llm)),
    prometheus: instruments.prometheus,
    admin: adminRoutes({
      version: VERSION,
      log,
      slot,
      metrics: instruments.metrics,
      toggles: instruments.toggles,
      captures: createCaptureActions({
        dir: config.observability.payloadDir,
        capture: instruments.capture,
        base: () => addressOf(server),
        apiKey: config.apiKeys[0],
      }),
      models: createModelActions({
        catalogue: CATALOGUE.filter((model) => model.engine !== 'silero'),
        store,
        cache: caches.models,
        signal: shutdown.signal,
      }),
    }),
  });
  app.use(errorHandler(log));

  // An upload may take as long as it needs while it moves; the receiver watches for a stall itself.
  server.requestTimeout = 0;
  // Above the idle time of common reverse proxies, so that they never reuse a connection being closed.
  server.keepAliveTimeout = 75_000;
  // `100 Continue` is sent by whoever reads the body, so that a busy gateway refuses before it.
  server.on('checkContinue', app);
  server.on('clientError', answerParserError);

  return {
    server,
    slot,
    async preload(modelId) {
      const chosen = recognition.route({ model: modelId, language: undefined, translate: false });
      await recognition.ensureWeights(chosen.modelId, shutdown.signal);
      await using _vad = await caches.voiceActivity.lease(VOICE_ACTIVITY_ID);
      await using _model = await caches.models.lease(chosen.modelId);
    },
    async close() {
      shutdown.abort(new GatewayError('network', 'The gateway is shutting down', { code: 'shutting_down' }));
      await stopServer(server, observer.inFlight);
      await Promise.all([caches.models.close(), caches.voiceActivity.close()]);
      uploads.close();
      // Last: what ended just now is still to be written. A disk that hangs must not keep the process.
      await Promise.race([instruments.close(), sleep(LAST_LINES_MS, undefined, { ref: false })]);
    },
  };
}

function servable(config: Config, { store, engine }: AppDeps, caches: Caches): ListedModel[] {
  const loaded = new Set(caches.models.entries().map((entry) => entry.key));
  return routable(store, engine)
    .filter((model) => model.servable && (model.installed || config.modelDownload))
    .map((model) => ({ ...model, loaded: loaded.has(model.id) }));
}

/** Where the server answers, for a request of its own; null before it listens. */
function addressOf(server: Server): string | null {
  const address = server.address();
  if (address === null || typeof address === 'string') return null;
  const host = { '0.0.0.0': '127.0.0.1', '::': '::1' }[address.address] ?? address.address;
  return baseUrl(host, address.port);
}

function createCaches(
  config: Config,
  { log, store, engine }: AppDeps,
  { prometheus }: Pick<Instruments, 'prometheus'>,
) {
  const options = {
    keepAliveMs: config.modelKeepAliveMs,
    onEvent(event: 'loaded' | 'unloaded', model: string, ms: number) {
      log.info(event, { model, tookMs: Math.round(ms) });
      if (event === 'loaded') prometheus.modelLoaded(model, ms / 1000);
      else prometheus.modelUnloaded(model);
    },
  };
  const native = () => {
    if (engine === null) throw new Error('the native engine is not loaded');
    return engine;
  };
  const { device, gpu } = chooseDevice(config.device, engine?.info.devices ?? []);
  return {
    models: createModelCache<TranscriptionModel>({
      ...options,
      async load(id) {
        const backend = engineOf(id);
        const { path } = await store.ensure(id);
        const load = (on: string) =>
          native().loadModel({ backend, path, device: on, threads: config.threads });
        if (!gpu) return load(device);
        return loadWithFallback({
          gpu: device,
          load,
          onFallback: (error) => log.warn(`${id} goes on on the CPU: ${error.message}`),
        });
      },
    }),
    voiceActivity: createModelCache<VoiceActivityModel>({
      ...options,
      load: async (id) => native().loadVoiceActivity({ path: (await store.ensure(id)).path }),
    }),
  };
}

function engineOf(id: string): LoadOptions['backend'] {
  const engine = findModel(id)?.engine;
  if (engine === undefined || engine === 'silero') throw new Error(`${id} is not a recognition model`);
  return engine;
}

function createRecognition(
  config: Config,
  { store, engine }: AppDeps,
  slot: Slot,
  caches: Caches,
): TranscribeDeps {
  const ffmpeg = once(() => findFfmpeg({ searchPath: config.environment.PATH ?? '' }));
  return {
    route: (request) =>
      route(request, routable(store, engine), {
        defaultSize: config.modelDefaultSize,
        aliases: config.modelAliases,
      }),
    unavailable: (chosen) => unavailable(chosen, engine),
    async ensureWeights(modelId, signal) {
      await store.ensure(VOICE_ACTIVITY_ID, { signal });
      await store.ensure(modelId, { signal });
    },
    openAudio: (path, signal) => {
      if (engine === null) throw new Error('the native engine is not loaded');
      return openAudio(path, { engine, ffmpeg: ffmpeg(), maxAudioSec: config.maxAudioSec, signal });
    },
    slot,
    ...caches,
  };
}

function routable(store: ModelStore, engine: NativeEngine | null): RoutableModel[] {
  return CATALOGUE.filter((model) => model.engine !== 'silero').map((model) => ({
    id: model.id,
    family: model.provider as Family,
    servable: unavailable({ family: model.provider as Family }, engine) === null,
    installed: store.isInstalled(model.id),
  }));
}

function unavailable({ family }: Pick<Route, 'family'>, engine: NativeEngine | null): GatewayError | null {
  if (engine !== null) return null;
  const why = 'the native engine could not be loaded; the start log says why';
  return new GatewayError('network', `The ${family} backend is not available: ${why}`, {
    provider: family,
    code: 'backend_unavailable',
  });
}

/** Looked for when first needed, so that it does not delay the start. */
function once<T>(compute: () => T): () => T {
  let value: { is: T } | null = null;
  return () => {
    value ??= { is: compute() };
    return value.is;
  };
}
