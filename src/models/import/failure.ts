import { GatewayError } from '../../errors.ts';

/** What every refusal of an import is: the user's file, not our fault, and nothing was changed. */
export function notImportable(message: string, cause?: unknown): GatewayError {
  return new GatewayError('malformed', message, { code: 'not_importable', cause });
}
