/** The composition root of the server: it constructs the parts and joins them. */
import { setMaxListeners } from 'node:events';
import type { Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import express from 'express';
import type { Logger } from 'winston';
import { ownBaseUrl } from './address.ts';
import { createCaptureActions } from './admin/capture-actions.ts';
import { createModelActions } from './admin/model-actions.ts';
import { adminPaths } from './admin/openapi.ts';
import { adminRoutes } from './admin/routes.ts';
import { createWatch } from './admin/watch.ts';
import { createAudioOpener } from './audio/opener.ts';
import type { Category } from './category.ts';
import type { Config } from './config/config.ts';
import { shownGroups } from './config/shown-settings.ts';
import type { Crashes } from './crashes/crashes.ts';
import type { ChosenDevice } from './engine/device.ts';
import { createSlot } from './engine/slot.ts';
import type { NativeEngine } from './engine/types.ts';
import { createWaitingLine, type TicketRequest } from './engine/waiting-line.ts';
import { excerpt, GatewayError } from './errors.ts';
import { keyFinder } from './gateway-keys.ts';
import { createApiKeys, SECRET_PREFIX } from './http/access/api-key.ts';
import { protection } from './http/access/protection.ts';
import { createTokens } from './http/access/tokens.ts';
import { errorHandler } from './http/error-handler.ts';
import { observeRequests } from './http/observe.ts';
import { get } from './http/route-table.ts';
import { mountCategories, mountRoutes } from './http/routes.ts';
import { createGracefulStop } from './http/server/graceful-stop.ts';
import { requestId } from './http/server/request-id.ts';
import { createHttpServer } from './http/server/server.ts';
import { endSlowReaders, linger } from './http/server/slow-clients.ts';
import { wellFormed } from './http/server/well-formed.ts';
import { bodyReceiver } from './http/upload/proxied-body.ts';
import type { BodyStorage } from './http/upload/request-body.ts';
import { createSpool } from './http/upload/spool.ts';
import { uploadReceiver } from './http/upload/upload.ts';
import { type Budgets, type OtherBudgets, withBudgets } from './limits/budgets.ts';
import { createEventLoopShares } from './limits/event-loop-shares.ts';
import { createLivePlaces } from './limits/live-places.ts';
import { createUploadPlaces } from './limits/upload-places.ts';
import { type ClientSecrets, clientSecretRoutes } from './live/realtime/client-secrets.ts';
import { livePaths } from './live/realtime/openapi.ts';
import { createRealtime, type RealtimeDeps } from './live/realtime/route.ts';
import { createWyoming, infoOf } from './live/wyoming/server.ts';
import { usableMemoryBytes } from './machine.ts';
import { createModelCaches } from './model-caches.ts';
import { CATALOGUE, VOICE_ACTIVITY } from './models/catalogue.ts';
import { withoutAlias } from './models/names.ts';
import type { ModelStore } from './models/store.ts';
import type { Exchange } from './observability/exchange.ts';
import { createInstruments } from './observability/instruments.ts';
import { createLogTail } from './observability/log-tail.ts';
import { createInventory, type UpstreamModel } from './proxy/inventory.ts';
import { PROBLEM_KINDS } from './proxy/probe.ts';
import { createReverseProxy } from './proxy/reverse-proxy.ts';
import { chatUpstream, speechUpstream } from './proxy/upstream.ts';
import { createNaming, createTranscription, hasSpeakerModel, servable } from './recognition.ts';
import { createTurnDetection } from './transcription/live/turn-detection.ts';
import { createVoiceActivityLane } from './transcription/live/voice-activity-lane.ts';
import { VERSION } from './version.ts';

export interface AppDeps {
  log: Logger;
  store: ModelStore;
  /** `missingEngine` when the addon cannot be loaded: everything but transcription still works. */
  engine: NativeEngine;
  /** Where models run. */
  device: ChosenDevice;
  /** The crashes that the dashboard shows. */
  crashes: Pick<Crashes, 'list'>;
  /** Tests pass smaller limits. */
  budgets?: OtherBudgets | undefined;
  /** Called with the id of the request that has taken the slot, and with null when the slot is free again. */
  onHolder?: ((requestId: string | null) => void) | undefined;
  /** Called once for every request, after its response has ended. */
  onExchange?(exchange: Exchange): void;
}

export type App = ReturnType<typeof buildApp>;

/** The time that the log and the captures have to reach the disk when the gateway stops. */
const LAST_LINES_MS = 3000;

export function buildApp(config: Config, deps: AppDeps) {
  const engine = buildEngine(config, deps);
  const { slot, line, caches, naming, transcription, audio, instruments, shutdown, gracefulStop } = engine;
  const live = buildLive(config, deps, engine);
  const storage = bodyStorage(config, deps.log, engine.budgets.upload);
  const server = buildHttp(config, deps, { engine, live, storage });
  return {
    server,
    /** Speaks Wyoming where it is told to listen. */
    wyoming: live.wyoming.server,
    slot,
    /** Why some formats of audio cannot be read, in words for the operator; null if all of them can. */
    audioProblem: audio.problem,
    /** Loads a model and the voice activity model now, so that the first request does not wait for them. */
    async preload(name: string): Promise<void> {
      const modelId = naming.modelId(name);
      if (modelId === undefined) throw new GatewayError('model_not_found', { model: excerpt(name) });
      const needed = { modelId, speakers: false };
      await transcription.ensureWeights(needed, shutdown.signal, () => undefined);
      await using _vad = await caches.voiceActivity.lease(VOICE_ACTIVITY.id);
      await using _model = await caches.models.lease(modelId);
    },
    /** Refuses new requests with `shutting_down`, gives those under way `drainMs` to end, and frees the models. */
    async close(drainMs = 0): Promise<void> {
      const abort = () => shutdown.abort(new GatewayError('shutting_down', {}));
      const stopped = gracefulStop.stop(server, { drainMs, abort, also: live.wyoming.stop() });
      line.close();
      engine.watch.stop();
      engine.logTail.stop();
      await live.realtime.stop();
      await stopped;
      await caches.close();
      storage.spool.close();
      // This comes last, so that the requests that ended just now are written, unless the disk hangs.
      await Promise.race([instruments.close(), sleep(LAST_LINES_MS, undefined, { ref: false })]);
    },
  };
}

type Engine = ReturnType<typeof buildEngine>;
type Live = ReturnType<typeof buildLive>;

interface HttpParts {
  engine: Engine;
  live: Live;
  storage: BodyStorage;
}

/** What recognizes speech, one request at a time, and what is seen of it. */
function buildEngine(config: Config, deps: AppDeps) {
  const { log } = deps;
  const budgets = withBudgets(deps.budgets);
  const shutdown = new AbortController();
  setMaxListeners(0, shutdown.signal); // each request under way has one
  const slot = createSlot({ maxHoldMs: config.maxHoldMs, onChange: deps.onHolder });
  const line = createWaitingLine(slot, budgets.waiting);
  const slotStatus = () => ({ ...slot.status(), waiting: line.waiting() });
  const upstreams = createInventory(config, log);
  const livePlaces = createLivePlaces(config.maxLiveSessions);
  const { apiKeys, adminKeys, tts, llm } = config;
  const holdsKey = keyFinder([...apiKeys, ...adminKeys, tts.apiKey ?? [], llm.apiKey ?? []].flat());
  const instruments = createInstruments(config.observability, {
    log,
    slot: slotStatus,
    knownModels: [...CATALOGUE.map((model) => model.id), config.tts.modelId],
    upstreams: { ...upstreams, causes: PROBLEM_KINDS },
    liveSessions: () => livePlaces.holders(),
    build: { version: VERSION, cpu: deps.engine.info.cpuLevel, device: deps.device.device },
  });
  const caches = createModelCaches(config, { ...deps, prometheus: instruments.prometheus });
  const naming = createNaming(config, deps, caches);
  return {
    budgets,
    shutdown,
    gracefulStop: createGracefulStop(),
    slot,
    line,
    slotStatus,
    upstreams,
    livePlaces,
    holdsKey,
    logTail: createLogTail(log, holdsKey),
    instruments,
    watch: createWatch({
      folders: () => ({ uploads: config.tmpDir, models: config.modelDir, ...instruments.folders() }),
      memoryBytes: usableMemoryBytes(),
    }),
    caches,
    naming,
    transcription: createTranscription(naming, deps, { slot, beamSize: config.beamSize }, caches),
    audio: createAudioOpener({
      engine: deps.engine,
      searchPath: config.environment.PATH ?? '',
      maxAudioSec: config.maxAudioSec,
      limits: budgets.ffmpeg,
    }),
    /** The models that are served now. */
    models: () => servable(config, deps, caches).filter(naming.isAllowed),
    finished(exchange: Exchange) {
      instruments.finished(exchange);
      deps.onExchange?.(exchange);
    },
  };
}

/** Live sessions over WebSockets and over Wyoming. */
function buildLive(config: Config, deps: AppDeps, engine: Engine) {
  const { budgets, slot, line, caches } = engine;
  const isSlotHeld = () => !slot.isFree();
  type Asked = Pick<TicketRequest, 'requestId' | 'network' | 'waitMs'> & Partial<TicketRequest>;
  const takeWaiting = (category: Category) => (request: Asked, signal: AbortSignal) => {
    const ticket = line.ticket({ onWaited: () => undefined, ...request, category, isLive: true });
    return ticket.take(signal).finally(ticket.end);
  };
  const voiceActivityLane = createVoiceActivityLane(isSlotHeld);
  const sessions = {
    transcription: engine.transcription,
    slot,
    waitMs: config.liveWaitMs,
    takeWaiting: takeWaiting('asr'),
    async loadVoiceActivity(signal: AbortSignal) {
      const { path } = await deps.store.ensure(VOICE_ACTIVITY.id, { signal });
      return voiceActivityLane(await deps.engine.loadVoiceActivity({ path }));
    },
    turnDetection: createTurnDetection(caches.turnDetectors, deps.store),
    diarizes: () => hasSpeakerModel(deps.store, caches),
  };
  const shared = {
    live: sessions,
    places: engine.livePlaces,
    joinEventLoop: createEventLoopShares(budgets.eventLoop, { isSlotHeld }),
    shutdown: engine.shutdown.signal,
    log: deps.log,
    onExchange: engine.finished,
  };
  const chats = async () =>
    (await engine.upstreams.models()).filter(({ category, embeds }) => category === 'llm' && !embeds);
  const secrets: ClientSecrets = createTokens({ ...budgets.clientSecrets, prefix: SECRET_PREFIX });
  return {
    sessions,
    secrets,
    realtime: createRealtime({
      ...shared,
      limits: budgets.live,
      gracefulStop: engine.gracefulStop,
      onAnswer: engine.instruments.answered,
      isChatModel: async (name) => (await chats()).some(({ id }) => id === name),
      answers: answersOf(config, engine, chats, takeWaiting('llm')),
    }),
    wyoming: createWyoming({
      ...shared,
      limits: { ...budgets.live, ...budgets.wyoming },
      sparedMs: budgets.connection.sparedMs,
      speech: {
        upstream: speechUpstream(config.tts),
        errorLimits: budgets.upstream,
        modelId: config.tts.modelId,
        waitMs: config.liveWaitMs,
        takeWaiting: takeWaiting('tts'),
      },
      async info() {
        const named = await engine.upstreams.voices();
        return infoOf({
          models: engine.models(),
          voices: named?.length === 0 ? [config.tts.modelId] : named,
          voiceLanguages: [...new Set(CATALOGUE.flatMap(({ languages }) => languages))],
          version: VERSION,
        });
      },
    }),
  };
}

/** What answers in conversations. @param chats the models of the chat daemon that chat */
function answersOf(
  config: Config,
  { budgets, upstreams }: Engine,
  chats: () => Promise<UpstreamModel[]>,
  takeWaiting: RealtimeDeps['answers']['takeWaiting'],
): RealtimeDeps['answers'] {
  return {
    chat: chatUpstream(config.llm),
    speech: speechUpstream(config.tts),
    speechModel: config.tts.modelId,
    async chatModel(name) {
      const models = await chats();
      const meant = name && withoutAlias(name, config.modelAliases);
      const found = models.find(({ id }) => id === meant) ?? models[0];
      return found && (upstreams.nameOf('llm', found.id) ?? found.id);
    },
    async voiceOf(name) {
      const listed = name === undefined ? [] : ((await upstreams.voices()) ?? []);
      return listed.length === 0 || listed.includes(name ?? '') ? name : undefined;
    },
    limits: budgets.conversation,
    errorLimits: budgets.upstream,
    waitMs: config.liveWaitMs,
    takeWaiting,
  };
}

/** The server with all routes. */
function buildHttp(config: Config, deps: AppDeps, parts: HttpParts): Server {
  const { log } = deps;
  const { budgets, instruments, gracefulStop, finished, holdsKey } = parts.engine;
  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  app.enable('case sensitive routing');
  app.set('trust proxy', config.trustProxy);
  const slowReaders = endSlowReaders(budgets.answer, log);
  const arrival = [
    gracefulStop.watch,
    requestId(holdsKey),
    observeRequests({ beginCapture: instruments.beginCapture, finished, holdsKey }),
    linger(budgets.linger),
    slowReaders,
  ];
  const onError = errorHandler(log);
  const server = createHttpServer({
    app,
    log,
    arrival,
    onError,
    finished,
    holdsKey,
    limits: {
      ...budgets.connection,
      maxConnections: config.maxConnections,
      keepAliveMs: config.keepAliveMs,
    },
  });
  app.use(...arrival);
  mountCategories(app);
  app.use(wellFormed(budgets.connection), ...protection({ ...config, hasKeys: config.apiKeys.length > 0 }));
  mountRoutes(app, routeParts(config, deps, { ...parts, server }));
  app.use(onError);
  return server;
}

/** What the routes of the table need. */
function routeParts(
  config: Config,
  deps: AppDeps,
  parts: HttpParts & { server: Server },
): Parameters<typeof mountRoutes>[1] {
  const { engine, live, storage } = parts;
  const { budgets, gracefulStop, holdsKey } = engine;
  const shutdown = engine.shutdown.signal;
  const forwarding = { limits: budgets.upstream, isEmbeddable: config.corsOrigins.length > 0, holdsKey };
  return {
    version: VERSION,
    describe: { adminPaths, livePaths },
    apiKeys: createApiKeys({
      keys: config,
      limits: budgets.access,
      secrets: live.secrets,
      log: deps.log,
    }),
    models: {
      list: engine.models,
      fetching: () => deps.store.activity()[0],
      upstreams: engine.upstreams,
      aliases: config.modelAliases,
      startedAtSec: Math.floor(Date.now() / 1000),
    },
    admission: {
      slot: engine.slot,
      line: engine.line,
      gracefulStop,
      shutdown,
      maxWaitSec: config.maxWaitSec,
      defaultWaitSec: config.defaultWaitSec,
    },
    gracefulStop,
    shutdown,
    transcriptions: {
      transcription: engine.transcription,
      openAudio: engine.audio.open,
      receiveUpload: uploadReceiver(storage),
      shutdown,
      log: deps.log,
    },
    live: [
      get('/v1/realtime', live.realtime.handler),
      ...clientSecretRoutes({
        secrets: live.secrets,
        live: live.sessions,
        limits: budgets.clientSecrets,
        gracefulStop,
      }),
    ],
    speech: createReverseProxy(speechUpstream(config.tts), forwarding),
    chat: createReverseProxy(chatUpstream(config.llm), forwarding),
    receiveBody: bodyReceiver(storage, budgets.proxied),
    prometheus: engine.instruments.prometheus,
    refreshModels: deps.store.refresh,
    admin: buildPages(config, deps, parts),
  };
}

/** The dashboard. */
function buildPages(config: Config, deps: AppDeps, parts: HttpParts & { server: Server }) {
  const { slot, slotStatus, instruments, caches, naming, audio, upstreams, livePlaces } = parts.engine;
  const shutdown = parts.engine.shutdown.signal;
  return adminRoutes({
    shutdown,
    version: VERSION,
    cpuLevel: deps.engine.info.cpuLevel,
    log: deps.log,
    slot: { status: slotStatus, stopHolder: slot.stopHolder },
    live: () => livePlaces.holders(),
    uploads: () => parts.storage.places.holders(),
    metrics: instruments.metrics,
    audioProblem: audio.problem,
    onCpu: caches.onCpu,
    toggles: instruments.toggles,
    crashes: deps.crashes,
    upstreams,
    watch: parts.engine.watch,
    logLines: parts.engine.logTail.lines,
    settings: shownGroups(config),
    captures: createCaptureActions({
      dir: config.observability.payloadDir,
      capture: instruments.capture,
      base: () => ownBaseUrl(parts.server, config.host),
      apiKey: config.apiKeys[0],
      failure: instruments.captureFailure,
    }),
    models: createModelActions({
      catalogue: CATALOGUE,
      store: deps.store,
      cache: caches.models,
      helpers: [caches.voiceActivity, caches.speakers, caches.turnDetectors],
      modelId: naming.modelId,
      downloads: config.modelDownload,
      signal: shutdown,
      log: deps.log,
    }),
  });
}

/** What uploads and the bodies of speech and chat calls share. */
function bodyStorage(config: Config, log: Logger, limits: Budgets['upload']): BodyStorage {
  return {
    spool: createSpool({
      tmpDir: config.tmpDir,
      log,
      // There must be room for the largest upload and one byte more, by which the form parser sees that it is too large.
      maxBytes: Math.max(config.maxSpoolBytes, config.maxUploadBytes + 1),
      leastFreeBytes: limits.leastFreeBytes,
    }),
    places: createUploadPlaces({ maxUploads: config.maxUploads, graceMs: limits.graceMs }),
    maxBytes: config.maxUploadBytes,
    limits,
  };
}
