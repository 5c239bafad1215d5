/** The tests of a folder of test/ need what docs/development.md says, and no more. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

const ROOT = new URL('../../', import.meta.url).pathname;

/** Lists the files of this repository that a file brings in when it runs; itself is the first. */
function reachedFrom(path: string, seen = new Set<string>()): Set<string> {
  if (seen.has(path)) return seen;
  seen.add(path);
  const source = readFileSync(join(ROOT, path), 'utf8');
  for (const [, types, target = ''] of source.matchAll(
    /(?:^|\n)\s*(?:import|export)\s+(type\s)?[^;]*?from\s+'(\.[^']+\.ts)'/g,
  ))
    if (types === undefined) reachedFrom(join(dirname(path), target), seen);
  return seen;
}

test('unit tests need neither the addon nor weights', () => {
  const files = readdirSync(join(ROOT, 'test/unit')).filter((name) => name.endsWith('.test.ts'));
  assert(files.length > 20);
  for (const name of files) {
    const reached = reachedFrom(join('test/unit', name));
    for (const forbidden of ['src/engine/addon.ts', 'test/model/gateway.ts'])
      assert(!reached.has(forbidden), `${name} reaches ${forbidden}: ${[...reached].join(', ')}`);
  }
  const native = reachedFrom('test/native/audio-open.test.ts');
  assert(native.has('src/engine/addon.ts'), 'a native test does reach it');
});

test('every test is written with `test`, imported by name, so that its title is a whole sentence', () => {
  const files = readdirSync(join(ROOT, 'test'), { recursive: true }).map(String);
  const isTest = (path: string) => path.endsWith('.test.ts') && !path.includes('node_modules');
  for (const name of files.filter(isTest)) {
    const source = readFileSync(join(ROOT, 'test', name), 'utf8');
    const [, imported = ''] = /^import (.*) from 'node:test';$/m.exec(source) ?? [];
    assert.doesNotMatch(imported, /\b(describe|it|suite)\b|^test\b/, name);
  }
});
