/** Describes the paths of the API whose handlers are in `src/http` (OpenAPI 3.1.0, section 4.8.8). */
import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { alignmentFields } from '../../wire/alignment-fields.ts';
import { transcriptionFields } from '../../wire/request.ts';
import { asrQuery, detectQuery } from '../whisper-asr.ts';
import { PREFERENCE, RECOGNIZED } from './headers.ts';
import {
  alignmentSchema,
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
import {
  answer,
  bodyOf,
  DONE,
  json,
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
} from './parts.ts';

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

const RECOGNITION = {
  needs: 'the weights of a model, which are fetched at its first request where SVC_MODEL_DOWNLOAD allows it',
  takesSlot: true,
  headers: RECOGNIZED,
};
const OF_UPLOADS = { 413: TOO_LARGE, 415: UNSUPPORTED, 503: UNAVAILABLE };
const UPSTREAM_OF = {
  tts: 'a speech upstream (SVC_TTS_UPSTREAM_URL)',
  llm: 'a chat daemon (SVC_LLM_BACKEND_URL), and one of its models: GET /v1/models lists them',
};

const transcription = (summary: string): Operation => ({
  summary,
  ...RECOGNITION,
  body: bodyOf('multipart/form-data', form, { model: 'auto', response_format: 'json' }),
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
    ...OF_UPLOADS,
  },
});

const OWN_ERRORS = shared(
  'OfTheUpstream',
  'another answer of the upstream; an error has the members of the envelope beside its own',
  PREFERENCE,
);

/** An operation that the gateway forwards. It does not check the bodies, whose shapes are the upstream's (OpenAI's). */
const passedOn = (
  to: keyof typeof UPSTREAM_OF,
  summary: string,
  contentTypes: string | string[],
  body?: Operation['body'],
): Operation => ({
  summary,
  needs: UPSTREAM_OF[to],
  takesSlot: true,
  ...(body && { body }),
  responses: {
    200: answer('the answer of the upstream', contentTypes, z.unknown()),
    502: UPSTREAM,
    503: UNAVAILABLE,
    default: OWN_ERRORS,
  },
});

const speech = bodyOf(
  'application/json',
  z.looseObject({
    input: z.string().describe('the text'),
    voice: z.string().optional(),
    model: z.string().optional(),
    response_format: z.string().optional(),
    task_type: z.string().optional(),
    language: z.string().optional(),
    ref_audio: z.string().optional().describe('audio of the voice to clone'),
  }),
  { model: 'tts', voice: 'alloy', input: 'Good morning. This text is read aloud.' },
);
const batch = bodyOf('application/json', z.looseObject({ items: z.array(z.unknown()).optional() }), {
  items: [
    { input: 'The first text.', voice: 'alloy' },
    { input: 'The second text.', voice: 'alloy' },
  ],
});
const VOICE = 'my-voice';
const voice = z.looseObject({ name: z.string().optional() });
const voiceForm = voice.extend({
  audio_sample: z
    .string()
    .meta({ type: 'string', format: 'binary', description: 'audio of the voice' })
    .optional(),
});
/** The upstream takes either, and the gateway passes on what comes. */
const newVoice: Operation['body'] = {
  required: true,
  content: {
    ...bodyOf('multipart/form-data', voiceForm, { name: VOICE }).content,
    ...bodyOf('application/json', voice, { name: VOICE }).content,
  },
};
/** A model that many chat daemons have; the reader names another one. */
const CHAT_MODEL = 'llama3.2';
const chat = bodyOf(
  'application/json',
  z.looseObject({
    model: z.string(),
    messages: z.array(z.looseObject({ role: z.string() })),
    stream: z.boolean().optional(),
  }),
  {
    model: CHAT_MODEL,
    messages: [{ role: 'user', content: 'What is a gateway? One sentence.' }],
    stream: false,
  },
);

const completion = bodyOf(
  'application/json',
  z.looseObject({
    model: z.string(),
    prompt: z.union([z.string(), z.array(z.unknown())]).optional(),
    stream: z.boolean().optional(),
  }),
  { model: CHAT_MODEL, prompt: 'A gateway is', stream: false },
);
const embedding = bodyOf(
  'application/json',
  z.looseObject({
    model: z.string(),
    input: z.union([z.string(), z.array(z.unknown())]).describe('a text, or several'),
  }),
  { model: 'nomic-embed-text', input: ['The first text.', 'The second text.'] },
);
const response = bodyOf(
  'application/json',
  z.looseObject({
    model: z.string().optional(),
    input: z.union([z.string(), z.array(z.unknown())]).optional(),
    stream: z.boolean().optional(),
  }),
  { model: CHAT_MODEL, input: 'What is a gateway? One sentence.', stream: false },
);
const JSON_OR_EVENTS = ['application/json', 'text/event-stream'];
const ofResponse = (summary: string, contentTypes: string | string[]): Operation => ({
  ...passedOn('llm', summary, contentTypes),
  needs: 'a chat daemon (SVC_LLM_BACKEND_URL) that has stored this response',
  examples: { id: 'resp_1' },
});

const elsewhere: Operation = {
  ...passedOn('tts', 'any other path of the speech upstream, with one or more segments', '*/*'),
  needs: `${UPSTREAM_OF.tts} that has this path`,
  examples: { path: 'models' },
};

const speechToTextPaths = () =>
  pathsOf('speech to text', {
    '/v1/audio/transcriptions': { post: transcription('speech to text in the language spoken') },
    '/v1/audio/translations': { post: transcription('speech in any language to English text') },
    '/v1/audio/alignments': {
      post: {
        summary: 'when each word of a given text is spoken',
        ...RECOGNITION,
        body: bodyOf('multipart/form-data', alignmentForm, { model: 'auto', text: 'Hello there.' }),
        responses: { 200: json('the words', alignmentSchema), ...OF_UPLOADS },
      },
    },
  });

const whisperAsrPaths = () =>
  pathsOf('whisper-asr-webservice', {
    '/asr': {
      post: {
        summary: 'speech to text, compatible with whisper-asr-webservice and Bazarr',
        ...RECOGNITION,
        query: asrQuery,
        body: bodyOf('multipart/form-data', audioFile, {}),
        responses: {
          200: {
            description: 'as output says',
            content: { 'text/plain': { schema: z.string() }, 'application/json': { schema: whisperSchema } },
          },
          ...OF_UPLOADS,
        },
      },
    },
    '/detect-language': {
      post: {
        summary: 'the language of the first 30 s of speech',
        ...RECOGNITION,
        query: detectQuery,
        body: bodyOf('multipart/form-data', audioFile, {}),
        responses: { 200: json('the language', detectedSchema), ...OF_UPLOADS },
      },
    },
  });

const textToSpeechPaths = () =>
  pathsOf('text to speech', {
    '/v1/audio/speech': { post: passedOn('tts', 'speech, by the speech upstream', 'audio/*', speech) },
    '/v1/audio/speech/stream': { post: passedOn('tts', 'speech in chunks as it is made', 'audio/*', speech) },
    '/v1/audio/speech/batch': { post: passedOn('tts', 'several texts at once', 'application/json', batch) },
    '/v1/audio/voices': {
      get: passedOn('tts', 'the voices', 'application/json'),
      post: passedOn('tts', 'registers a voice', 'application/json', newVoice),
    },
    '/v1/audio/voices/{name}': {
      delete: {
        ...passedOn('tts', 'removes a registered voice', 'application/json'),
        needs: `${UPSTREAM_OF.tts} where this voice was registered`,
        examples: { name: VOICE },
      },
    },
    '/v1/audio/{path}': {
      get: elsewhere,
      post: elsewhere,
      put: elsewhere,
      patch: elsewhere,
      delete: elsewhere,
    },
  });

const chatPaths = () =>
  pathsOf('chat', {
    '/v1/chat/completions': {
      post: passedOn('llm', 'chat, by the chat daemon', JSON_OR_EVENTS, chat),
    },
    '/v1/completions': {
      post: passedOn('llm', 'text that goes on, by the chat daemon', JSON_OR_EVENTS, completion),
    },
    '/v1/embeddings': {
      post: passedOn('llm', 'texts as vectors, by the chat daemon', 'application/json', embedding),
    },
    '/v1/responses': { post: passedOn('llm', 'a response, by the chat daemon', JSON_OR_EVENTS, response) },
    '/v1/responses/{id}': {
      get: ofResponse('a response that the chat daemon has kept', JSON_OR_EVENTS),
      delete: ofResponse('deletes a response', 'application/json'),
    },
    '/v1/responses/{id}/cancel': { post: ofResponse('ends a response under way', 'application/json') },
    '/v1/responses/{id}/input_items': { get: ofResponse('what a response answered', 'application/json') },
  });

const gatewayPaths = () =>
  pathsOf('gateway', {
    '/health': {
      get: {
        summary: 'whether the process is alive',
        open: true,
        responses: { 200: json('alive', healthSchema) },
      },
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
      get: { summary: 'the models available now', responses: { 200: json('models', modelsListSchema) } },
    },
    '/v1/models/{id}': {
      get: {
        summary: 'one model, by id or alias; an id may contain slashes',
        needs: 'a model that can serve now',
        examples: { id: 'auto' },
        responses: { 200: json('the model', modelEntrySchema), 404: NOT_FOUND },
      },
    },
  });

const sessionPaths = () =>
  pathsOf('admin', {
    '/admin/session': {
      post: {
        summary: 'exchanges a key for a cookie, for the dashboard',
        needs: 'a key from SVC_API_KEY; if none is set, anything works',
        open: true,
        body: bodyOf('application/json', z.looseObject({ key: z.string() }), { key: 'a key of yours' }),
        responses: {
          204: DONE,
          401: UNAUTHORIZED,
          413: TOO_LARGE,
          415: UNSUPPORTED,
          429: TOO_MANY_KEYS,
        },
      },
      delete: { summary: 'clears the cookie', open: true, responses: { 204: DONE } },
    },
  });

/** @param live the paths of live sessions, which stand behind those of files */
export const apiPaths = (live: ZodOpenApiPathsObject): ZodOpenApiPathsObject => ({
  ...speechToTextPaths(),
  ...live,
  ...whisperAsrPaths(),
  ...textToSpeechPaths(),
  ...chatPaths(),
  ...gatewayPaths(),
  ...sessionPaths(),
});
