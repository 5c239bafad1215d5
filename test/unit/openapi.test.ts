/** The API's description fits the tables of routes: every route that is served is described, and no other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { adminPaths } from '../../src/admin/openapi.ts';
import { describeApi } from '../../src/http/openapi/docs.ts';
import { OPERATION_IDS, operationId } from '../../src/http/openapi/parts.ts';
import { livePaths } from '../../src/live/realtime/openapi.ts';
import { SERVED } from '../route-rows.ts';

/** These are known paths of the speech upstream, which the gateway passes on without a row of their own. */
const OF_THE_UPSTREAM = /^\/v1\/audio\/(speech|voices)/;

const document = await describeApi({ version: '1.2.3', adminPaths, livePaths });
const operations = Object.entries(document.paths ?? {}).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);
const described = new Set(operations.map(({ method, path }) => `${method} ${path}`));
const served = SERVED.map(({ method, template }) => `${method} ${template}`);

/** The names of the headers of an answer, which may be a reference. */
function headersOf(answer: unknown): string[] {
  const { $ref = '' } = Object(answer) as { $ref?: string };
  const shared = document.components?.responses?.[$ref.split('/').at(-1) ?? ''];
  return Object.keys(Object(shared ?? answer).headers ?? {});
}

test('every route of the tables is described', () => {
  assert(served.length > 25);
  for (const route of served) assert(described.has(route), route);
});

test('only routes that are served are described', () => {
  for (const { method, path } of operations) {
    if (!OF_THE_UPSTREAM.test(path)) assert(served.includes(`${method} ${path}`), `${method} ${path}`);
  }
});

test('every operation says what it is, which parameters its path has, and how it may refuse', () => {
  for (const { method, path, operation } of operations) {
    const where = `${method} ${path}`;
    assert(operation.summary && operation.tags?.length === 1, where);
    const inPath = (operation.parameters ?? []).filter((p: { in?: string }) => p.in === 'path');
    assert.deepEqual(
      inPath.map((p: { name?: string }) => p.name),
      [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
      where,
    );
    for (const status of ['400', '403', '405', '408', '417', '431', '500'])
      assert(operation.responses[status], `${where} ${status}`);
    const isOpen = operation.security?.length === 0;
    const readsKey = !isOpen || where === 'post /admin/session';
    assert.equal('401' in operation.responses, readsKey, `${where} 401`);
  }
});

test('a key goes where keys are asked for, and may be left out where none is set', () => {
  assert.deepEqual(document.security, [{}, { bearerAuth: [] }]);
  const scheme: unknown = document.components?.securitySchemes?.bearerAuth;
  const { type, scheme: name } = Object(scheme) as { type?: string; scheme?: string };
  assert.deepEqual([type, name], ['http', 'bearer']);
  const open = operations.filter(({ operation }) => operation.security !== undefined);
  assert.deepEqual(open.map(({ method, path }) => `${method} ${path}`).sort(), [
    'delete /admin/session',
    'get /admin',
    'get /health',
    'get /openapi.json',
    'get /ready',
    'post /admin/session',
  ]);
});

test('every operation has a name that no other has, and OpenAI’s operations have OpenAI’s names', () => {
  const ids = operations.map(({ operation }) => String(operation.operationId));
  for (const id of ids) assert.match(id, /^[a-z]+[A-Za-z0-9]+$/);
  assert.deepEqual([...new Set(ids)], ids);
  for (const operation of Object.keys(OPERATION_IDS)) assert(described.has(operation), operation);
  assert.equal(operationId('get', '/v1/slot/{id}'), 'getSlotById', 'one without a name in the table');
  const named = Object.fromEntries(operations.map(({ path, method }, i) => [`${method} ${path}`, ids[i]]));
  for (const [operation, id] of [
    ['get /v1/models', 'listModels'],
    ['get /v1/models/{id}', 'retrieveModel'],
    ['post /v1/audio/transcriptions', 'createTranscription'],
    ['post /v1/audio/translations', 'createTranslation'],
    ['post /v1/audio/speech', 'createSpeech'],
    ['post /v1/chat/completions', 'createChatCompletion'],
  ] as const)
    assert.equal(named[operation], id);
});

test('every request may carry an id, and every answer but the open WebSocket does', () => {
  const parameter = { $ref: '#/components/parameters/X-Request-ID' };
  for (const { method, path, operation } of operations) {
    const sent = (operation.parameters ?? []).filter(
      ({ $ref }: { $ref?: string }) => $ref === parameter.$ref,
    );
    assert.deepEqual(sent, [parameter], `${method} ${path}`);
    for (const [status, answer] of Object.entries(operation.responses)) {
      const where = `${method} ${path} ${status}`;
      if (where === 'get /v1/realtime default') continue;
      assert(headersOf(answer).includes('X-Request-ID'), where);
    }
  }
});

test('an answer is described with the headers that it may have', () => {
  const own = (path: string, method: 'get' | 'post', status: number | string) =>
    headersOf(document.paths?.[path]?.[method]?.responses?.[status])
      .filter((name) => name !== 'X-Request-ID')
      .sort();
  const recognized = ['OpenAI-Processing-Ms', 'Preference-Applied', 'X-Voxgate-Model', 'X-Voxgate-Route'];
  for (const path of [
    '/v1/audio/transcriptions',
    '/v1/audio/translations',
    '/v1/audio/alignments',
    '/asr',
    '/detect-language',
  ]) {
    assert.deepEqual(own(path, 'post', 200), recognized, path);
    assert.deepEqual(own(path, 'post', 503), ['Preference-Applied', 'Retry-After', 'X-Should-Retry'], path);
  }
  for (const [path, method, status, headers] of [
    ['/v1/chat/completions', 'post', 200, ['Preference-Applied']],
    ['/v1/chat/completions', 'post', 502, ['Preference-Applied', 'X-Should-Retry']],
    ['/v1/realtime', 'get', 503, ['X-Should-Retry']],
    ['/ready', 'get', 503, []],
    ['/v1/models', 'get', 200, []],
    ['/v1/models', 'get', 405, ['Allow']],
    ['/v1/models', 'get', 429, ['Retry-After']],
    ['/v1/models', 'get', 500, ['X-Should-Retry']],
  ] as const)
    assert.deepEqual(own(path, method, status), headers, `${method} ${path} ${status}`);
});

interface Media {
  schema: { properties?: Record<string, { type?: string; format?: string }>; required?: string[] };
  example?: Record<string, unknown>;
  encoding?: Record<string, object>;
}

/** Every body that an operation takes, by its content type. */
const bodies = operations.flatMap(({ method, path, operation }) => {
  const { content = {} } = Object(operation.requestBody) as { content?: Record<string, Media> };
  return Object.entries(content).map(([type, media]) => ({ where: `${method} ${path}`, type, media }));
});

test('every operation has an example of all that it must be given, except of files', () => {
  for (const { where, media } of bodies) {
    assert(media.example, `${where} has no example of its body`);
    const { properties = {}, required = [] } = media.schema;
    for (const name of required.filter((name) => properties[name]?.format !== 'binary'))
      assert(name in media.example, `${where} has no example of ${name}`);
    for (const name of Object.keys(media.example)) assert(name in properties, `${where} has no ${name}`);
  }
  for (const { method, path, operation } of operations) {
    for (const parameter of operation.parameters ?? []) {
      const { in: place, name, example } = parameter as { in?: string; name?: string; example?: string };
      if (place === 'path') assert(example, `${method} ${path} has no example of ${name}`);
    }
  }
});

test('what is passed on, captured or a WebSocket says what it needs', () => {
  for (const { method, path, operation } of operations) {
    const needs = /^Needs .+[^.]\.$/.test(operation.description ?? '');
    if (/^\/(v1\/(audio|chat|completions|embeddings|responses|realtime$)|admin\/captures)\b/.test(path))
      assert(needs, `${method} ${path}`);
  }
});

test('a field of a form is described by the type that is meant, and a list is sent as several fields', () => {
  const [transcription] = bodies.filter(({ where }) => where === 'post /v1/audio/transcriptions');
  assert(transcription);
  const { properties = {} } = transcription.media.schema;
  for (const [name, type] of [
    ['temperature', { type: 'number', minimum: 0, maximum: 1 }],
    ['num_speakers', { type: 'integer', minimum: 1, maximum: 20 }],
    ['stream', { type: 'boolean' }],
  ] as const) {
    const { description, ...described } = Object(properties[name]);
    assert(description);
    assert.deepEqual(described, type, name);
  }
  for (const { where, type, media } of bodies.filter(({ type }) => type !== 'application/json')) {
    const lists = Object.entries(media.schema.properties ?? {}).filter(([, field]) => field.type === 'array');
    const encoding = Object.fromEntries(lists.map(([name]) => [name, { style: 'form', explode: true }]));
    assert.deepEqual(media.encoding ?? {}, encoding, `${where} ${type}`);
    if (media === transcription.media) assert(lists.length >= 6);
  }
});

test('the groups have an order, in which recognition is first, and each says what it is', () => {
  const { tags = [] } = document;
  const used = new Set(operations.map(({ operation }) => operation.tags?.[0]));
  assert.deepEqual(new Set(tags.map(({ name }) => name)), used);
  assert.equal(tags[0]?.name, 'speech to text');
  for (const { name, description } of tags) assert(description, name);
});

test('a voice is registered with JSON or with a form that has its file', () => {
  const body = document.paths?.['/v1/audio/voices']?.post?.requestBody;
  assert(body !== undefined && 'content' in body);
  assert.deepEqual(Object.keys(body.content).sort(), ['application/json', 'multipart/form-data']);
  const { properties } = Object(body.content['multipart/form-data']?.schema);
  assert.equal(properties.audio_sample.format, 'binary');
});

test('every reference leads to a definition', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(
    ([, path = '']) => path,
  );
  assert(references.length > 100);
  for (const path of new Set(references)) {
    const target = path.split('/').reduce((part: unknown, name) => Object(part)[name], document);
    assert(target, path);
  }
});
