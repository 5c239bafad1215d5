/** What the description says of headers holds for real answers, and the page that shows it is our own. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHostileUpstream, wholeAnswer } from '../faults/hostile-upstream.ts';
import {
  captureOne,
  form,
  type Gateway,
  heard,
  json,
  post,
  startGateway,
  toneWav,
  until,
  untilAborted,
} from './harness.ts';

interface Described {
  headers: Record<string, { $ref: string }>;
}

/** The headers of this operation's answer in the description, and whether every answer has them. */
async function headersOf(
  { base }: Gateway,
  operation: string,
  status: number,
): Promise<Record<string, boolean>> {
  const document = await json(await fetch(`${base}/openapi.json`));
  const [method = '', path = ''] = operation.split(' ');
  const at = ($ref: string) =>
    $ref
      .slice(2)
      .split('/')
      .reduce((part, name) => part[name], document);
  const answer = document.paths[path][method].responses[status];
  const { headers }: Described = answer.$ref === undefined ? answer : at(answer.$ref);
  return Object.fromEntries(
    Object.entries(headers).map(([name, { $ref }]) => [name, at($ref).required === true]),
  );
}

/** Asserts that the answer has the headers that none lacks, and of the others exactly these. */
async function assertDescribed(gateway: Gateway, response: Response, operation: string, others: string[]) {
  const described = await headersOf(gateway, operation, response.status);
  const where = `${operation} ${response.status}`;
  for (const name of others) assert.equal(described[name], false, `${where}: ${name} is described`);
  for (const [name, isRequired] of Object.entries(described))
    assert.equal(response.headers.has(name), isRequired || others.includes(name), `${where}: ${name}`);
  // None of the gateway's own headers is left out of the description.
  for (const name of [
    ...['x-request-id', 'x-voxgate-model', 'x-voxgate-route', 'openai-processing-ms', 'retry-after'],
    ...['x-should-retry', 'preference-applied', 'allow'],
  ]) {
    const isDescribed = Object.keys(described).some((other) => other.toLowerCase() === name);
    if (response.headers.has(name)) assert(isDescribed, `${where}: ${name} is not described`);
  }
}

test('the answers of recognition have the headers that are described', async () => {
  await using gateway = await startGateway({
    env: { SVC_MAX_WAIT_SEC: '5' },
    transcribe: async () => heard(' Hello there.'),
  });
  const clip = () => {
    const body = new FormData();
    body.set('audio_file', new Blob([new Uint8Array(toneWav(1))]), 'a.wav');
    return body;
  };
  for (const path of ['/v1/audio/transcriptions', '/v1/audio/translations', '/v1/audio/alignments']) {
    const fields = path.endsWith('alignments') ? { text: 'Hello there.' } : {};
    const body = form(toneWav(1), fields);
    const response = await fetch(gateway.base + path, { method: 'POST', body });
    assert.equal(response.status, 200, `${path} ${await response.clone().text()}`);
    await assertDescribed(gateway, response, `post ${path}`, ['OpenAI-Processing-Ms']);
  }
  for (const path of ['/asr', '/detect-language']) {
    const response = await fetch(gateway.base + path, {
      ...{ method: 'POST', body: clip(), headers: { Prefer: 'wait=2' } },
    });
    assert.equal(response.status, 200, `${path} ${await response.clone().text()}`);
    const others = ['OpenAI-Processing-Ms', 'Preference-Applied'];
    await assertDescribed(gateway, response, `post ${path}`, others);
  }
  const stream = await post(gateway, form(toneWav(1), { stream: 'true' }));
  await stream.text();
  await assertDescribed(gateway, stream, 'post /v1/audio/transcriptions', []);
});

test('the refusals have the headers that are described', async () => {
  const leave = new AbortController();
  await using gateway = await startGateway({
    env: { SVC_MAX_WAIT_SEC: '5', SVC_LLM_BACKEND_URL: 'http://127.0.0.1:1' },
    transcribe: untilAborted,
  });
  const first = post(gateway, form(toneWav(1)), { signal: leave.signal }).catch(() => undefined);
  await until('the first is running', () => gateway.running() === 1);
  const busy = await post(gateway, form(toneWav(1)));
  assert.equal(busy.status, 503);
  await assertDescribed(gateway, busy, 'post /v1/audio/transcriptions', ['Retry-After']);
  const headers = { Prefer: 'wait=1' };
  const waited = await post(gateway, form(toneWav(1)), { headers });
  assert.equal(waited.status, 503);
  const others = ['Retry-After', 'Preference-Applied'];
  await assertDescribed(gateway, waited, 'post /v1/audio/transcriptions', others);
  leave.abort();
  await first;
  await until('it has ended', () => gateway.running() === 0);

  const body = JSON.stringify({ model: 'x', messages: [] });
  const unreachable = await fetch(`${gateway.base}/v1/chat/completions`, { method: 'POST', body });
  assert.equal(unreachable.status, 503);
  await assertDescribed(gateway, unreachable, 'post /v1/chat/completions', ['X-Should-Retry']);
  const wrong = await fetch(`${gateway.base}/v1/models`, { method: 'DELETE' });
  assert.equal(wrong.status, 405);
  await assertDescribed(gateway, wrong, 'get /v1/models', ['Allow']);
  const plain = await fetch(`${gateway.base}/v1/realtime`);
  assert.equal(plain.status, 426);
  await assertDescribed(gateway, plain, 'get /v1/realtime', []);
});

test('what is passed on, and what an upstream fails to do, has the headers that are described', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({
    env: { SVC_MAX_WAIT_SEC: '5', SVC_TTS_UPSTREAM_URL: upstream.url },
  });
  const headers = { Prefer: 'wait=2' };
  const ask = () =>
    fetch(`${gateway.base}/v1/audio/speech`, { method: 'POST', body: '{"input":"a"}', headers });
  upstream.behave(wholeAnswer('sound', '200 OK', { 'Content-Type': 'audio/wav' }));
  await assertDescribed(gateway, await ask(), 'post /v1/audio/speech', ['Preference-Applied']);
  upstream.behave((socket) => socket.destroy());
  const failed = await ask();
  assert.equal(failed.status, 502);
  const others = ['Preference-Applied', 'X-Should-Retry'];
  await assertDescribed(gateway, failed, 'post /v1/audio/speech', others);
});

test('too many wrong keys, and a model that cannot be found, have the headers that are described', async () => {
  await using gateway = await startGateway({
    env: { SVC_API_KEY: 'k' },
    budgets: { access: { wrongKeys: 1 } },
  });
  const ask = (key: string) =>
    fetch(`${gateway.base}/v1/models/none`, { headers: { Authorization: `Bearer ${key}` } });
  await assertDescribed(gateway, await ask('k'), 'get /v1/models/{id}', []);
  await assertDescribed(gateway, await ask('wrong'), 'get /v1/models/{id}', []);
  const refused = await ask('another wrong one');
  assert.equal(refused.status, 429);
  await assertDescribed(gateway, refused, 'get /v1/models/{id}', ['Retry-After']);
});

/** The operations that no such request succeeds with, and their answers. */
const REFUSED = new Map([['get /v1/realtime', 426]]);
/** Runs last, because others need what it deletes. */
const LAST = 'post /admin/api/observability/clear-payload';

test('every operation answers a request with the example of its description, and with nothing but what it needs', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave(wholeAnswer('{"data": []}', '200 OK', { 'Content-Type': 'application/json' }));
  const { url } = upstream;
  await using gateway = await startGateway({
    env: { SVC_TTS_UPSTREAM_URL: url, SVC_LLM_BACKEND_URL: url, SVC_OBS_PAYLOAD_ENABLED: '1' },
  });
  await captureOne(gateway);
  const { paths } = await json(await fetch(`${gateway.base}/openapi.json`));
  const operations = Object.entries<any>(paths).flatMap(([path, methods]) =>
    Object.entries<any>(methods).map(([method, operation]) => ({ name: `${method} ${path}`, operation })),
  );
  operations.sort((a, b) => Number(a.name === LAST) - Number(b.name === LAST));
  const unexpected: string[] = [];
  for (const { name, operation } of operations.filter((one) => one.operation['x-internal'] !== true)) {
    const response = await fetch(...requestOf(gateway, name, operation));
    const body = await response.text();
    const isWell = response.status === (REFUSED.get(name) ?? 200) || response.status === 204;
    if (!isWell) unexpected.push(`${name}: ${response.status} ${body.slice(0, 200)}`);
  }
  assert(operations.length > 40, `${operations.length} operations`);
  assert.deepEqual(unexpected, []);
});

/** A request with the examples of what an operation requires: parameters, and the body in its first content type. */
function requestOf({ base }: Gateway, name: string, operation: any): [string, RequestInit] {
  const [verb = '', template = ''] = name.split(' ');
  const method = verb.toUpperCase();
  let path = template;
  const query = new URLSearchParams();
  for (const { in: place, name: key, required, example } of operation.parameters ?? []) {
    if (place === 'path') path = path.replace(`{${key}}`, encodeURIComponent(example));
    if (place === 'query' && required) query.set(key, example);
  }
  const url = `${base}${path}?${query}`;
  const [[type, media] = []] = Object.entries<any>(operation.requestBody?.content ?? {});
  if (type === undefined) return [url, { method }];
  const body = bodyOf(type, media);
  return [url, { method, body, ...(typeof body === 'string' && { headers: { 'Content-Type': type } }) }];
}

function bodyOf(type: string, { example, schema }: any): FormData | string | URLSearchParams {
  if (type === 'application/json') return JSON.stringify(example);
  const required: string[] = schema.required ?? [];
  const fields = Object.entries<string>(example ?? {}).filter(([key]) => required.includes(key));
  if (type === 'application/x-www-form-urlencoded') return new URLSearchParams(fields);
  const data = new FormData();
  for (const [key, value] of fields) data.append(key, value);
  for (const key of required.filter((key) => schema.properties[key]?.format === 'binary'))
    data.append(key, new Blob([new Uint8Array(toneWav(1))]), 'clip.wav');
  return data;
}

test('the page at /docs is voxgate’s, its policy allows nothing inline, and of Swagger UI only what it needs is served', async () => {
  await using gateway = await startGateway();
  const page = await fetch(`${gateway.base}/docs`);
  assert.match(await page.text(), /<title>API · voxgate<\/title>/);
  assert.doesNotMatch(page.headers.get('content-security-policy') ?? '', /unsafe/);
  for (const [path, status] of [
    ['/docs/swagger-ui.css', 200],
    ['/docs/swagger-ui-bundle.js', 200],
    ['/docs/index.html', 404],
    ['/docs/swagger-initializer.js', 404],
    ['/docs/swagger-ui-init.js', 404],
  ] as const)
    assert.equal((await fetch(gateway.base + path)).status, status, path);
});
