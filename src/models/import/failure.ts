/** The error that refuses an import. The fault is in the user's files, and nothing was changed. */
import { GatewayError } from '../../errors.ts';

export function notImportable(why: string, cause?: unknown): GatewayError {
  return new GatewayError('not_importable', { why }, { cause });
}
