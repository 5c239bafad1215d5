/** The pages of the API and docs/configuration.md fit the code: a name in one is in the other. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { withSettingsTables } from '../../scripts/cli-docs.ts';
import { ERROR_CODES, ERROR_KINDS, ERRORS, KINDS } from '../../src/errors.ts';
import * as api from '../../src/http/openapi/openapi.ts';
import { CATALOGUE, PROVIDERS } from '../../src/models/catalogue.ts';
import { NAME_GROUPS } from '../../src/models/names.ts';
import { MODEL_IDS, resolveName } from '../../src/transcription/routing.ts';
import { transcriptionFields } from '../../src/wire/request.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const apiDoc = ['api', 'transcription', 'realtime', 'observing', 'errors']
  .map((page) => read(`docs/${page}.md`))
  .join('\n');

/** Lists the names in backticks in one column of the first table after `heading`. */
function column(doc: string, heading: string, index = 0): string[] {
  const at = doc.indexOf(heading);
  assert(at >= 0, `no "${heading}"`);
  const lines = doc.slice(at + heading.length).split('\n');
  const first = lines.findIndex((line) => line.startsWith('|'));
  const rest = lines.slice(first + 2);
  const rows = rest.slice(
    0,
    rest.findIndex((line) => !line.startsWith('|')),
  );
  return rows.flatMap((row) =>
    [...(row.split('|')[index + 1] ?? '').matchAll(/`([\w.]+)`/g)].map((m) => m[1] ?? ''),
  );
}

const same = (documented: string[], coded: string[]) =>
  assert.deepEqual([...documented].sort(), [...coded].sort());

test('the docs have the request fields of the schema', () => {
  same(column(apiDoc, '## POST /v1/audio/transcriptions'), ['file', ...Object.keys(transcriptionFields)]);
});

test('the docs have the fields of verbose_json, segments, events and models', () => {
  same(column(apiDoc, '`verbose_json`:\n'), Object.keys(api.verboseSchema.shape));
  same(column(apiDoc, 'A segment:\n'), Object.keys(api.segmentSchema.shape));
  same(column(apiDoc, '## GET /v1/models'), Object.keys(api.modelsListSchema.shape.data.element.shape));
  const events = [api.deltaSchema, api.diarizedSegmentSchema, api.doneSchema, api.warningSchema];
  same(column(apiDoc, '### Streams'), [...events.map((e) => e.shape.type.value), 'error']);
  for (const event of events) {
    const row = apiDoc.split('\n').find((line) => line.startsWith(`| \`${event.shape.type.value}\``)) ?? '';
    for (const field of Object.keys(event.shape))
      assert(field === 'type' || row.includes(`\`${field}\``), field);
  }
});

test('the docs have the error kinds with their statuses', () => {
  for (const [doc, heading] of [
    [apiDoc, 'are OpenAI'],
    [read('docs/contract.md'), '## 7. Errors'],
  ] as const) {
    same(column(doc, heading), ERROR_KINDS);
    for (const kind of ERROR_KINDS) {
      assert.match(doc, new RegExp(`\\| \`${kind}\`\\s+\\| ${KINDS[kind].status}\\s+\\|`));
    }
  }
});

test('every error code stands in the docs with its kind, status and message, and no other does', () => {
  const rows = apiDoc
    .slice(apiDoc.indexOf('| Code '))
    .split('\n\n', 1)[0]
    ?.split('\n')
    .slice(2)
    .map((row) => row.split('|').map((cell) => cell.trim().replace(/^`|`$|\\(?=<)/g, '')));
  const documented = rows?.map(([, code, kind, status, says]) => [code, kind, Number(status), says]);
  const coded = ERROR_CODES.map((code) => {
    const { kind, status, says } = ERRORS[code];
    return [code, kind, status, says];
  });
  assert.deepEqual(documented, coded);
});

test('every error code is used, and only through the table', () => {
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true })
    .map(String)
    .filter((path) => path.endsWith('.ts') && path !== 'errors.ts')
    .map((path) => read(`src/${path}`))
    .join('\n');
  // One code has a function of its own in errors.ts.
  for (const code of ERROR_CODES.filter((code) => code !== 'invalid_value'))
    assert(sources.includes(`'${code}'`), `${code} is never used`);
  assert(sources.includes('invalidValue('));
  assert.doesNotMatch(sources, /\bkind: '(malformed|network|upstream)'/, 'a kind comes from its code');
});

test('the docs have the response headers and the providers', () => {
  for (const header of [
    'X-Request-ID',
    'X-Voxgate-Model',
    'X-Voxgate-Route',
    'Retry-After',
    'X-Should-Retry',
  ]) {
    assert(apiDoc.includes(header), header);
  }
  for (const provider of PROVIDERS)
    assert(apiDoc.includes(`\`${provider}\``), `the pages of the API have no provider ${provider}`);
});

test('the tables of settings are what `npm run docs:cli` makes of the schema', () => {
  const document = read('docs/configuration.md');
  const made = withSettingsTables(document);
  const changed = made.split('\n').filter((line) => !document.split('\n').includes(line));
  assert(document === made, `npm run docs:cli changes the lines\n${changed.join('\n')}`);
});

/** The cells of each row of the tables in docs/models.md. */
const modelRows = () =>
  read('docs/models.md')
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) => line.split('|').map((cell) => cell.trim()));
const codesIn = (cell = '') => [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);

test('the docs have every name that a model goes by, and what it means', () => {
  const ids = new Set(['auto', ...CATALOGUE.map(({ id }) => id)]);
  const documented = modelRows()
    .filter(([, , means = '']) => ids.has(means.slice(1, -1)))
    .flatMap(([, names, means = '']) => codesIn(names).map((name) => `${name} = ${means.slice(1, -1)}`));
  const bare = NAME_GROUPS.filter(({ names }) => names.includes('*'));
  const known = bare.flatMap(({ of }) => Object.entries(of).map(([name, { id }]) => `${name} = ${id}`));
  same(documented, known);
});

test('the docs have every way to write a name, and who writes it so', () => {
  const rows = modelRows().map(([, names, usedBy]) => `${codesIn(names)} ${usedBy}`);
  for (const { names, usedBy } of NAME_GROUPS)
    if (names.join() !== '*') assert(rows.includes(`${names} ${usedBy}`), `${names} ${usedBy}`);
});

test('every model that a guide names for transcription is one that the gateway knows', () => {
  const guides = read('docs/migration.md') + read('docs/clients.md');
  const places = [
    /\b(?:-F model|AUDIO_STT_MODEL|SVC_MODEL_ALIASES=[\w-]+)=([\w./-]+)/g,
    /\bmodel(?:=|: )["']([\w./-]+)["']/g,
    /\btranscription\('([\w./-]+)'\)/g,
    /`([\w./-]*(?:gpt|whisper|distil|turbo|tiny|base|small|medium|large|parakeet|SenseVoice)[\w./-]*)`/g,
  ];
  const named = places.flatMap((place) => [...guides.matchAll(place)].map(([, name = '']) => name));
  const heard = new Set(named.filter((name) => !/llama|^tts/.test(name)));
  assert(heard.size > 20, [...heard].join(' '));
  for (const name of heard) assert(MODEL_IDS.includes(resolveName(name, {}).id), name);
});
