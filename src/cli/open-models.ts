/** Opens the store of the weights for `voxgate models`, with the names that requests have for them. */
import type { Logger } from 'winston';
import { type Config, readConfig } from '../config/config.ts';
import { excerpt } from '../errors.ts';
import { createModelCaches } from '../model-caches.ts';
import { ALL_WEIGHTS } from '../models/catalogue.ts';
import { createNaming, type Naming } from '../recognition.ts';
import { nearestNames, resolveName } from '../transcription/routing.ts';
import type { ModelsCommandDeps } from './models.ts';
import { type Engine, quietLog } from './open-engine.ts';

export async function openModels(
  engineFor: (config: Config, log: Logger) => Engine,
): ReturnType<ModelsCommandDeps['open']> {
  const { config } = readConfig();
  const log = quietLog(config);
  const parts = engineFor(config, log);
  const naming = createNaming(config, parts, createModelCaches(config, { ...parts, log }));
  return { store: parts.store, modelId: (name) => weightsNamed(name, naming), threads: config.threads };
}

/**
 * The id of a model that transcribes, or of other weights.
 * @throws Error that suggests the nearest names
 */
function weightsNamed(name: string, { modelId, aliases }: Pick<Naming, 'modelId' | 'aliases'>): string {
  const ids = ALL_WEIGHTS.map(({ id }) => id);
  // The weights themselves, also where requests get others until these are installed.
  const meant = resolveName(name, aliases).id;
  const id = meant === 'auto' ? (modelId(name) ?? name) : meant;
  if (ids.includes(id)) return id;
  const [nearest, ...others] = nearestNames(name, ids, aliases).slice(0, 3);
  const also = others.length > 0 ? ` (or ${others.join(', ')})` : '';
  throw new Error(
    `There is no model "${excerpt(name)}". Did you mean ${nearest}${also}? voxgate models list shows all of them`,
  );
}
