/**
 * The errors for requests that break HTTP, by status (RFC 9110, section 15.5). The parser, the body readers and the
 * static files raise them. The status is kept, so that the HTTP library of a client understands it.
 */
import { excerpt, GatewayError } from '../../errors.ts';

const CODE_OF_STATUS = {
  408: 'request_timeout',
  412: 'precondition_failed',
  413: 'body_too_large',
  416: 'range_not_satisfiable',
  417: 'expectation_failed',
  431: 'headers_too_large',
} as const;

/** @param status 400 to 499; a status without a code of its own becomes `bad_request` with status 400 */
export function httpRefusal(status: number): GatewayError {
  return new GatewayError(CODE_OF_STATUS[status as keyof typeof CODE_OF_STATUS] ?? 'bad_request', {});
}

/** The refusal of a body of a media type that nothing here reads. */
export const mediaTypeRefusal = (type: string | undefined, expected: readonly string[]): GatewayError =>
  new GatewayError('unsupported_media_type', {
    what: type === undefined ? 'missing type' : `type "${excerpt(type)}"`,
    expected: `Expected ${expected.join(' or ')}`,
  });

/** The refusal of a body in a content coding. @param accepted the codings that are read; empty where none is */
export const codingRefusal = (coding: string, accepted: readonly string[] = []): GatewayError =>
  new GatewayError(
    'unsupported_media_type',
    {
      what: `Content-Encoding "${excerpt(coding)}"`,
      expected: accepted.length === 0 ? 'Expected none' : `Expected none, ${accepted.join(', ')}`,
    },
    { acceptEncoding: [...accepted, 'identity'].join(', ') },
  );

/** The refusal of a body in a character set. */
export const charsetRefusal = (charset: string): GatewayError =>
  new GatewayError('unsupported_media_type', {
    what: `character set "${excerpt(charset)}"`,
    expected: 'Expected UTF-8',
  });
