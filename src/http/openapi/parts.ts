/** Shared parts of operation descriptions: common answers, and those that every operation may give. */
import { z } from 'zod';
import type {
  ZodOpenApiOperationObject,
  ZodOpenApiPathsObject,
  ZodOpenApiRequestBodyObject,
  ZodOpenApiResponseObject,
} from 'zod-openapi';
import {
  ALLOW,
  ANY_ANSWER,
  ANY_REQUEST,
  type Headers,
  PREFERENCE,
  RETRY_AFTER,
  SHOULD_RETRY,
  WAIT,
} from './headers.ts';
import { errorEnvelopeSchema } from './openapi.ts';

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
type Status = 200 | 204 | 400 | 401 | 404 | 412 | 413 | 415 | 416 | 426 | 429 | 502 | 503 | 'default';

export interface Operation {
  summary: string;
  /** What must be there before a request can succeed, besides what the request holds: completes "Needs ...". */
  needs?: string | undefined;
  /** An example of each parameter of the path, by its name. */
  examples?: Readonly<Record<string, string>>;
  /** True when only the gateway's own pages ask for it, so that `/docs` leaves it out. */
  internal?: boolean;
  /** The answers of this operation; the answers that every operation may give are added. */
  responses: Partial<Record<Status, ZodOpenApiResponseObject>>;
  /** The headers of its success, besides those that every answer has. */
  headers?: Headers;
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

const headersOf = (headers: Headers) => z.object({ ...ANY_ANSWER, ...headers });

/** An answer that several operations share, with its headers. */
export const shared = (id: string, description: string, headers: Headers = {}): ZodOpenApiResponseObject => ({
  id,
  description,
  headers: headersOf(headers),
});

const failure = (id: string, description: string, headers: Headers = {}): ZodOpenApiResponseObject => ({
  ...shared(id, description, headers),
  content: { 'application/json': { schema: errorEnvelopeSchema } },
});

export const NOT_FOUND = failure(
  'NotFound',
  'not_found: no entry has this name, or its model cannot serve now',
);
export const REPLAYING = failure('Replaying', 'network: another capture is being replayed');
export const TOO_LARGE = failure(
  'TooLarge',
  'too_large: more than SVC_MAX_UPLOAD_MB, or than a small body may have',
);
export const UNSUPPORTED = failure('UnsupportedMediaType', 'malformed: the encoding is not supported');
export const PRECONDITION = failure('PreconditionFailed', 'malformed: If-Match does not hold');
export const NO_SUCH_RANGE = failure('RangeNotSatisfiable', 'malformed: the file has no such range');
export const NEEDS_UPGRADE = failure('UpgradeRequired', 'malformed: this address is a WebSocket');
export const UPSTREAM = failure('UpstreamFailed', 'upstream: the upstream failed before its answer began', {
  ...SHOULD_RETRY,
  ...PREFERENCE,
});
export const STOPPING = failure('Stopping', 'network: the gateway is going to stop');
export const UNAVAILABLE = failure(
  'Unavailable',
  'network: the slot is busy (then with Retry-After), or a backend, its weights or an upstream is not available',
  { ...RETRY_AFTER, ...SHOULD_RETRY, ...PREFERENCE },
);
export const NO_SESSION = failure(
  'NoSession',
  'network: all places for live sessions are taken, or a backend or its weights are not available',
  SHOULD_RETRY,
);

/** The answers that every operation may give, because they are decided before the operation runs. */
const ANYWHERE = {
  400: failure('Malformed', 'malformed: the request or the file cannot be used'),
  403: failure(
    'Forbidden',
    'forbidden: a page of another site asks, Host has a wrong name, or SVC_MODEL_ALLOW leaves the model out',
  ),
  405: failure('MethodNotAllowed', 'method_not_allowed: Allow lists the methods of this path', ALLOW),
  408: failure('RequestTimeout', 'malformed: the request did not arrive in time'),
  417: failure('ExpectationFailed', 'malformed: the only supported expectation is 100-continue'),
  431: failure('HeadersTooLarge', 'malformed: the address and the headers are longer than Node reads'),
  500: failure(
    'Internal',
    'internal: the gateway failed; the log has the reason under request_id',
    SHOULD_RETRY,
  ),
};
export const TOO_MANY_KEYS = failure(
  'TooManyKeys',
  'unauthorized: too many wrong keys came from this address; Retry-After says when to come back',
  RETRY_AFTER,
);
export const UNAUTHORIZED = failure(
  'Unauthorized',
  'unauthorized: SVC_API_KEY is set and the request has no valid key',
);

/** @param contentTypes one, or several that the request chooses from */
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

/**
 * @param example what the page at `/docs` sends when its reader changes nothing. For a form it has no files, and only
 * the fields that a reader begins with.
 */
export const bodyOf = (
  contentType: string,
  schema: z.ZodObject,
  example: Readonly<Record<string, unknown>>,
  { required = true } = {},
): ZodOpenApiRequestBodyObject => {
  const encoding = contentType === 'application/json' ? {} : listsOf(schema);
  const hasLists = Object.keys(encoding).length > 0;
  return { required, content: { [contentType]: { schema, example, ...(hasLists && { encoding }) } } };
};

/** A list in a form is sent as several fields of the same name, instead of one field with commas. */
const listsOf = (schema: z.ZodObject): Record<string, { style: 'form'; explode: boolean }> =>
  Object.fromEntries(
    Object.entries(z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }).properties ?? {})
      .filter(([, field]) => Object(field).type === 'array')
      .map(([name]) => [name, { style: 'form', explode: true }]),
  );

/** The groups of the operations, in the order in which a reader wants them. */
export const TAGS = {
  'speech to text': 'Audio files and live audio to text. Runs in the gateway itself.',
  'whisper-asr-webservice': 'Speech to text for Bazarr and other clients of whisper-asr-webservice.',
  'text to speech': 'Passed on to the speech upstream (`SVC_TTS_UPSTREAM_URL`).',
  chat: 'Passed on to the chat daemon (`SVC_LLM_BACKEND_URL`).',
  gateway: 'Which models can serve, whether the gateway is well, and what it did.',
  admin: 'What the dashboard shows and does.',
};

export type Tag = keyof typeof TAGS;

/** @param operations the operations by path, with parameters as `{name}`, and then by method */
export function pathsOf(tag: Tag, operations: Operations): ZodOpenApiPathsObject {
  return Object.fromEntries(
    Object.entries(operations).map(([path, methods]) => [
      path,
      Object.fromEntries(
        Object.entries(methods).map(([method, operation]) => [
          method,
          { operationId: operationId(method, path), ...complete(tag, path, operation) },
        ]),
      ),
    ]),
  );
}

function complete(tag: Tag, path: string, operation: Operation): ZodOpenApiOperationObject {
  const { summary, needs, internal = false, responses, headers, query, body } = operation;
  const { examples = {}, takesSlot = false, open = false } = operation;
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(
    ([, name = '']) => [name, z.string().meta({ param: { example: examples[name] } })] as const,
  );
  return {
    tags: [tag],
    summary,
    ...(needs !== undefined && { description: `Needs ${needs}.` }),
    ...(internal && { 'x-internal': true }),
    ...(open && { security: [] }),
    requestParams: {
      ...(names.length > 0 && { path: z.object(Object.fromEntries(names)) }),
      ...(query && { query }),
      header: z.object({ ...ANY_REQUEST, ...(takesSlot && WAIT) }),
    },
    ...(body && { requestBody: body }),
    responses: {
      ...ANYWHERE,
      ...(open ? {} : { 401: UNAUTHORIZED, 429: TOO_MANY_KEYS }),
      ...withHeaders(responses, { ...(takesSlot && PREFERENCE), ...headers }),
    },
  };
}

/** Adds the headers to those answers that are of one operation alone. A shared one has its own. */
const withHeaders = (responses: Operation['responses'], headers: Headers): Operation['responses'] =>
  Object.fromEntries(
    Object.entries(responses).map(([status, response]) => [
      status,
      response.id === undefined ? { ...response, headers: headersOf(headers) } : response,
    ]),
  );

/**
 * The names of operations (`operationId`) by method and path, by which generated clients call them. So a name that was
 * published stays. Where OpenAI describes the same operation, the name is OpenAI's.
 */
export const OPERATION_IDS: Readonly<Record<string, string>> = {
  'get /health': 'getHealth',
  'get /ready': 'getReadiness',
  'get /openapi.json': 'getDescription',
  'get /metrics': 'getMetrics',
  'get /v1/models': 'listModels',
  'get /v1/models/{id}': 'retrieveModel',
  'post /v1/audio/transcriptions': 'createTranscription',
  'get /v1/realtime': 'openLiveSession',
  'post /v1/realtime/client_secrets': 'createRealtimeClientSecret',
  'post /v1/realtime/transcription_sessions': 'createRealtimeTranscriptionSession',
  'post /v1/realtime/sessions': 'createRealtimeSession',
  'post /v1/audio/translations': 'createTranslation',
  'post /v1/audio/alignments': 'createAlignment',
  'post /asr': 'createAsrTranscription',
  'post /detect-language': 'detectLanguage',
  'post /v1/audio/speech': 'createSpeech',
  'post /v1/audio/speech/stream': 'createSpeechStream',
  'post /v1/audio/speech/batch': 'createSpeechBatch',
  'get /v1/audio/voices': 'listVoices',
  'post /v1/audio/voices': 'createVoice',
  'delete /v1/audio/voices/{name}': 'deleteVoice',
  'post /v1/chat/completions': 'createChatCompletion',
  'post /v1/completions': 'createCompletion',
  'post /v1/embeddings': 'createEmbedding',
  'post /v1/responses': 'createResponse',
  'get /v1/responses/{id}': 'getResponse',
  'delete /v1/responses/{id}': 'deleteResponse',
  'post /v1/responses/{id}/cancel': 'cancelResponse',
  'get /v1/responses/{id}/input_items': 'listInputItems',
  'post /admin/session': 'createSession',
  'delete /admin/session': 'deleteSession',
  'get /admin': 'getDashboard',
  'get /admin/api/metrics': 'getTraffic',
  'get /admin/api/series': 'getSeries',
  'get /admin/api/crashes': 'listCrashes',
  'post /admin/api/observability/toggle': 'toggleObservability',
  'post /admin/api/observability/clear-payload': 'clearCaptures',
  'post /admin/api/reset-asr-state': 'unloadModels',
  'post /admin/api/models/{id}/pull': 'pullModel',
  'post /admin/api/models/{id}/load': 'loadModel',
  'post /admin/api/models/{id}/unload': 'unloadModel',
  'post /admin/api/slot/stop': 'stopSlotHolder',
  'get /admin/captures/{requestId}': 'getCapture',
  'get /admin/captures/{requestId}/req.bin': 'getCapturedRequest',
  'get /admin/captures/{requestId}/resp.bin': 'getCapturedAnswer',
  'post /admin/captures/{requestId}/replay': 'replayCapture',
};

/** One that is not in the table is named after its method and path: `get /v1/slot/{id}` is `getSlotById`. */
export function operationId(method: string, path: string): string {
  const named = OPERATION_IDS[`${method} ${path}`];
  if (named !== undefined) return named;
  const words =
    path
      .replace(/^\/v1\//, '')
      .replaceAll('{', 'by-')
      .match(/[A-Za-z0-9]+/g) ?? [];
  return method + words.map(capitalized).join('');
}

const capitalized = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
