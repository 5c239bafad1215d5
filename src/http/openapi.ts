/**
 * The API's own description (OpenAPI 3.1), made from the schemas the requests are checked with, and served as
 * `/openapi.json` and as a page at `/docs`. Response objects are loose: fields may be added within /v1.
 */
import { type Express, type RequestHandler, Router } from 'express';
import { z } from 'zod';
import { ERROR_KINDS } from '../errors.ts';
import { PROVIDERS } from '../models/catalogue.ts';
import { transcriptionFields } from '../transcription/request.ts';
import { pageHeaders } from './pages.ts';

const sec = (what: string) => z.number().min(0).describe(`${what}, seconds`);

export const errorEnvelopeSchema = z
  .looseObject({
    error: z.looseObject({
      kind: z.enum(ERROR_KINDS).describe('what clients branch on'),
      provider: z.enum(PROVIDERS),
      message: z.string().describe('for people; the wording is not stable'),
      type: z.string(),
      param: z.string().nullable().describe('the field at fault'),
      code: z.string().nullable(),
      request_id: z.string().optional().describe('of a 5xx: what to look for in the log'),
      held_by: z.enum(['asr', 'tts', 'llm']).optional().describe('slot_busy: who is being served'),
      held_for_ms: z.number().optional().describe('slot_busy: for how long'),
    }),
  })
  .meta({ id: 'ErrorEnvelope' });

export const healthSchema = z
  .looseObject({ status: z.literal('ok'), version: z.string() })
  .meta({ id: 'HealthResponse' });

const modelEntry = z
  .looseObject({
    id: z.string(),
    object: z.literal('model'),
    created: z.int().describe('unix seconds'),
    owned_by: z.string(),
    capabilities: z.array(z.enum(['asr', 'tts', 'llm'])),
    languages: z.array(z.string()).optional().describe('ISO 639 codes; ASR models only, not `auto`'),
    supports_streaming: z.boolean(),
    is_routing_alias: z.boolean().describe('true only on `auto`'),
    installed: z.boolean().describe('weights on disk'),
    loaded: z.boolean().describe('resident in memory'),
  })
  .meta({ id: 'ModelEntry' });

export const modelsListSchema = z
  .looseObject({ object: z.literal('list'), data: z.array(modelEntry) })
  .meta({ id: 'ModelsList' });

const usage = z.looseObject({ type: z.literal('duration'), seconds: z.int().describe('rounded up') });

const logprobs = z
  .array(z.looseObject({ token: z.string(), logprob: z.number(), bytes: z.array(z.int()) }))
  .optional();

export const jsonSchema = z.looseObject({ text: z.string(), usage, logprobs }).meta({ id: 'Transcription' });

export const segmentSchema = z
  .looseObject({
    id: z.int(),
    seek: z.int().describe('start of the decoded window, in frames of 10 ms'),
    start: sec('start'),
    end: sec('end'),
    text: z.string(),
    tokens: z.array(z.int()).describe('the engine’s ids'),
    temperature: z.number(),
    avg_logprob: z.number(),
    compression_ratio: z.number(),
    no_speech_prob: z.number(),
    emotion: z.string().optional().describe('task_type=rich'),
    event: z.string().optional().describe('task_type=rich'),
  })
  .meta({ id: 'Segment' });

export const verboseSchema = z
  .looseObject({
    task: z.enum(['transcribe', 'translate']),
    language: z.string().describe('lower-case English name'),
    duration: sec('audio'),
    text: z.string(),
    segments: z.array(segmentSchema).optional(),
    words: z.array(z.looseObject({ word: z.string(), start: sec('start'), end: sec('end') })).optional(),
    usage,
    language_code: z.string().describe('ISO 639'),
    language_probability: z.number().min(0).max(1),
    model: z.string(),
    route: z.string().describe('`requested`, or `auto:` and the rule'),
    dropped: z
      .array(z.looseObject({ start: sec('start'), end: sec('end'), reason: z.string() }))
      .optional()
      .describe('speech for which no text could be given'),
    logprobs,
  })
  .meta({ id: 'VerboseTranscription' });

export const deltaSchema = z
  .looseObject({
    type: z.literal('transcript.text.delta'),
    delta: z.string().describe('joined, the deltas are the text'),
    segment_id: z.string(),
    start: sec('start'),
    end: sec('end'),
    logprobs,
  })
  .meta({ id: 'TranscriptTextDelta' });

export const doneSchema = z
  .looseObject({
    type: z.literal('transcript.text.done'),
    text: z.string(),
    usage,
    language: z.string(),
    duration: sec('audio'),
    model: z.string(),
    route: z.string(),
    segments: z.array(segmentSchema),
    logprobs,
  })
  .meta({ id: 'TranscriptTextDone' });

export const warningSchema = z
  .looseObject({ type: z.literal('warning'), code: z.string(), message: z.string() })
  .meta({ id: 'StreamWarning' });

const streamErrorSchema = z
  .looseObject({ type: z.literal('error'), error: errorEnvelopeSchema.shape.error })
  .meta({ id: 'StreamError' });

const file = z.string().meta({ type: 'string', format: 'binary', description: 'audio, or video with audio' });
const form = z
  .object({ file, ...transcriptionFields })
  .partial()
  .required({ file: true });

const failure = (description: string) => ({
  description,
  content: { 'application/json': { schema: errorEnvelopeSchema } },
});
const json = (description: string, schema: z.ZodType) => ({
  description,
  content: { 'application/json': { schema } },
});

const FAILURES = {
  400: failure('malformed: the request or the file cannot be used'),
  413: failure('too_large: more than SVC_MAX_UPLOAD_MB'),
  500: failure('internal: the gateway failed'),
  503: failure(
    'network: the slot is busy (then with Retry-After), or a backend or its weights are not available',
  ),
};

const transcription = (summary: string) => ({
  post: {
    summary,
    tags: ['speech to text'],
    requestBody: { required: true, content: { 'multipart/form-data': { schema: form } } },
    responses: {
      200: {
        description: 'as response_format says, or events with stream=true',
        content: {
          'application/json': { schema: z.union([jsonSchema, verboseSchema]) },
          'text/plain': { schema: z.string() },
          'text/event-stream': {
            schema: z.union([deltaSchema, doneSchema, warningSchema, streamErrorSchema]),
          },
        },
      },
      ...FAILURES,
    },
  },
});

/** The gateway does not look into these: what the upstream takes and gives is its own, in OpenAI's shapes. */
const passedOn = (tag: string, summary: string, answer: string) => ({
  post: {
    summary,
    tags: [tag],
    requestBody: { required: true, content: { 'application/json': { schema: z.looseObject({}) } } },
    responses: {
      200: { description: 'as the upstream answers', content: { [answer]: { schema: z.unknown() } } },
      502: failure('upstream: it failed before its answer began'),
      503: failure('network: the slot is busy (then with Retry-After), or the upstream cannot be reached'),
    },
  },
});

async function describeApi(version: string) {
  const { createDocument } = await import('zod-openapi');
  return createDocument({
    openapi: '3.1.0',
    info: {
      title: 'voxgate',
      version,
      description: 'Speech to text, text to speech and chat with the OpenAI API. Details: docs/api.md.',
    },
    paths: {
      '/health': {
        get: {
          tags: ['gateway'],
          summary: 'the process answers',
          responses: { 200: json('alive', healthSchema) },
        },
      },
      '/v1/models': {
        get: { summary: 'what can serve now', responses: { 200: json('models', modelsListSchema) } },
      },
      '/v1/models/{id}': {
        get: {
          tags: ['gateway'],
          summary: 'one model, by id or alias',
          requestParams: { path: z.object({ id: z.string() }) },
          responses: { 200: json('the model', modelEntry), 400: FAILURES[400], 404: failure('not_found') },
        },
      },
      '/v1/audio/speech': passedOn('text to speech', 'speech, by the speech upstream', 'audio/*'),
      '/v1/chat/completions': passedOn('chat', 'chat, by the chat daemon', 'application/json'),
      '/v1/audio/transcriptions': transcription('speech to text in the language spoken'),
      '/v1/audio/translations': transcription('speech in any language to English text'),
    },
  });
}

/** Made when first asked for: what it needs would be a fifth of the time to start. */
export function openapi(version: string): RequestHandler {
  let document: ReturnType<typeof describeApi> | null = null;
  return async (_req, res) => {
    document ??= describeApi(version);
    res.json(await document);
  };
}

/** The page itself answers at `/docs`; its assets are local files below `/docs/`. Loaded when first asked for. */
export function mountDocs(app: Express): void {
  let loaded: ReturnType<typeof loadDocs> | null = null;
  const docs = () => {
    loaded ??= loadDocs();
    return loaded;
  };
  // Swagger's page brings its styles inline.
  const headers = pageHeaders({ inlineStyles: true });
  app.get('/docs', headers, async (_req, res) => {
    res.type('html').send((await docs()).page);
  });
  app.use('/docs', headers, async (req, res, next) => {
    (await docs()).assets(req, res, next);
  });
}

async function loadDocs(): Promise<{ page: string; assets: RequestHandler }> {
  const { default: swaggerUi } = await import('swagger-ui-express');
  const options = { swaggerOptions: { url: '/openapi.json', validatorUrl: null } };
  const page = swaggerUi.generateHTML(undefined, options).replaceAll('"./', '"/docs/');
  return { page, assets: Router().use(...swaggerUi.serveFiles(undefined, options)) };
}
