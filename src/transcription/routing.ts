/**
 * Decides which model serves a request, by names, aliases and the `auto` rules of contract 4.3. Pure: the caller
 * passes the installed models.
 */
import { distance } from 'fastest-levenshtein';
import { excerpt, GatewayError } from '../errors.ts';
import { CATALOGUE } from '../models/catalogue.ts';
import type { CatalogueModel } from '../models/weights.ts';
import { knownAs } from './languages.ts';

export interface RoutableModel extends CatalogueModel {
  /** True when the native engine of this process can load the model's family. */
  servable: boolean;
  /** False when it needs more memory than models may take. */
  fits: boolean;
  /** True when the weights are on disk. */
  installed: boolean;
}

/** The ids that requests may name. An alias is none of them. */
export const MODEL_IDS: readonly string[] = ['auto', ...CATALOGUE.map(({ id }) => id)];

export interface Route {
  model: RoutableModel;
  /** The reason for the response headers and the log: `requested`, or `auto:` and the rule that decided. */
  reason: string;
}

export interface RouteRequest {
  /** An id, an alias or `auto`; absent means `auto`. */
  model: string | undefined;
  /** ISO 639 code, as `parseLanguage` gives it. */
  language: string | undefined;
  /** The languages to choose among when none is given; absent or empty means all. */
  languages?: readonly string[];
  translate: boolean;
  /** The text to align; absent when the text is to be heard. */
  text?: string;
}

/** OpenAI's model that tells speakers apart. */
export const DIARIZES = 'gpt-4o-transcribe-diarize';
/** OpenAI's model that says which languages it heard. */
export const TELLS_LANGUAGES = 'gpt-transcribe';

/** Names of OpenAI's models, which clients send when they leave the choice to the server. */
export const MEANS_AUTO: readonly string[] = [
  ...['whisper-1', 'gpt-4o-transcribe', 'gpt-4o-mini-transcribe', DIARIZES, TELLS_LANGUAGES],
  // Live sessions. Clients name a model of conversations in the address, also where they only transcribe.
  ...['gpt-live-transcribe', 'gpt-realtime-whisper', 'gpt-realtime', 'gpt-realtime-mini'],
  ...['gpt-4o-realtime-preview', 'gpt-4o-mini-realtime-preview'],
];

const BUILT_IN_ALIASES: Readonly<Record<string, string>> = Object.fromEntries([
  ...MEANS_AUTO.map((name) => [name, 'auto']),
  ...CATALOGUE.flatMap(({ id, aliases }) => aliases.map((name) => [name, id])),
]);

/**
 * The name of OpenAI's model without its owner, the day of its release and the number of its generation. OpenAI
 * releases new ones often, and here all of them mean the same.
 */
export const openAiModel = (name: string): string =>
  name
    .replace(/^openai\//, '')
    .replace(/-\d{4}-\d\d-\d\d$/, '')
    .replace(/^gpt-realtime-\d{1,3}(\.\d{1,3})?(?=-mini$|$)/, 'gpt-realtime');

/** The id that an alias stands for. Any other name is returned as it is. A `further` alias may name a built-in one. */
export function resolveAlias(name: string, further: Readonly<Record<string, string>>): string {
  const meant = new Map(Object.entries(further)).get(name) ?? name;
  if (MEANS_AUTO.includes(openAiModel(meant))) return 'auto';
  return new Map(Object.entries(BUILT_IN_ALIASES)).get(meant) ?? meant;
}

/** The id of the one model that a name stands for. For `auto` it is the multilingual model of the default size. */
export function modelIdFor(
  name: string,
  settings: { modelAliases: Readonly<Record<string, string>>; modelDefaultSize: string },
): string {
  const id = resolveAlias(name, settings.modelAliases);
  return id === 'auto' ? `multilingual-${settings.modelDefaultSize}` : id;
}

export interface RouteOptions {
  defaultSize: string;
  /** The names of the settings, which win over the built-in ones. */
  aliases: Readonly<Record<string, string>>;
  /** False for a model that requests may not use. */
  isAllowed?(model: { id: string }): boolean;
}

/**
 * Chooses the model for a request.
 * @throws GatewayError `unknown_model` that names the nearest ids; `model_not_allowed`
 */
export function route(request: RouteRequest, models: readonly RoutableModel[], options: RouteOptions): Route {
  const asked = request.model ?? 'auto';
  const id = resolveAlias(asked, options.aliases);
  if (id === 'auto') return autoRoute(request, models, options);
  const found = models.find((model) => model.id === id);
  if (found === undefined)
    throw unknownModel(asked, [
      ...models.map((m) => m.id),
      'auto',
      ...Object.keys({ ...BUILT_IN_ALIASES, ...options.aliases }),
    ]);
  if (options.isAllowed?.(found) === false)
    throw new GatewayError('model_not_allowed', { model: found.id }, { param: 'model' });
  return { model: found, reason: 'requested' };
}

function autoRoute(
  request: RouteRequest,
  all: readonly RoutableModel[],
  { defaultSize, isAllowed = () => true }: RouteOptions,
): Route {
  const { translate } = request;
  const aligns = request.text !== undefined;
  const models = all.filter(isAllowed);
  // A language that no model knows is ignored in the choice, and the model then detects a language that it knows.
  const asked = request.language === undefined ? (request.languages ?? []) : [request.language];
  const knows = ({ languages }: CatalogueModel, language: string) =>
    knownAs(languages, language) !== undefined;
  const known = asked.filter((language) => models.some((model) => knows(model, language)));
  const knowsAll = (model: CatalogueModel) => known.every((language) => knows(model, language));
  const isKnown = models.some(knowsAll);
  const { preferred, rule } = preference(all, request);
  const bySize = sizesFrom(all, defaultSize);
  const order = preferred === undefined ? bySize : [preferred, ...bySize];
  const candidates = [...order, ...all.filter((model) => !order.includes(model))].filter(isAllowed);
  const able = candidates.filter(
    (model) =>
      model.servable &&
      model.fits &&
      (!isKnown || knowsAll(model)) &&
      (!translate || model.translates) &&
      (!aligns || model.aligns),
  );
  // Where none can serve, the preferred model is returned, so that the error can name what is missing.
  const model = able.find(({ installed }) => installed) ?? able[0] ?? candidates[0];
  if (model === undefined) throw new Error('SVC_MODEL_ALLOW allows no model of the catalogue');
  return { model, reason: `auto:${model === order[0] ? rule : `${rule}-fallback`}` };
}

function preference(
  models: readonly RoutableModel[],
  { language, translate, text }: RouteRequest,
): { preferred: RoutableModel | undefined; rule: string } {
  if (translate) return { preferred: undefined, rule: 'translate' };
  if (text !== undefined) return { preferred: undefined, rule: 'align' };
  if (language === undefined) return { preferred: undefined, rule: 'no-hint' };
  const preferred = models.find((model) => model.preferredFor.includes(language));
  return { preferred, rule: preferred === undefined ? 'other-language' : `${preferred.id}-language` };
}

/** The model of the default size, then smaller ones from large to small, then larger ones from small to large. */
function sizesFrom(models: readonly RoutableModel[], size: string): RoutableModel[] {
  const sized = models.filter((model) => model.size !== undefined);
  const at = sized.findIndex((model) => model.size === size);
  return [...sized.slice(at, at + 1), ...sized.slice(0, at).reverse(), ...sized.slice(at + 1)];
}

function unknownModel(asked: string, known: string[]): GatewayError {
  // Only the excerpt is compared: the distance costs time for every character, and no name of a model is longer.
  const shown = excerpt(asked);
  const lower = shown.toLowerCase();
  const nearest = known
    .map((id) => ({ id, steps: distance(lower, id.toLowerCase()) }))
    .sort((a, b) => a.steps - b.steps)
    .slice(0, 3)
    .map(({ id }) => id);
  const values = { model: shown, nearest: nearest.join(', ') };
  return new GatewayError('unknown_model', values, { param: 'model' });
}
