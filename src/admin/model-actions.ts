/** Models as the admin pages see and move them: on disk, in memory, on their way. */
import type { Closable, ModelCache } from '../engine/cache.ts';
import { GatewayError } from '../errors.ts';
import type { CatalogueModel } from '../models/catalogue.ts';
import { publishedFile } from '../models/hub.ts';
import type { ModelStore } from '../models/store.ts';
import type { ModelActions, ModelStatus } from './deps.ts';

export interface ModelAdminOptions {
  catalogue: readonly CatalogueModel[];
  store: Pick<ModelStore, 'list' | 'pull' | 'activity'>;
  cache: ModelCache<Closable>;
  /** Ends downloads begun from here. */
  signal: AbortSignal;
}

export function createModelActions({ catalogue, store, cache, signal }: ModelAdminOptions): ModelActions {
  const failures = new Map<string, string>();

  const known = (id: string): string => {
    if (catalogue.some((model) => model.id === id)) return id;
    throw new GatewayError('not_found', `There is no model "${id.slice(0, 80)}"`, {
      code: 'model_not_found',
    });
  };

  /** Nobody waits for it: how it ends is seen in the list. */
  const begin = (id: string, work: () => Promise<unknown>) => {
    failures.delete(id);
    work().catch((error: Error) => {
      if (!signal.aborted) failures.set(id, error.message);
    });
  };

  return {
    list() {
      const entries = new Map(cache.entries().map((entry) => [entry.key, entry]));
      const activity = new Map(store.activity().map((progress) => [progress.id, progress]));
      const stored = new Map(store.list().map((model) => [model.id, model]));
      return catalogue.map((model): ModelStatus => {
        const entry = entries.get(model.id);
        return {
          id: model.id,
          family: model.provider,
          installed: stored.get(model.id)?.installed ?? false,
          bytes: stored.get(model.id)?.bytes || (publishedFile(model, 'q8_0')?.bytes ?? 0),
          state: entry?.state ?? 'absent',
          leases: entry?.leases ?? 0,
          idleForMs: entry?.state === 'resident' && entry.leases === 0 ? entry.idleForMs : null,
          progress: activity.get(model.id) ?? null,
          failure: failures.get(model.id) ?? null,
        };
      });
    },
    pull(id) {
      begin(known(id), () => store.pull(id, { signal }));
    },
    load(id) {
      begin(known(id), async () => {
        const lease = await cache.lease(id);
        await lease[Symbol.asyncDispose]();
      });
    },
    unload: (id) => cache.evict(known(id)) > 0,
    reset() {
      const evicted = cache.evict();
      return { evicted, remaining: cache.entries().length };
    },
  };
}
