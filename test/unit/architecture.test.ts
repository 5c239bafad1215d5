/** These tests hold the house rules of docs/architecture.md. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import type { Node } from 'oxc-parser';
import { CATALOGUE } from '../../src/models/catalogue.ts';
import { recognizerOf } from '../../src/transcription/recognizer.ts';
import { nodesOf, parsed } from '../syntax-tree.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const SRC = join(ROOT, 'src');
const files = readdirSync(SRC, { recursive: true })
  .map(String)
  .filter((path) => path.endsWith('.ts'));

/** Reads the rows of the table of rooms, from the top of the house down; the last row is the ground. */
const rows = [
  ...readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8').matchAll(
    /^\| (`src\/[^|]*?) *\|[^|]*\| ([^|]*?) *\|$/gm,
  ),
].map(([, rooms = '', mayImport = '']) => ({
  rooms: [...rooms.matchAll(/`(?:src\/)?([^`]+?)\/?`/g)].map(([, room = '']) => room),
  mayImport,
}));
const ground = rows.at(-1)?.rooms ?? [];

/** Lists the rooms whose files this room may import, the ground included. */
function reachOf(room: string): string[] {
  const floor = rows.findIndex(({ rooms }) => rooms.includes(room));
  const { rooms, mayImport } = rows[floor] ?? { rooms: [], mayImport: 'nothing' };
  if (ground.includes(room)) return [room];
  if (mayImport === 'everything below') return rows.slice(floor).flatMap((row) => row.rooms);
  return [...rooms, ...ground, ...(mayImport === 'nothing' ? [] : mayImport.split(', '))];
}

/** The rooms of one row, which are one for what is made where. */
const sameRow = (room: string) => rows.find(({ rooms }) => rooms.includes(room))?.rooms ?? [];

const roomOf = (path: string) => path.split('/')[0] ?? path;

/** Lists what a file imports in any way: by name, for its effect, as a type, by re-export, or at run time. */
function importsOf(path: string): { target: string; typeOnly: boolean; late: boolean }[] {
  const found: { target: string; typeOnly: boolean; late: boolean }[] = [];
  const add = (target: Node | null, typeOnly: boolean, late = false) => {
    if (target?.type === 'Literal') found.push({ target: String(target.value), typeOnly, late });
  };
  for (const node of nodesOf(parsed(path, readFileSync(join(SRC, path), 'utf8')))) {
    if (node.type === 'ImportDeclaration') add(node.source, node.importKind === 'type');
    if (node.type === 'ExportNamedDeclaration' || node.type === 'ExportAllDeclaration')
      add(node.source, node.exportKind === 'type');
    if (node.type === 'TSImportType') add(node.source, true);
    if (node.type === 'ImportExpression') add(node.source, false, true);
  }
  return found;
}

test('every file is in a room of the table, and every room of the table is there', () => {
  const found = [...new Set(files.map(roomOf))].sort();
  assert.deepEqual(rows.flatMap(({ rooms }) => rooms).sort(), found);
  for (const room of found)
    for (const other of reachOf(room))
      assert(found.includes(other), `${room} may import ${other}, which is no room`);
});

test('a room imports what the table allows it', () => {
  for (const path of files) {
    const reach = reachOf(roomOf(path));
    for (const { target, typeOnly } of importsOf(path)) {
      if (!target.startsWith('.')) continue;
      const other = roomOf(normalize(join(dirname(path), target)));
      if (other === 'config' && typeOnly) continue; // settings are handed down, and their types may be named
      assert(reach.includes(other), `${path} imports ${target}: the table does not allow it`);
    }
  }
});

test('the domain is pure: it uses no Express, no file system and no process', () => {
  for (const path of files.filter((p) => roomOf(p) === 'transcription')) {
    for (const { target } of importsOf(path)) {
      assert(
        !/^(express|multer|node:(fs|http|child_process|net|os|process))/.test(target),
        `${path} imports ${target}`,
      );
    }
  }
});

test('Express is used only in http/, live/, admin/, proxy/ and app.ts', () => {
  for (const path of files) {
    if (['http', 'live', 'admin', 'proxy', 'app.ts'].includes(roomOf(path))) continue;
    for (const { target } of importsOf(path)) assert.notEqual(target, 'express', path);
  }
});

/** Gives the code of a file without its comments, and without quoted text when `quotes` is false. */
function codeOf(path: string, { quotes = true } = {}): string {
  const code = readFileSync(join(SRC, path), 'utf8').replace(/\/\*[\s\S]*?\*\/|(?<![:'"`])\/\/.*/g, '');
  return quotes ? code : code.replace(/'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`/g, "''");
}

test('no imports go in a circle', () => {
  const targets = new Map(
    files.map((path) => [
      path,
      importsOf(path)
        .filter(({ target }) => target.startsWith('.'))
        .map(({ target }) => normalize(join(dirname(path), target))),
    ]),
  );
  const done = new Set<string>();
  const visit = (path: string, way: string[]): void => {
    assert(!way.includes(path), `a circle: ${[...way.slice(way.indexOf(path)), path].join(' -> ')}`);
    if (done.has(path)) return;
    for (const target of targets.get(path) ?? []) visit(target, [...way, path]);
    done.add(path);
  };
  for (const path of files) visit(path, []);
});

/** Lists what is loaded with these files: files, and packages by their names. */
function loadedWith(seeds: string[]): { files: string[]; packages: string[] } {
  const found = new Set<string>();
  const packages = new Set<string>();
  const visit = (path: string): void => {
    if (found.has(path)) return;
    found.add(path);
    for (const { target } of importsOf(path).filter(({ typeOnly, late }) => !typeOnly && !late))
      if (target.startsWith('.')) visit(normalize(join(dirname(path), target)));
      else if (!target.startsWith('node:')) packages.add(target);
  };
  for (const seed of seeds) visit(seed);
  return { files: [...found], packages: [...packages].sort() };
}

test('the command transcribe loads little besides what transcribes, because its user waits meanwhile', () => {
  const command = ['transcribe', 'model-settings', 'transcriber', 'open-engine', 'answering'];
  const loaded = loadedWith(['main.ts', ...command.map((name) => `cli/${name}.ts`)]);
  assert.deepEqual(loaded.packages, [
    'commander',
    'fastest-levenshtein',
    'p-map',
    'proxy-from-env',
    'winston',
    'zod',
  ]);
  const ofServers = /^(app\.ts|admin|live|capture|proxy|conversation|models\/import|http\/routes\.ts)/;
  assert.deepEqual(
    loaded.files.filter((path) => ofServers.test(path)),
    [],
  );
  const program = loadedWith(['main.ts']);
  assert.deepEqual(
    program.files.filter((path) => /^cli\/(?!program)/.test(path)),
    [],
  );
});

test('only engine/addon.ts loads the addon', () => {
  for (const path of files.filter((path) => path !== 'engine/addon.ts'))
    assert(!/\.node['"`]/.test(codeOf(path)), `${path} names a .node file`);
});

test('only config.ts reads the environment, and addon.ts sets the part that the OpenMP runtime reads', () => {
  for (const path of files.filter((path) => path !== 'config/config.ts')) {
    const code =
      path === 'engine/addon.ts'
        ? codeOf(path).replace(/process\.env\.(OMP_WAIT_POLICY|GOMP_SPINCOUNT)\b/g, '')
        : codeOf(path);
    assert(!/process\.env|\bdotenv\b/.test(code), `${path} reads the environment`);
  }
});

test('parts are constructed in their own room, in app.ts, in model-caches.ts and in cli/, but for limits', () => {
  for (const path of files.filter((path) => !['app.ts', 'model-caches.ts', 'cli'].includes(roomOf(path)))) {
    const source = readFileSync(join(SRC, path), 'utf8');
    for (const [, names = '', target = ''] of source.matchAll(
      /import (?!type)[^{;]*\{([^}]*)\} from '(\.[^']+)'/g,
    )) {
      const room = roomOf(normalize(join(dirname(path), target)));
      if (room === 'limits' || sameRow(room).includes(roomOf(path))) continue;
      const made = names.split(',').filter((name) => /^\s*create[A-Z]/.test(name));
      assert.deepEqual(made, [], `${path} constructs what belongs to ${room}`);
    }
  }
});

/** Names of the wire and of file formats (snake_case) belong here, where others read or send them. */
const WIRE =
  /^(http|live|wire|admin|observability|capture|crashes|models)\/|^conversation\/upstreams\/|^proxy\/inventory\.ts$|^(errors|index)\.ts$|^cli\/(live-(client|text)|models-check|transcribe-fields)\.ts$/;

test('wire names stay where something enters or leaves the process', () => {
  for (const path of files.filter((path) => !WIRE.test(path))) {
    const names = codeOf(path, { quotes: false }).match(/\b[a-z][a-z0-9]*(_[a-z0-9]+)+\b/g) ?? [];
    assert.deepEqual([...new Set(names)], [], `${path} uses wire names`);
  }
});

test('every family of the catalogue has a recognizer of its name, and no other file poses as one', async () => {
  const families = [...new Set(CATALOGUE.map(({ family }) => family))].sort();
  for (const family of families) {
    const recognizer = await recognizerOf(family);
    assert.equal(typeof recognizer.recognize, 'function', family);
  }
  const named = files
    .filter((path) => /^transcription\/\w+\/recognizer\.ts$/.test(path))
    .map((path) => basename(dirname(path)));
  assert.deepEqual(named.sort(), families);
});

test('no AbortSignal.timeout is held by an AbortSignal.any alone, because Node frees it and it never fires', () => {
  for (const path of files)
    assert.doesNotMatch(codeOf(path), /AbortSignal\.any\([^;]*AbortSignal\.timeout/, path);
});

test('every file begins with a comment that says what it is for', () => {
  for (const path of files) {
    const source = readFileSync(join(SRC, path), 'utf8').replace(/^#!.*\n/, '');
    assert(source.startsWith('/**'), `${path} has no comment before its imports`);
  }
});
