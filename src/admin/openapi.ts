/** Describes every path below `/admin` for OpenAPI. A test checks the metrics against `metricsSchema`. */
import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { CATEGORIES } from '../category.ts';
import {
  answer,
  bodyOf,
  json,
  NO_SUCH_RANGE,
  NOT_FOUND,
  type Operation,
  PRECONDITION,
  pathsOf,
  REPLAYING,
  UNSUPPORTED,
} from '../http/openapi/parts.ts';
import { TRAFFIC_CLASSES } from '../observability/exchange.ts';
import { TOGGLE_KEYS } from '../observability/toggles.ts';
import { SHOWN_REQUESTS } from './requests.ts';

const category = z.enum(CATEGORIES);
const count = z.int().min(0);
const figure = z.number().nullable().describe('null if nothing was measured');
const percentiles = z.looseObject({ p50: figure, p95: figure, p99: figure, max: figure });

const sampleSchema = z
  .looseObject({
    request_id: z.string(),
    at: z.iso.datetime().describe('arrival'),
    model: z.string().nullable(),
    status: z.int(),
    class: z.enum(TRAFFIC_CLASSES),
    latency_ms: z.number(),
    slot_wait_ms: z.number().nullable(),
    waited_ms: z.number().optional().describe('the wait that Prefer: wait asked for'),
    audio_sec: z.number().optional(),
    rtf: z.number().optional().describe('real-time factor'),
    speakers: z.int().optional().describe('how many speakers were found'),
    route: z.string().optional(),
    key: z.string().optional().describe('the name of the key, where it has one'),
    client_ip: z.string().optional(),
    code: z.string().optional().describe('of a failure'),
    message: z.string().optional().describe('of a failure, what the client was told, cut'),
    provider: z.string(),
  })
  .meta({ id: 'MetricsSample' });

const categorySchema = z
  .looseObject({
    total: count,
    counts: z.object(Object.fromEntries(TRAFFIC_CLASSES.map((name) => [name, count]))),
    error_rate: z.number().min(0).max(1),
    latency_ms: percentiles,
    slot_wait_ms: percentiles,
    audio_seconds: z.number(),
    rtf: z.looseObject({ p50: figure, p95: figure }),
    diarized: count.optional().describe('requests whose speakers were told apart'),
    window_truncated: z.literal(true).optional(),
    recent: z.array(sampleSchema).describe('the last 50, newest first'),
  })
  .meta({ id: 'MetricsCategorySnapshot' });

export const metricsSchema = z
  .looseObject({
    uptime_sec: z.number(),
    window_sec: z.int(),
    slot: z.looseObject({
      held: z.boolean(),
      holder: category.nullable(),
      held_for_ms: z.number(),
      waiting: z
        .array(
          z.looseObject({
            position: z.int().min(1),
            category,
            request_id: z.string(),
            waited_ms: z.number(),
          }),
        )
        .describe('requests with Prefer: wait, in the order in which they will be served'),
    }),
    categories: z.partialRecord(category, categorySchema),
  })
  .meta({ id: 'MetricsSnapshot' });

export const crashSchema = z
  .looseObject({
    at: z.iso.datetime().describe('when the end was seen'),
    pid: z.int(),
    uptime_sec: z.number(),
    exit_code: z.int().nullable(),
    signal: z.string().nullable(),
    message: z.string().describe('the stack of an exception; empty for other ends'),
    request_id: z.string().nullable().describe('of the request that held the slot'),
    lines: z.array(z.string()).describe('the last lines of the log'),
  })
  .meta({ id: 'Crash' });

const PAGE = { 200: answer('a page, or a part of one', 'text/html') };
const page = (summary: string, open = false): Operation => ({ summary, open, responses: PAGE });
const fragment = (summary: string): Operation => ({ ...page(summary), internal: true });

/** What an operation on a capture needs, and the id that its example names. */
const OF_CAPTURE = {
  needs:
    'a capture: switch `payload` on, and send a request with the header `X-Request-ID: my-request`, or take the id of its answer',
  examples: { requestId: 'my-request' },
};
const ofCapture = (summary: string, contentType: string): Operation => ({
  summary,
  ...OF_CAPTURE,
  responses: { 200: answer('what was captured', contentType), 404: NOT_FOUND },
});
const body = (summary: string, contentType = 'application/octet-stream'): Operation => {
  const operation = ofCapture(summary, contentType);
  return { ...operation, responses: { ...operation.responses, 412: PRECONDITION, 416: NO_SUCH_RANGE } };
};

/** Only some captures have one. */
const sound = (summary: string): Operation => ({ ...body(summary, 'audio/*'), internal: true });

/** JSON, and an HTML fragment for htmx (`HX-Request: true`). */
const either = (schema: z.ZodType) => ({
  description: 'JSON, or a fragment of HTML for htmx',
  content: { 'application/json': { schema }, 'text/html': { schema: z.string() } },
});
const ofModel = (summary: string, needs?: string) => ({
  summary,
  needs,
  examples: { id: 'multilingual-base' },
  responses: {
    200: either(z.looseObject({ id: z.string(), state: z.enum(['absent', 'loading', 'resident']) })),
    404: NOT_FOUND,
  },
});

const toggleForm = z.object({
  key: z.enum(TOGGLE_KEYS),
  value: z.string().describe('1, on, true, yes or y turn it on, anything else off'),
});

const stopForm = z.object({ request_id: z.string().optional().describe('stops only this request') });

/** The parts of the dashboard. */
const FRAGMENTS: Parameters<typeof pathsOf>[1] = {
  '/admin/fragments/state': { get: fragment('what is wrong now') },
  '/admin/fragments/summary': { get: fragment('the figures') },
  '/admin/fragments/slot': { get: fragment('the state of the slot') },
  '/admin/fragments/observability': { get: fragment('the switches') },
  '/admin/fragments/models': { get: fragment('the models') },
  '/admin/fragments/upstreams': { get: fragment('the state of the upstreams') },
  '/admin/fragments/log': { get: fragment('the last lines of the log') },
  '/admin/fragments/crashes': { get: fragment('the crashes') },
  '/admin/fragments/requests': {
    get: {
      ...fragment('the latest requests'),
      query: z.object({
        show: z.enum(SHOWN_REQUESTS).optional().describe('which kind of requests'),
        search: z.string().max(100).optional().describe('text to find in them'),
      }),
    },
  },
  '/admin/fragments/settings': {
    get: {
      ...fragment('the settings in effect'),
      query: z.object({ search: z.string().max(100).optional().describe('text to find in them') }),
    },
  },
};

export const adminPaths = (): ZodOpenApiPathsObject =>
  pathsOf('admin', {
    '/admin': { get: page('the dashboard', true) },
    '/admin/api/metrics': {
      get: {
        summary: 'traffic of the window, by category',
        responses: { 200: json('snapshot', metricsSchema) },
      },
    },
    '/admin/api/series': {
      get: {
        summary: 'the data of the charts',
        query: z.object({ only: z.enum(['rate']).optional().describe('leaves out the last hour') }),
        responses: { 200: json('series', z.looseObject({ now_sec: z.int(), rate: z.looseObject({}) })) },
      },
    },
    '/admin/api/crashes': {
      get: {
        summary: 'recorded crashes of the server, newest first',
        responses: { 200: json('crashes', z.looseObject({ crashes: z.array(crashSchema) })) },
      },
    },
    '/admin/api/observability/toggle': {
      post: {
        summary: 'switches metrics, access log or payload capture until the next restart',
        body: bodyOf('multipart/form-data', toggleForm, { key: 'metrics', value: 'on' }),
        responses: { ...PAGE, 415: UNSUPPORTED },
      },
    },
    '/admin/api/observability/clear-payload': { post: page('deletes every capture') },
    '/admin/api/reset-asr-state': {
      post: {
        summary: 'unloads every recognition model; requests in progress finish first',
        responses: { 200: either(z.looseObject({ evicted: count, remaining: count })) },
      },
    },
    '/admin/api/models/{id}/pull': {
      post: ofModel('starts to download the model', 'SVC_MODEL_DOWNLOAD, unless the weights are on disk'),
    },
    '/admin/api/models/{id}/load': {
      post: ofModel('starts to load the model into memory', 'its weights on disk'),
    },
    '/admin/api/models/{id}/unload': { post: ofModel('unloads the model') },
    '/admin/api/models/{id}/remove': {
      post: {
        ...ofModel('removes the weights of the model from disk'),
        responses: { ...ofModel('').responses, 415: UNSUPPORTED },
        internal: true,
        body: bodyOf('application/x-www-form-urlencoded', z.object({ sure: z.literal('yes') }), {
          sure: 'yes',
        }),
      },
    },
    '/admin/api/slot/stop': {
      post: {
        summary: 'stops the request that holds the slot',
        body: { ...bodyOf('application/x-www-form-urlencoded', stopForm, {}), required: false },
        responses: { 200: either(z.looseObject({ stopped: z.boolean() })), 415: UNSUPPORTED },
      },
    },
    ...FRAGMENTS,
    '/admin/captures/{requestId}': { get: ofCapture('a captured request', 'text/html') },
    '/admin/captures/{requestId}/req.bin': { get: body('the body of the request') },
    '/admin/captures/{requestId}/resp.bin': { get: body('the body of the answer') },
    '/admin/captures/{requestId}/req.sound': { get: sound('the sound in the request') },
    '/admin/captures/{requestId}/resp.sound': { get: sound('the sound in the answer') },
    '/admin/captures/{requestId}/replay': {
      post: {
        summary: 'sends the request again and compares the answers',
        ...OF_CAPTURE,
        responses: {
          200: either(z.looseObject({ same: z.boolean(), summary: z.string() })),
          404: NOT_FOUND,
          503: REPLAYING,
        },
      },
    },
  });
