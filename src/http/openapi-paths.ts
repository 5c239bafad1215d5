/** Describes every path of the API except those of `src/admin` (OpenAPI 3.1.0, section 4.8.8). */
import { z } from 'zod';
import type { ZodOpenApiPathsObject, ZodOpenApiResponseObject } from 'zod-openapi';
import { alignmentFields } from '../transcription/alignment/fields.ts';
import { transcriptionFields } from '../transcription/request.ts';
import {
  alignmentSchema,
  betaSessionSchema,
  clientSecretSchema,
  deltaSchema,
  detectedSchema,
  diarizedSchema,
  diarizedSegmentSchema,
  doneSchema,
  healthSchema,
  jsonSchema,
  modelEntrySchema,
  modelsListSchema,
  readySchema,
  streamErrorSchema,
  verboseSchema,
  warningSchema,
  whisperSchema,
} from './openapi.ts';
import { PREFERENCE, RECOGNIZED } from './openapi-headers.ts';
import {
  answer,
  bodyOf,
  DONE,
  json,
  NEEDS_UPGRADE,
  NO_SESSION,
  NOT_FOUND,
  type Operation,
  pathsOf,
  STOPPING,
  shared,
  TOO_LARGE,
  TOO_MANY_KEYS,
  UNAUTHORIZED,
  UNAVAILABLE,
  UNSUPPORTED,
  UPSTREAM,
} from './openapi-parts.ts';
import { clientSecretRequest, transcriptionSessionRequest } from './realtime/client-secrets.ts';
import { asrQuery, detectQuery } from './whisper-asr.ts';

const file = z.string().meta({ type: 'string', format: 'binary', description: 'audio, or video with audio' });
const form = z
  .object({ file, ...transcriptionFields })
  .partial()
  .required({ file: true });

const alignmentForm = z
  .object({ file, ...alignmentFields })
  .partial()
  .required({ file: true, text: true });

const audioFile = z.object({ audio_file: file });

const transcription = (summary: string): Operation => ({
  summary,
  takesSlot: true,
  headers: RECOGNIZED,
  body: bodyOf('multipart/form-data', form),
  responses: {
    200: {
      description: 'as response_format says, or events with stream=true',
      content: {
        'application/json': { schema: z.union([jsonSchema, verboseSchema, diarizedSchema]) },
        'text/plain': { schema: z.string() },
        'text/event-stream': {
          schema: z.union([deltaSchema, diarizedSegmentSchema, doneSchema, warningSchema, streamErrorSchema]),
        },
      },
    },
    413: TOO_LARGE,
    415: UNSUPPORTED,
    503: UNAVAILABLE,
  },
});

const OWN_ERRORS = shared(
  'OfTheUpstream',
  'another answer of the upstream; an error has the members of the envelope beside its own',
  PREFERENCE,
);

const WEB_SOCKET: ZodOpenApiResponseObject = { id: 'WebSocket', description: '101: the WebSocket is open' };

/** An operation that the gateway forwards. It does not check the bodies, whose shapes are the upstream's (OpenAI's). */
const passedOn = (summary: string, contentTypes: string | string[], body?: z.ZodType): Operation => ({
  summary,
  takesSlot: true,
  ...(body && { body: bodyOf('application/json', body) }),
  responses: {
    200: answer('the answer of the upstream', contentTypes, z.unknown()),
    502: UPSTREAM,
    503: UNAVAILABLE,
    default: OWN_ERRORS,
  },
});

const speech = z.looseObject({
  input: z.string().describe('the text'),
  voice: z.string().optional(),
  model: z.string().optional(),
  response_format: z.string().optional(),
  task_type: z.string().optional(),
  language: z.string().optional(),
  ref_audio: z.string().optional().describe('audio of the voice to clone'),
});
const batch = z.looseObject({ items: z.array(z.unknown()).optional() });
const voice = z.looseObject({ name: z.string().optional() });
/** The upstream takes either, and the gateway passes on what comes. */
const voiceForm = voice.extend({
  audio_sample: z
    .string()
    .meta({ type: 'string', format: 'binary', description: 'audio of the voice' })
    .optional(),
});
const chat = z.looseObject({
  model: z.string(),
  messages: z.array(z.looseObject({ role: z.string() })),
  stream: z.boolean().optional(),
});

const completion = z.looseObject({
  model: z.string(),
  prompt: z.union([z.string(), z.array(z.unknown())]).optional(),
  stream: z.boolean().optional(),
});
const embedding = z.looseObject({
  model: z.string(),
  input: z.union([z.string(), z.array(z.unknown())]).describe('a text, or several'),
});
const response = z.looseObject({
  model: z.string().optional(),
  input: z.union([z.string(), z.array(z.unknown())]).optional(),
  stream: z.boolean().optional(),
});
const JSON_OR_EVENTS = ['application/json', 'text/event-stream'];

const elsewhere = passedOn('any other path of the speech upstream, with one or more segments', '*/*');

export const apiPaths = (): ZodOpenApiPathsObject => ({
  ...pathsOf('gateway', {
    '/health': {
      get: { summary: 'the process answers', open: true, responses: { 200: json('alive', healthSchema) } },
    },
    '/ready': {
      get: {
        summary: 'new requests are served; for load balancers',
        open: true,
        responses: { 200: json('ready', readySchema), 503: STOPPING },
      },
    },
    '/openapi.json': {
      get: {
        summary: 'this description',
        open: true,
        responses: { 200: json('OpenAPI 3.1', z.looseObject({})) },
      },
    },
    '/metrics': {
      get: {
        summary: 'the metrics for Prometheus',
        responses: { 200: answer('text format 0.0.4', 'text/plain') },
      },
    },
    '/v1/models': {
      get: { summary: 'the models that can serve now', responses: { 200: json('models', modelsListSchema) } },
    },
    '/v1/models/{id}': {
      get: {
        summary: 'one model, by id or alias; an id may hold slashes',
        responses: { 200: json('the model', modelEntrySchema), 404: NOT_FOUND },
      },
    },
  }),
  ...pathsOf('speech to text', {
    '/v1/audio/transcriptions': { post: transcription('speech to text in the language spoken') },
    '/v1/realtime': {
      get: {
        summary: 'live transcription over a WebSocket, by the events of OpenAI’s transcription sessions',
        query: z.object({
          model: z.string().optional().describe('the model, until an event names one'),
          intent: z.string().optional().describe('not read; OpenAI’s clients send `transcription`'),
        }),
        responses: { 426: NEEDS_UPGRADE, 503: NO_SESSION, default: WEB_SOCKET },
      },
    },
    '/v1/realtime/client_secrets': {
      post: {
        summary: 'a short-lived key for live sessions, for pages and apps that may hold no other',
        body: bodyOf('application/json', clientSecretRequest, { required: false }),
        responses: { 200: json('the secret', clientSecretSchema), 413: TOO_LARGE, 415: UNSUPPORTED },
      },
    },
    '/v1/realtime/transcription_sessions': {
      post: {
        summary: 'the same as OpenAI’s beta has it, with flat fields',
        body: bodyOf('application/json', transcriptionSessionRequest, { required: false }),
        responses: { 200: json('the secret', betaSessionSchema), 413: TOO_LARGE, 415: UNSUPPORTED },
      },
    },
    '/v1/audio/translations': { post: transcription('speech in any language to English text') },
    '/v1/audio/alignments': {
      post: {
        summary: 'when each word of a given text is spoken',
        takesSlot: true,
        headers: RECOGNIZED,
        body: bodyOf('multipart/form-data', alignmentForm),
        responses: {
          200: json('the words', alignmentSchema),
          413: TOO_LARGE,
          415: UNSUPPORTED,
          503: UNAVAILABLE,
        },
      },
    },
  }),
  ...pathsOf('whisper-asr-webservice', {
    '/asr': {
      post: {
        summary: 'speech to text, as whisper-asr-webservice and Bazarr have it',
        takesSlot: true,
        headers: RECOGNIZED,
        query: asrQuery,
        body: bodyOf('multipart/form-data', audioFile),
        responses: {
          200: {
            description: 'as output says',
            content: {
              'text/plain': { schema: z.string() },
              'application/json': { schema: whisperSchema },
            },
          },
          413: TOO_LARGE,
          415: UNSUPPORTED,
          503: UNAVAILABLE,
        },
      },
    },
    '/detect-language': {
      post: {
        summary: 'the language of the first 30 s of speech',
        takesSlot: true,
        headers: RECOGNIZED,
        query: detectQuery,
        body: bodyOf('multipart/form-data', audioFile),
        responses: {
          200: json('the language', detectedSchema),
          413: TOO_LARGE,
          415: UNSUPPORTED,
          503: UNAVAILABLE,
        },
      },
    },
  }),
  ...pathsOf('text to speech', {
    '/v1/audio/speech': { post: passedOn('speech, by the speech upstream', 'audio/*', speech) },
    '/v1/audio/speech/stream': { post: passedOn('speech in chunks as it is made', 'audio/*', speech) },
    '/v1/audio/speech/batch': { post: passedOn('several texts at once', 'application/json', batch) },
    '/v1/audio/voices': {
      get: passedOn('the voices', 'application/json'),
      post: {
        ...passedOn('registers a voice', 'application/json'),
        body: {
          required: true,
          content: {
            'application/json': { schema: voice },
            'multipart/form-data': { schema: voiceForm },
          },
        },
      },
    },
    '/v1/audio/voices/{name}': { delete: passedOn('removes a registered voice', 'application/json') },
    '/v1/audio/{path}': {
      ...{ get: elsewhere, post: elsewhere, put: elsewhere, patch: elsewhere, delete: elsewhere },
    },
  }),
  ...pathsOf('chat', {
    '/v1/chat/completions': {
      post: passedOn('chat, by the chat daemon', JSON_OR_EVENTS, chat),
    },
    '/v1/completions': {
      post: passedOn('text that goes on, by the chat daemon', JSON_OR_EVENTS, completion),
    },
    '/v1/embeddings': {
      post: passedOn('texts as vectors, by the chat daemon', 'application/json', embedding),
    },
    '/v1/responses': { post: passedOn('a response, by the chat daemon', JSON_OR_EVENTS, response) },
    '/v1/responses/{id}': {
      get: passedOn('a response that the chat daemon has kept', JSON_OR_EVENTS),
      delete: passedOn('deletes a response', 'application/json'),
    },
    '/v1/responses/{id}/cancel': { post: passedOn('ends a response under way', 'application/json') },
    '/v1/responses/{id}/input_items': { get: passedOn('what a response answered', 'application/json') },
  }),
  ...pathsOf('admin', {
    '/admin/session': {
      post: {
        summary: 'a cookie for a key, for the dashboard',
        open: true,
        body: bodyOf('application/json', z.looseObject({ key: z.string() })),
        responses: {
          ...{ 204: DONE, 413: TOO_LARGE, 415: UNSUPPORTED },
          ...{ 401: UNAUTHORIZED, 429: TOO_MANY_KEYS },
        },
      },
      delete: { summary: 'clears the cookie', open: true, responses: { 204: DONE } },
    },
  }),
});
