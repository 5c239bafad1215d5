/** The parts that descriptions of operations are made of: shared answers, and what every operation may answer. */
import { z } from 'zod';
import type {
  ZodOpenApiOperationObject,
  ZodOpenApiPathsObject,
  ZodOpenApiRequestBodyObject,
  ZodOpenApiResponseObject,
} from 'zod-openapi';
import { errorEnvelopeSchema } from './openapi.ts';

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
type Status = 200 | 204 | 400 | 404 | 412 | 413 | 415 | 416 | 426 | 502 | 503 | 'default';

export interface Operation {
  summary: string;
  /** The answers of this operation; the answers that every operation may give are added. */
  responses: Partial<Record<Status, ZodOpenApiResponseObject>>;
  query?: z.ZodObject;
  body?: ZodOpenApiRequestBodyObject;
  /** True when the operation takes the slot, so that its client may ask to wait for it. */
  takesSlot?: boolean;
  /** True when the operation needs no key. */
  open?: boolean;
}

export type Operations = Readonly<Record<string, Partial<Record<Method, Operation>>>>;

/** The name of the scheme in `components.securitySchemes`. */
export const BEARER = 'bearerAuth';

const failure = (id: string, description: string): ZodOpenApiResponseObject => ({
  ...{ id, description },
  content: { 'application/json': { schema: errorEnvelopeSchema } },
});

export const NOT_FOUND = failure(
  'NotFound',
  'not_found: no entry has this name, or its model cannot serve now',
);
export const TOO_LARGE = failure(
  'TooLarge',
  'too_large: more than SVC_MAX_UPLOAD_MB, or than a small body may have',
);
export const UNSUPPORTED = failure('UnsupportedMediaType', 'malformed: the encoding is not supported');
export const PRECONDITION = failure('PreconditionFailed', 'malformed: If-Match does not hold');
export const NO_SUCH_RANGE = failure('RangeNotSatisfiable', 'malformed: the file has no such range');
export const NEEDS_UPGRADE = failure('UpgradeRequired', 'malformed: this address is a WebSocket');
export const UPSTREAM = failure('UpstreamFailed', 'upstream: the upstream failed before its answer began');
export const STOPPING = failure('Stopping', 'network: the gateway is going to stop');
export const UNAVAILABLE = failure(
  'Unavailable',
  'network: the slot is busy (then with Retry-After), or a backend, its weights or an upstream is not available',
);

/** The answers that every operation may give, because they are decided before the operation runs. */
const ANYWHERE = {
  400: failure('Malformed', 'malformed: the request or the file cannot be used'),
  403: failure(
    'Forbidden',
    'forbidden: the request comes from a page of another site, or Host has a wrong name',
  ),
  405: failure('MethodNotAllowed', 'method_not_allowed: Allow lists the methods of this path'),
  408: failure('RequestTimeout', 'malformed: the request did not arrive in time'),
  417: failure('ExpectationFailed', 'malformed: the only supported expectation is 100-continue'),
  431: failure('HeadersTooLarge', 'malformed: the address and the headers are longer than Node reads'),
  500: failure('Internal', 'internal: the gateway failed; the log has the reason under request_id'),
};
const TOO_MANY_KEYS = failure(
  'TooManyKeys',
  'unauthorized: too many wrong keys came from this address; Retry-After says when to come back',
);
const UNAUTHORIZED = failure(
  'Unauthorized',
  'unauthorized: SVC_API_KEY is set and the request has no valid key',
);

/** @param contentTypes one, or several of which the request chooses */
export const answer = (
  description: string,
  contentTypes: string | readonly string[],
  schema: z.ZodType = z.string(),
): ZodOpenApiResponseObject => ({
  description,
  content: Object.fromEntries([contentTypes].flat().map((type) => [type, { schema }])),
});

export const json = (description: string, schema: z.ZodType) =>
  answer(description, 'application/json', schema);

export const DONE: ZodOpenApiResponseObject = { description: 'done' };

export const bodyOf = (contentType: string, schema: z.ZodType): ZodOpenApiRequestBodyObject => ({
  ...{ required: true, content: { [contentType]: { schema } } },
});

/** @param operations the operations by path, with parameters as `{name}`, and then by method */
export function pathsOf(tag: string, operations: Operations): ZodOpenApiPathsObject {
  return Object.fromEntries(
    Object.entries(operations).map(([path, methods]) => [
      path,
      Object.fromEntries(
        Object.entries(methods).map(([method, operation]) => [method, complete(tag, path, operation)]),
      ),
    ]),
  );
}

const WAIT = z.object({
  Prefer: z
    .string()
    .optional()
    .describe('`wait=N`: wait for a busy slot for at most N seconds (RFC 7240; SVC_MAX_WAIT_SEC allows it)'),
});

function complete(tag: string, path: string, operation: Operation): ZodOpenApiOperationObject {
  const { summary, responses, query, body, takesSlot, open = false } = operation;
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, z.string()] as const);
  return {
    tags: [tag],
    summary,
    ...(open && { security: [] }),
    requestParams: {
      ...(names.length > 0 && { path: z.object(Object.fromEntries(names)) }),
      ...(query && { query }),
      ...(takesSlot && { header: WAIT }),
    },
    ...(body && { requestBody: body }),
    responses: { ...ANYWHERE, ...(open ? {} : { 401: UNAUTHORIZED, 429: TOO_MANY_KEYS }), ...responses },
  };
}
