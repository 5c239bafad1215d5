/** Every refusal of an import: the weights are the user's, nothing failed here, and nothing was changed. */
import { GatewayError } from '../../errors.ts';

export function notImportable(why: string, cause?: unknown): GatewayError {
  return new GatewayError('not_importable', { why }, { cause });
}
