/** docs/limits.md lists every budget with its value, with what the gateway answers, and with a test that exists. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';
import { ERROR_CODES, ERRORS } from '../../src/errors.ts';
import { BUDGETS } from '../../src/limits/budgets.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

const rows = read('docs/limits.md')
  .split('\n')
  .flatMap((line) => {
    const [, name, value = '', pointer = ''] =
      /^\| `([\w.]+)` +\| ([^|]+?) +\|[^|]+\| `([^`]+)` +\|$/.exec(line) ?? [];
    return name === undefined ? [] : [{ name, value, pointer }];
  });

const isNative = (name: string) => /\.k(Max|Min)/.test(name);

/** The value of a limit as the document writes it: milliseconds in seconds, bytes in the largest whole unit. */
function written(name: string, value: number): string {
  if (name.endsWith('Ms')) return `${value / 1000} s`;
  if (!/Bytes|fieldSize/.test(name)) return /[nN]ameSize$/.test(name) ? `${value} characters` : String(value);
  const power =
    [3, 2, 1].find((exponent) => value >= 1024 ** exponent && value % 1024 ** exponent === 0) ?? 0;
  return `${value / 1024 ** power} ${['bytes', 'KiB', 'MiB', 'GiB'][power]}`;
}

function leaves(limits: object, path: string[] = []): [name: string, value: number][] {
  return Object.entries(limits).flatMap(([key, value]) =>
    typeof value === 'object' ? leaves(value, [...path, key]) : [[[...path, key].join('.'), value]],
  );
}

interface NativeLimit {
  /** The file without its ending, a dot, and the constant; of a duration, `Ms` follows. */
  name: string;
  value: number;
}

/** The sources of the addon, without those of its tests and fuzzers. */
function nativeSources(): { path: string; text: string }[] {
  return readdirSync(join(ROOT, 'native'), { recursive: true })
    .map((path) => join('native', String(path)))
    .filter((path) => /\.(cpp|h)$/.test(path) && !/^native\/(test|fuzz)\//.test(path))
    .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));
}

/** The constants of the addon whose names begin with `kMax` or `kMin`. */
function nativeLimits(): NativeLimit[] {
  const sources = nativeSources();
  const all = sources.map(({ text }) => text).join('\n');
  const [, sampleRate = ''] = /constexpr int kSampleRate = (\d+);/.exec(all) ?? [];
  return sources.flatMap(({ path, text }) =>
    [...text.matchAll(/constexpr ([\w:]+)\s+(k(?:Max|Min)\w+)(?:\s*=\s*([^;]+)|\{(\d+)\});/g)].map(
      ([, type = '', name = '', assigned = '', braced = '']) => ({
        name: `${basename(path).replace(/\.\w+$/, '')}.${name}${type.endsWith('milliseconds') ? 'Ms' : ''}`,
        value: evaluated((assigned || braced).replaceAll('kSampleRate', sampleRate)),
      }),
    ),
  );
}

/** Computes an expression of whole numbers, such as `size_t{32} << 20`. BigInt shifts farther than 31 bits. */
function evaluated(expression: string): number {
  const plain = expression.replace(/\b(?:size_t|uint64_t)\{(\d+)\}/g, '$1');
  return Number(runInNewContext(plain.replace(/\d+/g, '$&n')));
}

test('every budget stands in the document with its value, and no other does', () => {
  const inCode = leaves(BUDGETS).map(([name, value]) => `${name}: ${written(name, value)}`);
  const inDocument = rows.filter(({ name }) => name.includes('.') && !isNative(name));
  assert.deepEqual(inDocument.map(({ name, value }) => `${name}: ${value}`).toSorted(), inCode.toSorted());
});

test('every limit of the addon stands in the document with its value, and no other does', () => {
  const inCode = nativeLimits().map(({ name, value }) => `${name}: ${written(name, value)}`);
  const inDocument = rows.filter(({ name }) => isNative(name));
  assert.deepEqual(inDocument.map(({ name, value }) => `${name}: ${value}`).toSorted(), inCode.toSorted());
});

test('no reader of the addon compares what it reads with a number that has no name', () => {
  const bare = /\brequire\([^;]*?(?:[<>]=? ?\d\d|within\([^)]*\d\d)/g;
  for (const { path, text } of nativeSources()) assert.deepEqual(text.match(bare), null, path);
});

test('every setting that limits something has its default in the document', () => {
  const documented = read('docs/configuration.md');
  const settings = rows.filter(({ name }) => name.startsWith('SVC_'));
  assert(settings.length > 2);
  for (const { name, value } of settings) {
    const [, fallback] =
      new RegExp(`^\\| \`${name}\` +\\| \`?([^|\`]*?)\`? +\\|`, 'm').exec(documented) ?? [];
    assert.equal(value, fallback, `${name} in docs/configuration.md`);
  }
  for (const [name] of documented.match(/\bSVC_MAX_\w+/g)?.map((found) => [found]) ?? [])
    assert(
      settings.some((row) => row.name === name),
      `${name} is not in docs/limits.md`,
    );
});

test('every test that the document names exists', () => {
  assert(rows.length > 20, `only ${rows.length} rows were found`);
  const lost = rows.filter(
    ({ pointer }) => ![`test/${pointer}.test.ts`, pointer].some((path) => existsSync(join(ROOT, path))),
  );
  assert.deepEqual(lost, []);
});

test('every error that the documents name has the status that the gateway answers', () => {
  const answers = new Set(ERROR_CODES.map((code) => `${ERRORS[code].status} \`${code}\``));
  const documents = read('docs/limits.md') + read('docs/reliability.md');
  const named = documents.match(/\b[1-5]\d\d `\w+`/g) ?? [];
  assert(named.length > 20, `only ${named.length} were found`);
  assert.deepEqual(
    named.filter((answer) => !answers.has(answer)),
    [],
  );
});
