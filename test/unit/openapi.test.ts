/** The API's description fits the tables of routes: every route that is served is described, and no other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { adminPaths } from '../../src/admin/openapi.ts';
import { describeApi } from '../../src/http/docs.ts';
import { SERVED } from '../route-rows.ts';

/** These are known paths of the speech upstream, which the gateway passes on without a row of their own. */
const OF_THE_UPSTREAM = /^\/v1\/audio\/(speech|voices)/;

const document = await describeApi({ version: '1.2.3', adminPaths });
const operations = Object.entries(document.paths ?? {}).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
);
const described = new Set(operations.map(({ method, path }) => `${method} ${path}`));
const served = SERVED.map(({ method, template }) => `${method} ${template}`);

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
    assert.equal('401' in operation.responses, !isOpen, `${where} 401`);
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
