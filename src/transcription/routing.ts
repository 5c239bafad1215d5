/**
 * Decides which model serves a request, by names, aliases and the `auto` rules of contract 4.3. Pure: the caller
 * passes the installed models.
 */
import { distance } from 'fastest-levenshtein';
import { excerpt, GatewayError } from '../errors.ts';
import { CATALOGUE } from '../models/catalogue.ts';
import { type Aliases, BUILT_IN_NAMES, type Meaning, meaningOf, withoutAlias } from '../models/names.ts';
import type { CatalogueModel } from '../models/weights.ts';
import { knownAs } from './language/names.ts';

export interface RoutableModel extends CatalogueModel {
  /** True when the native engine of this process can load the model's family. */
  servable: boolean;
  /** False when it needs more memory than models may take. */
  fits: boolean;
  /** True when the weights are on disk. */
  installed: boolean;
}

/** The ids that requests may name. Other names are none of them. */
export const MODEL_IDS: readonly string[] = ['auto', ...CATALOGUE.map(({ id }) => id)];

export interface Route {
  model: RoutableModel;
  /** The reason for the response headers and the log: `requested`, or `auto:` and the rule that decided. */
  reason: string;
  /** The language that the name of the model says, for a request that names none. */
  language?: Meaning['language'] | undefined;
}

export interface RouteRequest {
  /** An id, another name or `auto`; absent means `auto`. */
  model: string | undefined;
  /** ISO 639 code, as `parseLanguage` gives it. */
  language: string | undefined;
  /** The languages to choose among when none is given; absent or empty means all. */
  languages?: readonly string[];
  translate: boolean;
  /** The text to align; absent when the text is to be heard. */
  text?: string;
}

/**
 * What a name stands for. A name that nothing is known of stands for itself.
 * @param own the names of the settings. They win over the built-in ones, and may stand for one of those
 */
export function resolveName(name: string, own: Aliases): Meaning {
  const meant = withoutAlias(name, own);
  return meaningOf(meant) ?? { id: meant };
}

/** The model of these that a name stands for now; undefined where none is. */
export function modelMeant<M extends { id: string; installed: boolean }>(
  { id, otherwise }: Meaning,
  models: readonly M[],
  isAllowed: (model: M) => boolean = () => true,
): M | undefined {
  const model = models.find((known) => known.id === id);
  const isThere = model?.installed && isAllowed(model);
  return isThere || otherwise === undefined ? model : models.find((known) => known.id === otherwise);
}

export interface RouteOptions {
  defaultSize: string;
  /** The names of the settings (`SVC_MODEL_ALIASES`), which win over the built-in ones. */
  aliases: Aliases;
  /** False for a model that requests may not use. */
  isAllowed?(model: { id: string }): boolean;
}

/**
 * Chooses the model for a request.
 * @throws GatewayError `unknown_model` that names the nearest names; `model_not_allowed`
 */
export function route(request: RouteRequest, models: readonly RoutableModel[], options: RouteOptions): Route {
  const { isAllowed = () => true } = options;
  const chosen = choose(request, models, options);
  if (chosen === undefined) throw unknownModel(request.model ?? 'auto', models.filter(isAllowed), options);
  const { model } = chosen;
  if (!isAllowed(model)) throw new GatewayError('model_not_allowed', { model: model.id }, { param: 'model' });
  return chosen;
}

/**
 * The model that a name stands for now, as in a request without a hint. It serves the operator, who may use the
 * models that requests may not use. Undefined for an unknown name.
 */
export function modelNamed(
  name: string,
  models: readonly RoutableModel[],
  options: RouteOptions,
): RoutableModel | undefined {
  return choose({ model: name, language: undefined, translate: false }, models, options)?.model;
}

/** Turns a name into a model, for all that take names. */
function choose(
  request: RouteRequest,
  models: readonly RoutableModel[],
  options: RouteOptions,
): Route | undefined {
  const meaning = resolveName(request.model ?? 'auto', options.aliases);
  if (meaning.id === 'auto') return autoRoute(request, models, options);
  const { isAllowed = () => true } = options;
  const model = modelMeant(meaning, models, isAllowed);
  if (model === undefined) return undefined;
  const hasHint = request.language !== undefined || Boolean(request.languages?.length);
  return { model, reason: 'requested', language: hasHint ? undefined : meaning.language };
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

/**
 * Refuses a request for what its model was not made for.
 * @throws GatewayError `unsupported_translate` or `unsupported_alignment`, which name the models that can
 */
export function requireAble(
  model: CatalogueModel,
  { translate, text }: Pick<RouteRequest, 'translate' | 'text'>,
): void {
  if (translate && !model.translates)
    throw new GatewayError(
      'unsupported_translate',
      { model: model.id, others: idsOf((other) => other.translates) },
      { param: 'translate' },
    );
  if (text !== undefined && !model.aligns)
    throw new GatewayError(
      'unsupported_alignment',
      { model: model.id, others: idsOf((other) => other.aligns === true) },
      { param: 'model' },
    );
}

const idsOf = (isAble: (model: CatalogueModel) => boolean): string =>
  CATALOGUE.filter(isAble)
    .map(({ id }) => id)
    .join(', ');

/** The number of names that a refusal lists. All generations of a size are among them. */
const NAMES_SHOWN = 5;

function unknownModel(
  asked: string,
  models: readonly RoutableModel[],
  { aliases }: RouteOptions,
): GatewayError {
  const ids = models.map(({ id }) => id);
  const values = { model: excerpt(asked), nearest: nearestNames(asked, ids, aliases).join(', ') };
  return new GatewayError('unknown_model', values, { param: 'model' });
}

/** The names of models that contain the word, or that the word contains, and then those that are spelled alike. */
export function nearestNames(asked: string, modelIds: readonly string[], aliases: Aliases): string[] {
  // Only the excerpt is compared: the distance costs time for every character, and no name of a model is longer.
  const word = excerpt(asked).toLowerCase();
  // Of names that are equally near, ids come first, and of those the newest generation.
  const ids = ['auto', ...[...modelIds].reverse()];
  const usable = [...Object.keys(aliases), ...BUILT_IN_NAMES].filter((name) =>
    ids.includes(resolveName(name, aliases).id),
  );
  return [...new Set([...ids, ...usable])]
    .map((name) => {
      const known = name.toLowerCase();
      return { name, apart: !known.includes(word) && !word.includes(known), steps: distance(word, known) };
    })
    .sort((a, b) => Number(a.apart) - Number(b.apart) || a.steps - b.steps)
    .slice(0, NAMES_SHOWN)
    .map(({ name }) => name);
}
