/**
 * The errors for requests that break HTTP, by status (RFC 9110, section 15.5). The parser, the body readers and the
 * static files raise them. The status is kept, so that the HTTP library of a client understands it.
 */
import { GatewayError } from '../../errors.ts';

const CODE_OF_STATUS = {
  408: 'request_timeout',
  412: 'precondition_failed',
  413: 'body_too_large',
  415: 'unsupported_media_type',
  416: 'range_not_satisfiable',
  417: 'expectation_failed',
  431: 'headers_too_large',
} as const;

/** @param status 400 to 499; a status without a code of its own becomes `bad_request` with status 400 */
export function httpRefusal(status: number): GatewayError {
  return new GatewayError(CODE_OF_STATUS[status as keyof typeof CODE_OF_STATUS] ?? 'bad_request', {});
}
