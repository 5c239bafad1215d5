/**
 * What HTTP itself refuses, by its status: the parser, a reader of bodies, the static files (RFC 9110, section 15.5).
 * The status stays the one it came with, so that a client's HTTP library understands it.
 */
import { GatewayError } from '../errors.ts';

const CODE_OF_STATUS = {
  408: 'request_timeout',
  412: 'precondition_failed',
  413: 'body_too_large',
  415: 'unsupported_media_type',
  416: 'range_not_satisfiable',
  417: 'expectation_failed',
  431: 'headers_too_large',
} as const;

/** @param status 400 to 499; those without a code of their own are a `bad_request` */
export function httpRefusal(status: number): GatewayError {
  return new GatewayError(CODE_OF_STATUS[status as keyof typeof CODE_OF_STATUS] ?? 'bad_request', {});
}
