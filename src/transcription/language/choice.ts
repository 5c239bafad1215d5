/** Fits the languages that a client names to those that a model knows. Pure. */
import { GatewayError } from '../../errors.ts';
import type { Route } from '../routing.ts';
import { knownAs, languageName } from './names.ts';

/** The number of languages that a refusal lists; `GET /v1/models` has all of them. */
const LANGUAGES_NAMED = 5;

/**
 * The client's language as the model takes it.
 * @throws GatewayError `unsupported_language` when the client named a model that does not know the language
 */
export function languageFor({ model, reason }: Route, hint: string | undefined): string | undefined {
  if (hint === undefined || model.languages.includes(hint) || model.languageHint === 'recorded') return hint;
  if (reason !== 'requested') return knownAs(model.languages, hint);
  throw new GatewayError(
    'unsupported_language',
    { model: model.id, name: languageName(hint), language: hint, known: someOf(model.languages) },
    { param: 'language' },
  );
}

/**
 * The languages that the model may detect: those of the client that it knows, or else all that the catalogue says. The
 * vocabulary of a model may have more, as that of Whisper distilled on English has.
 */
export function choicesOf(model: Route['model'], allowed: readonly string[]): readonly string[] {
  const wanted = allowed.map((code) => knownAs(model.languages, code));
  const known = model.languages.filter((code) => wanted.includes(code));
  return known.length > 0 ? known : model.languages;
}

/** The one language that is left to choose, which a model that takes a language is told instead of asked for. */
export function onlyChoice(model: Route['model'], [first, ...others]: readonly string[]): string | undefined {
  return model.languageHint === 'constrains' && others.length === 0 ? first : undefined;
}

function someOf(languages: readonly string[]): string {
  const named = languages.slice(0, LANGUAGES_NAMED).join(', ');
  const more = languages.length - LANGUAGES_NAMED;
  return more > 0 ? `${named} and ${more} more` : named;
}
