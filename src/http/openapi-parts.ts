/** What descriptions of operations are made of: answers that many share, and what holds for every operation. */
import { z } from 'zod';
import type {
  ZodOpenApiOperationObject,
  ZodOpenApiPathsObject,
  ZodOpenApiRequestBodyObject,
  ZodOpenApiResponseObject,
} from 'zod-openapi';
import { errorEnvelopeSchema } from './openapi.ts';

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
type Status = 200 | 204 | 400 | 404 | 413 | 415 | 416 | 502 | 503 | 'default';

export interface Operation {
  summary: string;
  /** Those of one operation; what any of them may answer is added. */
  responses: Partial<Record<Status, ZodOpenApiResponseObject>>;
  query?: z.ZodObject;
  body?: ZodOpenApiRequestBodyObject;
  /** Needs no key. */
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
  'not_found: nothing, or nothing that can serve now, has this name',
);
export const TOO_LARGE = failure(
  'TooLarge',
  'too_large: more than SVC_MAX_UPLOAD_MB, or than a small body may have',
);
export const UNSUPPORTED = failure('UnsupportedMediaType', 'malformed: an encoding that is not known here');
export const NO_SUCH_RANGE = failure('RangeNotSatisfiable', 'malformed: the file has no such range');
export const UPSTREAM = failure('UpstreamFailed', 'upstream: it failed before its answer began');
export const UNAVAILABLE = failure(
  'Unavailable',
  'network: the slot is busy (then with Retry-After), or a backend, its weights or an upstream is not available',
);

/** What any operation may answer: these are decided before its path is looked at, or in its place. */
const ANYWHERE = {
  400: failure('Malformed', 'malformed: the request or the file cannot be used'),
  403: failure('Forbidden', 'forbidden: a page of another site, or a name this server does not have'),
  405: failure('MethodNotAllowed', 'method_not_allowed: another method at this path; Allow says which'),
  500: failure('Internal', 'internal: the gateway failed; the log has the reason under request_id'),
};
const UNAUTHORIZED = failure('Unauthorized', 'unauthorized: no valid key, where SVC_API_KEY is set');

export const answer = (
  description: string,
  contentType: string,
  schema: z.ZodType = z.string(),
): ZodOpenApiResponseObject => ({ description, content: { [contentType]: { schema } } });

export const json = (description: string, schema: z.ZodType) =>
  answer(description, 'application/json', schema);

export const DONE: ZodOpenApiResponseObject = { description: 'done' };

export const bodyOf = (contentType: string, schema: z.ZodType): ZodOpenApiRequestBodyObject => ({
  ...{ required: true, content: { [contentType]: { schema } } },
});

/** @param operations by path, with parameters as `{name}`, and method */
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

function complete(tag: string, path: string, operation: Operation): ZodOpenApiOperationObject {
  const { summary, responses, query, body, open = false } = operation;
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => [name, z.string()] as const);
  return {
    tags: [tag],
    summary,
    ...(open && { security: [] }),
    requestParams: {
      ...(names.length > 0 && { path: z.object(Object.fromEntries(names)) }),
      ...(query && { query }),
    },
    ...(body && { requestBody: body }),
    responses: { ...ANYWHERE, ...(open ? {} : { 401: UNAUTHORIZED }), ...responses },
  };
}
