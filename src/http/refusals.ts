/**
 * What HTTP itself refuses, by its status: the parser, a reader of bodies, the static files (RFC 9110, section 15.5).
 * The status stays the one it came with, so that a client's HTTP library understands it.
 */
import { type ErrorKind, GatewayError } from '../errors.ts';

interface Refusal {
  kind: ErrorKind;
  code: string;
  message: string;
}

const UNINTELLIGIBLE: Refusal = {
  kind: 'malformed',
  code: 'bad_request',
  message: 'The request cannot be understood',
};

const REFUSALS: Readonly<Record<number, Refusal>> = {
  408: { kind: 'malformed', code: 'request_timeout', message: 'The request did not arrive in time' },
  412: {
    kind: 'malformed',
    code: 'precondition_failed',
    message: 'The file is not the one of the condition',
  },
  413: { kind: 'too_large', code: 'body_too_large', message: 'The body is too large' },
  415: {
    kind: 'malformed',
    code: 'unsupported_media_type',
    message: 'The type, encoding or character set of the body is not known here',
  },
  416: { kind: 'malformed', code: 'range_not_satisfiable', message: 'The file has no such range' },
  417: { kind: 'malformed', code: 'expectation_failed', message: 'Only Expect: 100-continue is known here' },
  431: { kind: 'malformed', code: 'headers_too_large', message: 'The request headers are too large' },
};

/** @param status 400 to 499 */
export function httpRefusal(status: number): GatewayError {
  const { kind, code, message } = REFUSALS[status] ?? UNINTELLIGIBLE;
  return new GatewayError(kind, message, { code, status });
}
