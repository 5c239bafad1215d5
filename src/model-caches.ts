/** The loaded models: how each kind is loaded, on which device, and how much memory all of them may take. */
import type { Logger } from 'winston';
import type { Config } from './config/config.ts';
import { type CacheOptions, ModelCache } from './engine/cache.ts';
import type { ChosenDevice } from './engine/device.ts';
import { loadWithFallback, type OnCpu } from './engine/gpu-fallback.ts';
import {
  type NativeEngine,
  NativeError,
  type SpeakerModel,
  type TranscriptionModel,
  type TurnDetector,
  type VoiceActivityModel,
} from './engine/types.ts';
import { findModel } from './models/catalogue.ts';
import { memoryNeeds } from './models/memory.ts';
import type { ModelStore } from './models/store.ts';
import type { CatalogueModel } from './models/weights.ts';
import type { Prometheus } from './observability/prometheus.ts';

/** Two threads take half the time of one, and more would take theirs from the models that write text. */
const TURN_THREADS = 2;

export interface ModelCachesDeps {
  log: Logger;
  store: ModelStore;
  engine: NativeEngine;
  /** Where models run. */
  device: ChosenDevice;
  /** Counts loads and shows the loaded models; absent in a command, which has no metrics. */
  prometheus?: Pick<Prometheus, 'modelLoaded' | 'modelUnloaded'>;
}

export type ModelCaches = ReturnType<typeof createModelCaches>;

export function createModelCaches(
  config: Pick<Config, 'modelKeepAliveMs' | 'modelMemoryBytes' | 'threads'>,
  deps: ModelCachesDeps,
) {
  const { log, store, engine, prometheus } = deps;
  const onCpu = new Map<string, OnCpu>();
  const options = {
    keepAliveMs: config.modelKeepAliveMs,
    onEvent(event: 'loaded' | 'unloaded', model: string, ms: number) {
      log.info(event, { model, tookMs: Math.round(ms) });
      if (event === 'loaded') prometheus?.modelLoaded(model, ms / 1000);
      else prometheus?.modelUnloaded(model);
      if (event === 'unloaded') onCpu.delete(model);
    },
  };
  const caches = {
    models: createRecognizers(config, deps, { ...options, onCpu }),
    voiceActivity: new ModelCache<VoiceActivityModel>({
      ...options,
      load: async (id) => engine.loadVoiceActivity({ path: (await store.ensure(id)).path }),
    }),
    speakers: new ModelCache<SpeakerModel>({
      ...options,
      load: async (id) => engine.loadSpeakers({ path: (await store.ensure(id)).path }),
    }),
    turnDetectors: new ModelCache<TurnDetector>({
      ...options,
      async load(id) {
        const { path } = await store.ensure(id);
        return engine.loadTurnDetector({ path, threads: Math.min(config.threads, TURN_THREADS) });
      },
    }),
  };
  return {
    ...caches,
    /** The models that run on the CPU now because the GPU failed. */
    onCpu: () => [...onCpu.values()],
    async close() {
      await Promise.all(Object.values(caches).map((cache) => cache.close()));
    },
  };
}

/** The models that transcribe, which move between a GPU and the CPU. */
function createRecognizers(
  config: Pick<Config, 'modelMemoryBytes' | 'threads'>,
  { log, store, engine, device: { device, gpu } }: ModelCachesDeps,
  {
    onCpu,
    ...options
  }: Pick<CacheOptions<unknown>, 'keepAliveMs' | 'onEvent'> & { onCpu: Map<string, OnCpu> },
): ModelCache<TranscriptionModel> {
  const precision = gpu ? 'f16' : 'q8_0';
  const models: ModelCache<TranscriptionModel> = new ModelCache({
    ...options,
    memory: {
      maxBytes: config.modelMemoryBytes,
      expected: (id) =>
        memoryNeeds(catalogueModel(id), precision, { threads: config.threads, files: store.filesOf(id) })
          ?.bytes ?? 0,
      used: (model) => model.info.memoryBytes,
    },
    async load(id) {
      const { family } = catalogueModel(id);
      const { path } = await store.ensure(id);
      const load = (on: string, file: string) =>
        engine.loadModel({
          family,
          path: file,
          device: on,
          threads: config.threads,
        });
      if (!gpu) return load(device, path);
      // A GPU runs half precision fast. A CPU is slower with it than with 8-bit weights.
      const forCpu = () =>
        store.ensure(id, { precision: 'q8_0' }).catch((error: Error) => {
          log.warn(`${id} has no 8-bit weights for the CPU and uses those of the GPU: ${error.message}`);
          return { path };
        });
      return loadWithFallback({
        gpu: device,
        load: async (on) =>
          on === 'cpu'
            ? load(on, (await forCpu()).path)
            : withRoom(
                () => load(on, path),
                () => models.unloadIdle((other) => !onCpu.has(other)),
              ),
        onFallback(error) {
          log.warn(`${id} falls back to the CPU: ${error.message}`);
          onCpu.set(id, { model: id, why: error.message, since: new Date() });
        },
        onReturn() {
          log.info(`${id} is on the GPU again`);
          onCpu.delete(id);
        },
      });
    },
  });
  return models;
}

/** Loads a model. While the GPU has no memory for it, idle models are unloaded, and the load is tried again. */
async function withRoom<M>(load: () => Promise<M>, unloadIdle: () => Promise<boolean>): Promise<M> {
  for (;;) {
    try {
      return await load();
    } catch (error) {
      const isFull = error instanceof NativeError && error.code === 'out_of_memory';
      if (!isFull || !(await unloadIdle())) throw error;
    }
  }
}

function catalogueModel(id: string): CatalogueModel {
  const model = findModel(id);
  if (model === undefined) throw new Error(`${id} is not a recognition model`);
  return model;
}
