/** The house rules of docs/architecture.md, held by a test. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';

const SRC = new URL('../../src/', import.meta.url).pathname;
const files = readdirSync(SRC, { recursive: true })
  .map(String)
  .filter((path) => path.endsWith('.ts'));

/** From the top down: a room may import its own floor's rooms listed with it, and any floor below. */
const FLOORS = [
  ['main.ts'],
  ['cli'],
  ['app.ts'],
  ['admin'],
  ['http'],
  ['transcription', 'proxy'],
  ['models', 'audio'],
  ['engine'],
  ['observability'],
];
const ANYONE = ['errors.ts', 'config.ts', 'category.ts', 'truthy.ts', 'process-alive.ts'];

const roomOf = (path: string) => path.split('/')[0] ?? path;
const floorOf = (room: string) => FLOORS.findIndex((floor) => floor.includes(room));

function importsOf(path: string): { target: string; typeOnly: boolean }[] {
  const source = readFileSync(join(SRC, path), 'utf8');
  return [...source.matchAll(/(?:^|\n)\s*(?:import|export)\s+(type\s)?[^;]*?from\s+'([^']+)'/g)].map((m) => ({
    target: m[2] ?? '',
    typeOnly: m[1] !== undefined,
  }));
}

test('every file is in a known room', () => {
  for (const path of files) {
    const room = roomOf(path);
    assert(ANYONE.includes(room) || floorOf(room) >= 0, `${path} is in no room of the house`);
  }
});

test('imports point down', () => {
  for (const path of files) {
    const room = roomOf(path);
    for (const { target, typeOnly } of importsOf(path)) {
      if (!target.startsWith('.')) continue;
      const other = roomOf(normalize(join(dirname(path), target)));
      if (other === room || ANYONE.includes(other)) continue;

      const down = floorOf(other) > floorOf(room);
      const neighbourType = floorOf(other) === floorOf(room) && typeOnly;
      assert(down || neighbourType, `${path} imports ${target}: that is not below it`);
    }
  }
});

test('the domain is pure: no Express, no file system, no process', () => {
  for (const path of files.filter((p) => roomOf(p) === 'transcription')) {
    for (const { target } of importsOf(path)) {
      assert(
        !/^(express|multer|node:(fs|http|child_process|net|os|process))/.test(target),
        `${path} imports ${target}`,
      );
    }
  }
});

test('Express is used only in http/, admin/, proxy/ and app.ts', () => {
  for (const path of files) {
    if (['http', 'admin', 'proxy', 'app.ts'].includes(roomOf(path))) continue;
    for (const { target } of importsOf(path)) assert.notEqual(target, 'express', path);
  }
});

test('only engine/addon.ts loads the addon, only config.ts reads settings from the environment', () => {
  for (const path of files) {
    const source = readFileSync(join(SRC, path), 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
    if (path !== 'engine/addon.ts') assert(!/\.node['"`]/.test(source), `${path} names a .node file`);
    if (path !== 'config.ts')
      assert(!/process\.env\.(SVC|HF)_|process\.env\[/.test(source), `${path} reads a setting`);
  }
});
