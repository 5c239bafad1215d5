/**
 * Which model serves a request: names and aliases to ids, and the `auto` rules of contract 4.3. Pure: what is
 * installed is handed in.
 */
import { distance } from 'fastest-levenshtein';
import { GatewayError } from '../errors.ts';
import { LANGUAGE_CODES } from './languages.ts';

export type Family = 'multilingual' | 'european' | 'cjk';

export interface RoutableModel {
  id: string;
  family: Family;
  /** Its engine runs in this process. */
  servable: boolean;
  /** Weights on disk. */
  installed: boolean;
}

export interface Route {
  modelId: string;
  family: Family;
  /** Why, for the response headers and the log: `requested`, or `auto:` and the rule that decided. */
  reason: string;
}

export interface RouteRequest {
  /** An id, an alias or `auto`; absent means `auto`. */
  model: string | undefined;
  /** ISO 639 code, already parsed. */
  language: string | undefined;
  translate: boolean;
}

const CJK_LANGUAGES = ['zh', 'yue', 'en', 'ja', 'ko'];
/** The tonal and CJK hints that prefer the CJK backend; English is better served elsewhere. */
const CJK_HINTS = ['zh', 'yue', 'ja', 'ko'];
const EUROPEAN_LANGUAGES = 'bg hr cs da nl en et fi fr de el hu it lv lt mt pl pt ro ru sk sl es sv uk'.split(
  ' ',
);

/** Smallest first: "next smaller, then next larger" walks this order. */
const SIZES = 'tiny base small medium large-v3-turbo distil-large-v3 large-v1 large-v2 large-v3'.split(' ');
const SIZE_NAMES = [...SIZES, 'large', 'turbo'];

/** Only the third generation of Whisper's vocabulary has a Cantonese token. */
const HAS_CANTONESE = /large-v3/;

const SIZE_OF_ALIAS: Readonly<Record<string, string>> = { large: 'large-v3', turbo: 'large-v3-turbo' };

const BUILT_IN_ALIASES: Readonly<Record<string, string>> = {
  'whisper-1': 'auto',
  'gpt-4o-transcribe': 'auto',
  'gpt-4o-mini-transcribe': 'auto',
  'gpt-4o-transcribe-diarize': 'auto',
  'large-v3': 'multilingual-large-v3',
  turbo: 'multilingual-large-v3-turbo',
  ...Object.fromEntries(
    SIZE_NAMES.flatMap((name) => {
      const id = `multilingual-${SIZE_OF_ALIAS[name] ?? name}`;
      return [`whisper-${name}`, `openai/whisper-${name}`, `Systran/faster-whisper-${name}`].map((a) => [
        a,
        id,
      ]);
    }),
  ),
  'parakeet-tdt-0.6b-v3': 'european',
  'nvidia/parakeet-tdt-0.6b-v3': 'european',
  'sensevoice-small': 'cjk',
  'FunAudioLLM/SenseVoiceSmall': 'cjk',
  'iic/SenseVoiceSmall': 'cjk',
};

/** ISO codes a model can be asked for. */
export function languagesOf(model: Pick<RoutableModel, 'id' | 'family'>): readonly string[] {
  if (model.family === 'european') return EUROPEAN_LANGUAGES;
  if (model.family === 'cjk') return CJK_LANGUAGES;
  return HAS_CANTONESE.test(model.id) ? LANGUAGE_CODES : LANGUAGE_CODES.filter((code) => code !== 'yue');
}

/** The id an alias stands for; any other name stands for itself. */
export function resolveAlias(name: string, further: Readonly<Record<string, string>>): string {
  return new Map(Object.entries({ ...BUILT_IN_ALIASES, ...further })).get(name) ?? name;
}

/**
 * @param aliases further names from the settings, over the built-in ones
 * @throws GatewayError malformed for an unknown model, naming the nearest ids
 */
export function route(
  request: RouteRequest,
  models: readonly RoutableModel[],
  options: { defaultSize: string; aliases: Readonly<Record<string, string>> },
): Route {
  const asked = request.model ?? 'auto';
  const id = resolveAlias(asked, options.aliases);
  if (id === 'auto') return autoRoute(request, models, options.defaultSize);
  const found = models.find((model) => model.id === id);
  if (found === undefined)
    throw unknownModel(asked, [
      ...models.map((m) => m.id),
      'auto',
      ...Object.keys({ ...BUILT_IN_ALIASES, ...options.aliases }),
    ]);
  return { modelId: found.id, family: found.family, reason: 'requested' };
}

function autoRoute(request: RouteRequest, models: readonly RoutableModel[], defaultSize: string): Route {
  const { language, translate } = request;
  const [family, rule] = preferredFamily(language, translate);
  const bySize = sizesFrom(defaultSize).map((size) => `multilingual-${size}`);
  const order = family === 'multilingual' ? bySize : [family, ...bySize];
  // What else is on disk is the last resort, unless the job or the language is beyond it.
  const others = ['european', 'cjk'].filter((id) => !translate && !order.includes(id));
  const candidates = [...order, ...others]
    .map((id) => models.find((model) => model.id === id))
    .filter((model) => model !== undefined)
    .filter((model) => model.servable && (language === undefined || canServe(model, language)));
  // Without any engine the preference is named all the same, so that the error can say what is missing.
  const chosen = candidates.find((model) => model.installed) ??
    candidates[0] ?? { id: order[0] ?? family, family };
  const preferred = chosen.id === order[0];
  return {
    modelId: chosen.id,
    family: chosen.family,
    reason: `auto:${preferred ? rule : `${rule}-fallback`}`,
  };
}

function preferredFamily(language: string | undefined, translate: boolean): [Family, string] {
  if (translate) return ['multilingual', 'translate'];
  if (language === undefined) return ['multilingual', 'no-hint'];
  if (CJK_HINTS.includes(language)) return ['cjk', 'cjk-language'];
  if (EUROPEAN_LANGUAGES.includes(language)) return ['european', 'european-language'];
  return ['multilingual', 'other-language'];
}

/** Cantonese is close enough to Mandarin for the older Whisper models to write it as such. */
function canServe(model: RoutableModel, language: string): boolean {
  return languagesOf(model).includes(language) || (language === 'yue' && model.family === 'multilingual');
}

/** The size itself, then smaller ones from large to small, then larger ones from small to large. */
function sizesFrom(size: string): string[] {
  const at = SIZES.indexOf(size);
  return [size, ...SIZES.slice(0, at).reverse(), ...SIZES.slice(at + 1)];
}

function unknownModel(asked: string, known: string[]): GatewayError {
  const lower = asked.toLowerCase();
  const nearest = known
    .map((id) => ({ id, steps: distance(lower, id.toLowerCase()) }))
    .sort((a, b) => a.steps - b.steps)
    .slice(0, 3)
    .map(({ id }) => id);
  const shown = asked.length > 80 ? `${asked.slice(0, 80)}…` : asked;
  return new GatewayError('malformed', `Unknown model "${shown}"; the nearest are ${nearest.join(', ')}`, {
    param: 'model',
    code: 'model_not_found',
  });
}
