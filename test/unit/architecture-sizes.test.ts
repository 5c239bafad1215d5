/**
 * A function that does not fit a screen is two: none has more than 80 lines. A file is one subject: one of fewer than 40
 * lines with a single importer is a part of that file, unless there is a reason, which is listed here.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { test } from 'node:test';
import type { Node } from 'oxc-parser';
import { childrenOf, nodesOf, parsed } from '../syntax-tree.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const LONGEST_FUNCTION = 80;
const SMALL_FILE = 40;

/** Small files with one importer, by their names, each with the reason to be a file of its own. */
const SMALL: Readonly<Record<string, string>> = {
  'build.ts': 'a command is a file',
  'diarization-gguf.ts': 'loaded only by the recipe that needs it',
  'health.ts': 'a path is a file',
  'hallucination.ts': 'thresholds with the measurements that chose them',
  'keywords.ts': 'a rule of the domain by itself, with tests of its own',
  'missing-engine.ts': 'an engine is a file',
  'open-models.ts': 'it loads the addon, which the command models does without in its tests',
  'replay.ts': 'a command is a file',
  'systemd.ts': 'the protocol of another program',
  'whisper-formats.ts': 'the formats of another program',
};

const trees = new Map(
  ['src', 'bench', 'scripts'].flatMap(filesOf(/\.(ts|mjs)$/)).map((path) => {
    const text = readFileSync(join(ROOT, path), 'utf8');
    return [path, { text, program: parsed(path, text) }];
  }),
);

test('no function has more than 80 lines', () => {
  const found = [
    ...[...trees].flatMap(([path, { text, program }]) => scriptFunctions(path, text, program)),
    ...filesOf(/\.(cpp|h)$/)('native').flatMap(nativeFunctions),
  ];
  assert(found.length > 4000, `only ${found.length} functions were found`);
  const long = found.filter(({ lines }) => lines > LONGEST_FUNCTION);
  assert.deepEqual(long, [], 'take these apart along their subjects');
});

test('a small file with one importer has a reason to be a file', () => {
  const importers = new Map<string, Set<string>>();
  const sources = [...trees].filter(([path]) => path.startsWith('src/'));
  for (const [path, { program }] of sources)
    for (const target of importsOf(path, program))
      importers.set(target, (importers.get(target) ?? new Set()).add(path));
  const small = sources
    .filter(([path, { text }]) => linesOf(text) < SMALL_FILE && importers.get(path)?.size === 1)
    .map(([path]) => path);
  const unlisted = small.filter((path) => !SMALL[basename(path)]);
  assert.deepEqual(unlisted, [], 'move these into the file that imports them');
  const names = small.map((path) => basename(path));
  const others = Object.keys(SMALL).filter((name) => !names.includes(name));
  assert.deepEqual(others, [], 'these are gone, larger or shared now: take them from the list SMALL');
});

interface Found {
  path: string;
  name: string;
  lines: number;
}

function filesOf(pattern: RegExp): (dir: string) => string[] {
  return (dir) =>
    readdirSync(join(ROOT, dir), { recursive: true })
      .map((name) => join(dir, String(name)))
      .filter((path) => pattern.test(path));
}

function linesOf(text: string): number {
  return text.trimEnd().split('\n').length;
}

/** A function without a name is known by that of what it is given to, else by the function around it. */
function scriptFunctions(path: string, text: string, program: Node): Found[] {
  const found: Found[] = [];
  const visit = (node: Node, given: string | undefined, around: string) => {
    const name = nameOf(node) ?? given;
    const isFunction = /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(node.type);
    if (isFunction)
      found.push({ path, name: name ?? `in ${around}`, lines: linesOf(text.slice(node.start, node.end)) });
    const inside = isFunction ? (name ?? around) : around;
    for (const child of childrenOf(node)) visit(child, isFunction ? undefined : nameOf(node), inside);
  };
  visit(program, undefined, 'the file');
  return found;
}

/** The name that a declaration, a variable, a property or a method gives. */
function nameOf(node: Node): string | undefined {
  const { id, key } = node as { id?: { name?: string } | null; key?: { name?: string } };
  return id?.name ?? key?.name;
}

/**
 * Functions of C++, by their braces. A block outside of any function that follows parentheses is one, if it is no value
 * of a variable. What is in it, such as a lambda, belongs to it.
 */
function nativeFunctions(path: string): Found[] {
  const code = withoutText(readFileSync(join(ROOT, path), 'utf8'));
  const found: Found[] = [];
  let depth = 0;
  let begin = 0;
  let current: { name: string; start: number; depth: number } | undefined;
  for (const { 0: mark, index } of code.matchAll(/[{};]/g)) {
    const head = code.slice(begin, index).trim();
    if (mark === '}') depth -= 1;
    if (mark === '{' && current === undefined && isNativeFunction(head)) {
      const [, name = head] = /([~\w:]+)\s*\(/.exec(head) ?? [];
      current = { name, start: index - code.slice(begin, index).trimStart().length, depth };
    }
    if (mark === '{') depth += 1;
    if (mark === '}' && current?.depth === depth) {
      found.push({ path, name: current.name, lines: linesOf(code.slice(current.start, index)) });
      current = undefined;
    }
    begin = index + 1;
  }
  assert.equal(depth, 0, `${path}: the braces do not match`);
  return found;
}

function isNativeFunction(head: string): boolean {
  return head.includes('(') && !/^(namespace|struct|class|enum|union|extern)\b|=\s*\w*$/.test(head);
}

/** Blanks what may hold a brace that is none: comments, quoted text, and lines of the preprocessor. */
function withoutText(code: string): string {
  const blank = (text: string) => text.replace(/[^\n]/g, ' ');
  return code
    .replace(/R"(\w*)\([\s\S]*?\)\1"/g, blank)
    .replace(/\/\/.*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])'/g, blank)
    .replace(/^[ \t]*#(?:.*\\\n)*.*/gm, blank);
}

function importsOf(path: string, program: Node): string[] {
  return nodesOf(program).flatMap((node) => {
    const { source } = node as { source?: { value?: unknown } | null };
    const target = String(source?.value ?? '');
    return target.startsWith('.') ? [normalize(join(dirname(path), target))] : [];
  });
}
