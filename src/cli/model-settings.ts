/**
 * Checks the settings that name models against the catalogue, so that a typing error stops the start instead of
 * failing the requests that use the name. `config.ts` cannot do this, because it may not import routing.
 */
import { type Config, ConfigError, readConfig } from '../config/config.ts';
import { CATALOGUE } from '../models/catalogue.ts';
import { MODEL_IDS, type RoutableModel, resolveName, route } from '../transcription/routing.ts';

/** The settings of the environment. @throws ConfigError */
export function checkedSettings(): ReturnType<typeof readConfig> {
  const settings = readConfig();
  checkModelSettings(settings.config);
  return settings;
}

/** @throws ConfigError that names the setting, the value and the nearest known names */
export function checkModelSettings(
  config: Pick<Config, 'modelPreload' | 'modelAllow' | 'modelAliases' | 'modelDefaultSize' | 'tts'>,
): void {
  const check = (setting: string, value: string, name: string, aliases: Config['modelAliases']) => {
    const asked = { model: name, language: undefined, translate: false };
    try {
      route(asked, known(), { defaultSize: config.modelDefaultSize, aliases });
    } catch (error) {
      throw new ConfigError(`${setting} cannot hold "${value}": ${(error as Error).message}`);
    }
  };
  // An alias is looked up once, so it may stand for a built-in name but not for another alias of the settings.
  for (const [alias, id] of Object.entries(config.modelAliases)) {
    if (MODEL_IDS.includes(alias))
      throw new ConfigError(
        `SVC_MODEL_ALIASES cannot hold "${alias}=${id}": ${alias} is the id of a model already`,
      );
    check('SVC_MODEL_ALIASES', `${alias}=${id}`, id, {});
  }
  for (const name of config.modelPreload) check('SVC_MODEL_PRELOAD', name, name, config.modelAliases);
  for (const name of config.modelAllow) check('SVC_MODEL_ALLOW', name, name, config.modelAliases);
  const { modelId } = config.tts;
  if (MODEL_IDS.includes(resolveName(modelId, config.modelAliases).id))
    throw new ConfigError(
      `SVC_TTS_MODEL_ID cannot be "${modelId}": the name is one of a model that transcribes`,
    );
}

const known = (): RoutableModel[] =>
  CATALOGUE.map((model) => ({ ...model, servable: true, fits: true, installed: false }));
