/** Refuses a request for what its model was not made for. Pure. */
import { GatewayError } from '../errors.ts';
import { CATALOGUE } from '../models/catalogue.ts';
import type { CatalogueModel } from '../models/weights.ts';
import type { RouteRequest } from './routing.ts';

/** @throws GatewayError `unsupported_translate` or `unsupported_alignment`, which name the models that can */
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
