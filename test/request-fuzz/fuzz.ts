/**
 * Sends requests that were made by chance to the whole app over the scripted engine and an upstream that echoes. Every
 * answer must be one that is meant, and afterwards the gateway must be at rest and transcribe.
 */
import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { adminPaths } from '../../src/admin/openapi.ts';
import { describeApi } from '../../src/http/openapi/docs.ts';
import { errorEnvelopeSchema } from '../../src/http/openapi/openapi.ts';
import { livePaths } from '../../src/live/realtime/openapi.ts';
import { startHostileUpstream, wholeAnswer } from '../faults/hostile-upstream.ts';
import { form, type Gateway, json, post, startGateway, toneWav, until } from '../http/harness.ts';
import { createRandom } from '../soak/random.ts';
import { scriptedVoices } from '../voices.ts';
import { type MadeRequest, makeRequest, type Operation } from './requests.ts';
import type { Schema } from './values.ts';

/** Failures that the clients of this test bring about themselves: they work side by side, and stop each other. */
const MEANT = ['slot_busy', 'stopped_by_operator', 'overloaded'];
const CLIENTS = 2;
/** So many of the last requests may be replayed: captures reach the disk some time after the answer. */
const RECENT = 100;

export interface Counts {
  requests: number;
  /** How often each status was answered. */
  statuses: Record<string, number>;
}

interface Answer {
  status: number;
  id: string;
  type: string;
  body: Buffer;
}

type Described = Awaited<ReturnType<typeof describeApi>>;

export async function fuzzRequests(options: { requests: number; seed: number }): Promise<Counts> {
  const description = await describeApi({ version: '1', adminPaths, livePaths });
  const operations = operationsOf(description);
  assert(operations.some(({ path }) => path.startsWith('/admin/')) && operations.length > 40);
  const withBody = operations.filter(({ bodies }) => bodies.length > 0);
  const replays = operations.filter(({ path }) => path.endsWith('/replay'));
  const random = createRandom(options.seed);
  const speech = toneWav(0.3);
  await using upstream = await startHostileUpstream();
  upstream.behave(wholeAnswer('{}', '200 OK', { 'Content-Type': 'application/json' }));
  await using gateway = await startGateway({
    speakers: scriptedVoices(),
    env: {
      SVC_TTS_UPSTREAM_URL: upstream.url,
      SVC_LLM_BACKEND_URL: upstream.url,
      SVC_OBS_PAYLOAD_ENABLED: '1',
    },
  });
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  const statuses: Record<string, number> = {};
  const captured: string[] = [];
  const wrong: string[] = [];
  let left = options.requests;
  const client = async () => {
    while (left-- > 0 && wrong.length < 20) {
      if (left % 10 === 0) await switchCapturesOn(gateway); // chance switches them off
      const operation = random.pick(random.pick([operations, operations, withBody, withBody, replays]));
      const made = makeRequest(operation, { random, speech, captured });
      const answer = await send(gateway, made, agent);
      statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
      if (operation.path.startsWith('/v1/') && answer.status !== 503) captured.push(answer.id);
      captured.splice(0, captured.length - RECENT);
      const why = problem(made, answer, operation);
      if (why !== null)
        wrong.push(
          `${why}: ${made.method} ${made.target.slice(0, 200)} ${JSON.stringify(made.headers).slice(0, 300)} ${JSON.stringify(made.body.toString('latin1').slice(0, 300))}\n -> ${answer.status} ${answer.type} ${answer.body.toString().slice(0, 300)}`,
        );
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  agent.destroy();
  assert.deepEqual(wrong, []);
  await until(
    'everything is at rest',
    () => gateway.app.slot.status().holder === null && gateway.running() === 0,
  );
  assert.deepEqual(gateway.uploads(), []);
  assert.deepEqual(
    gateway.logged.filter((line) => line.includes('"level":"error"')),
    [],
  );
  const last = await post(gateway, form(toneWav(1), { model: 'multilingual-base', language: 'en' }));
  assert.equal((await json(last)).text, 'Hello there.');
  return { requests: options.requests, statuses };
}

async function switchCapturesOn({ base }: Gateway): Promise<void> {
  const body = new URLSearchParams({ key: 'payload', value: 'on' });
  await (await fetch(`${base}/admin/api/observability/toggle`, { method: 'POST', body })).text();
}

function operationsOf({ paths = {} }: Described): Operation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...{ method, path },
      bodies: Object.entries(operation.requestBody?.content ?? {}).map(([type, media]): [string, Schema] => [
        type,
        (media as { schema?: Schema }).schema ?? {},
      ]),
      answers: operation.responses,
      query: (operation.parameters ?? [])
        .filter((p: { in: string }) => p.in === 'query')
        .map((p: { name: string }) => p.name),
    })),
  );
}

/** What is wrong with an answer; null if nothing is. */
function problem(
  { method }: MadeRequest,
  { status, id, type, body }: Answer,
  { method: own, answers }: Operation,
): string | null {
  if (id === '') return 'no request id';
  // A target made by chance may be no path of the operation.
  const isDescribed =
    method !== own.toUpperCase() || status in answers || 'default' in answers || status === 404;
  if (status >= 400 && !isDescribed) return 'a failure that is not described';
  if (status >= 400) {
    if (!/^application\/json\b/.test(type)) return 'a failure that is no JSON';
    if (method === 'HEAD') return status < 500 || status === 503 ? null : 'a failure that is not meant';
    const { data } = errorEnvelopeSchema.safeParse(parsed(body));
    if (data === undefined) return 'a failure without the envelope';
    return status < 500 || MEANT.includes(String(data.error.code)) ? null : 'a failure that is not meant';
  }
  if (method !== own.toUpperCase()) return null;
  const described = answers[status];
  if (described === undefined)
    return status === 304 || status === 206 ? null : 'a status that is not described';
  const types = Object.keys(described.content ?? {});
  const fits =
    types.length === 0 ||
    'default' in answers ||
    types.some((wanted) => type.startsWith(wanted.replace('*', '')));
  if (!fits) return `not of the type ${types.join(' or ')}`;
  return type.startsWith('application/json') && parsed(body) === undefined ? 'no JSON, but said to be' : null;
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

async function send({ base }: Gateway, made: MadeRequest, agent: Agent): Promise<Answer> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    const { method, target, headers, body } = made;
    const options = {
      ...{ hostname, port, method, path: target, agent, signal: AbortSignal.timeout(20_000) },
      headers: { ...headers, 'Content-Length': body.length },
    };
    const req = request(options, async (res) => {
      const chunks: Buffer[] = [];
      for await (const chunk of res) chunks.push(chunk);
      resolve({
        status: res.statusCode ?? 0,
        id: String(res.headers['x-request-id'] ?? ''),
        type: res.headers['content-type'] ?? '',
        body: Buffer.concat(chunks),
      });
    });
    req.once('error', (error) => reject(new Error(`${method} ${target.slice(0, 300)}: ${error.message}`)));
    req.end(body);
  });
}
