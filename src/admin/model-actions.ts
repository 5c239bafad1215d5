/** The models for the admin pages: list them, and pull, load or unload them. */
import type { Logger } from 'winston';
import type { Closable, ModelCache } from '../engine/cache.ts';
import { excerpt, fullMessage, GatewayError } from '../errors.ts';
import { publishedFile } from '../models/hub.ts';
import type { ModelProgress } from '../models/source.ts';
import type { ModelStore } from '../models/store.ts';
import type { CatalogueModel } from '../models/weights.ts';

/** A model as an operator sees it. */
export interface ModelStatus {
  id: string;
  family: string;
  installed: boolean;
  /** The size of the weights on disk, or else of a download, in bytes. */
  bytes: number;
  state: 'absent' | 'loading' | 'resident';
  /** What it takes in memory; 0 when it is not there, or cannot tell. */
  memoryBytes: number;
  /** The number of requests that use the model now. */
  leases: number;
  /** The time since the last use; null when the model is not resident or is in use. */
  idleForMs: number | null;
  /** The download or conversion under way; null without one. */
  progress: ModelProgress | null;
  /** Why the last pull or load from the dashboard failed; null after a success. */
  failure: string | null;
  failedAt: Date | null;
}

export interface ModelActionsOptions {
  catalogue: readonly CatalogueModel[];
  store: Pick<ModelStore, 'list' | 'pull' | 'activity' | 'remove'>;
  cache: ModelCache<Closable>;
  /** The models that recognition needs besides, which the API does not list. */
  helpers: readonly Pick<ModelCache<Closable>, 'evict'>[];
  /** The id of the model that requests with this name use now; undefined for an unknown name. */
  modelId(name: string): string | undefined;
  /** Whether a request downloads the weights that it needs. */
  downloads: boolean;
  /** Ends the downloads that were started here. */
  signal: AbortSignal;
  log: Pick<Logger, 'warn'>;
}

export type ModelActions = ReturnType<typeof createModelActions>;

export function createModelActions(options: ModelActionsOptions) {
  const { catalogue, store, cache, helpers, modelId, downloads, signal, log } = options;
  const failures = new Map<string, { says: string; at: Date }>();

  /** The id of the model that requests with this name use now. @throws GatewayError `model_not_found` for any other name */
  const find = (name: string): string => {
    const id = modelId(name);
    if (id === undefined)
      throw new GatewayError('model_not_found', { model: excerpt(name) }, { param: 'id' });
    return id;
  };

  /** Starts `work` without waiting for it. The list shows a failure, and only the log gives its cause and paths. */
  const begin = (id: string, done: string, work: () => Promise<unknown>) => {
    failures.delete(id);
    work().catch((error: unknown) => {
      if (signal.aborted) return;
      const said = error instanceof GatewayError ? error.message : `${id} could not be ${done}`;
      failures.set(id, { says: `${said}; the log says why`, at: new Date() });
      log.warn(`${id} could not be ${done} from the dashboard: ${fullMessage(error)}`);
    });
  };

  return {
    /** Whether a request downloads the weights that it needs. */
    downloads,
    list(): ModelStatus[] {
      const entries = new Map(cache.entries().map((entry) => [entry.key, entry]));
      const activity = new Map(store.activity().map((progress) => [progress.id, progress]));
      const stored = new Map(store.list().map((model) => [model.id, model]));
      return catalogue.map((model) => {
        const entry = entries.get(model.id);
        return {
          id: model.id,
          family: model.family,
          installed: stored.get(model.id)?.installed ?? false,
          bytes: stored.get(model.id)?.bytes || (publishedFile(model, 'q8_0')?.bytes ?? 0),
          state: entry?.state ?? 'absent',
          leases: entry?.leases ?? 0,
          memoryBytes: entry?.state === 'resident' ? entry.memoryBytes : 0,
          idleForMs: entry?.state === 'resident' && entry.leases === 0 ? entry.idleForMs : null,
          progress: activity.get(model.id) ?? null,
          failure: failures.get(model.id)?.says ?? null,
          failedAt: failures.get(model.id)?.at ?? null,
        };
      });
    },
    find,
    /** Starts a download and returns at once; `list` shows the progress. */
    pull(id: string): void {
      begin(id, 'pulled', () => store.pull(id, { signal }));
    },
    /** Starts to load the model into memory and returns at once. It needs no slot. */
    load(id: string): void {
      begin(id, 'loaded', async () => {
        const lease = await cache.lease(id);
        await lease[Symbol.asyncDispose]();
      });
    },
    /** Unloads the model when no request uses it any more. True when it was resident. */
    unload: (id: string) => cache.evict(id) > 0,
    /** Starts to remove the weights from disk, and unloads the model when no request uses it any more. */
    remove(id: string): void {
      cache.evict(id);
      begin(id, 'removed', () => store.remove(id, { signal }));
    },
    /** Unloads every model (contract 3); `remaining` counts those that a request under way still uses. */
    reset() {
      const evicted = cache.evict();
      for (const helper of helpers) helper.evict(); // they are not counted, because the API does not list them
      return { evicted, remaining: cache.lingering() };
    },
  };
}
