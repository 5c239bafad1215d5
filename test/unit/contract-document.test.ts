/** The contract fits the repository: every place that is cited exists, and every requirement names a test file. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const ROOT = new URL('../../', import.meta.url).pathname;
const CITING = ['src', 'native', 'test', 'docs', 'bench', 'scripts', 'README.md'];
const TEXT = /\.(ts|mjs|js|cpp|h|md|py|txt|cmake)$/;

interface Requirement {
  number: string;
  /** The number of the innermost heading above it. */
  section: string;
  /** The test that holds it, as `npm test --` takes it, or the path of a file. */
  pointer: string | undefined;
}

interface Contract {
  /** Maps a number to the names of its parts, in lower case; its own name is the first. */
  sections: Map<string, string[]>;
  requirements: Requirement[];
}

const isFile = (path: string) => statSync(join(ROOT, path), { throwIfNoEntry: false })?.isFile() ?? false;
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** A list item continues where a line is indented, and is one line here. */
function unwrapped(text: string): string[] {
  return text.replace(/\n {2,}(?![ -])/g, ' ').split('\n');
}

function parse(text: string): Contract {
  const sections = new Map<string, string[]>();
  const requirements: Requirement[] = [];
  let section = '';
  for (const line of unwrapped(text)) {
    const [, numbered, title = ''] = /^##+ (?:(\d+(?:\.\d+)*)\.? )?(.+)$/.exec(line) ?? [];
    if (numbered !== undefined) {
      assert(!sections.has(numbered), `section ${numbered} is there twice`);
      section = numbered;
    }
    if (title !== '') sections.set(section, [...(sections.get(section) ?? []), title.toLowerCase()]);
    const [, number] = /^- \*\*([\d.]+)\*\* /.exec(line) ?? [];
    const [, pointer] = / \(`([\w./-]+)`\)$/.exec(line) ?? [];
    if (number !== undefined) requirements.push({ number, section, pointer });
  }
  return { sections, requirements };
}

/** Section 4 has a page of its own. */
const withEndpoints = read('docs/contract.md').replace(
  /^## 4\. .*$/m,
  (heading) => `${heading}\n${read('docs/contract-endpoints.md')}`,
);
const contract = parse(withEndpoints);
const places = new Set([...contract.sections.keys(), ...contract.requirements.map(({ number }) => number)]);

/** Matches `contract 4.3`, `contract 2.3, 4.2`, `contract 4.3, segment rules` and `contract 3, "ASR model cache"`. */
const CITATION =
  /\bcontract (\d+(?:\.\d+)*(?:(?:,| and| to) \d+(?:\.\d+)*)*)(?:, (?:"([^"]+)"|([a-z ]+)\)))?/gi;

interface Citation {
  file: string;
  numbers: string[];
  /** The part of the section that is meant, when the citation names one. */
  part: string | undefined;
}

function citationsIn(file: string): Citation[] {
  // A comment may break the line in the middle of a citation.
  const text = read(file).replace(/\s*\n\s*(?:\*(?!\/)|\/\/|#)?\s*/g, ' ');
  return [...text.matchAll(CITATION)].map(([, numbers = '', quoted, bare]) => ({
    file,
    numbers: numbers.match(/[\d.]+/g) ?? [],
    part: (quoted ?? bare)?.toLowerCase(),
  }));
}

function filesBelow(path: string): string[] {
  if (TEXT.test(path)) return [path];
  const names = readdirSync(join(ROOT, path), { recursive: true }).map(String);
  return names
    .filter((name) => TEXT.test(name) && !name.includes('node_modules'))
    .map((name) => join(path, name));
}

test('every place of the contract that is cited exists', () => {
  const citations = CITING.flatMap(filesBelow).flatMap(citationsIn);
  assert(citations.length > 15, `only ${citations.length} citations were found`);
  const lost = citations.flatMap(({ file, numbers, part }) => {
    const unknown = numbers.filter((number) => !places.has(number));
    const parts = contract.sections.get(numbers.at(-1) ?? '') ?? [];
    const partIsUnknown = part !== undefined && !parts.includes(part);
    return [
      ...unknown.map((number) => `${file} cites contract ${number}`),
      ...(partIsUnknown ? [`${file} cites "${part}" of contract ${numbers.at(-1)}`] : []),
    ];
  });
  assert(lost.length === 0, lost.join('\n'));
});

test('rows of tests that are named after a section of the contract name one that exists', () => {
  const rows = read('test/http/contract.test.ts').matchAll(/(?:row: |test\()['`](\d+(?:\.\d+)*) /g);
  const numbered = [...rows].map(([, number = '']) => number);
  assert(numbered.length > 20, `only ${numbered.length} rows were found`);
  for (const number of numbered) assert(places.has(number), `test/http/contract.test.ts names ${number}`);
});

/** To drop a requirement is a decision, so it changes this number too. */
const REQUIREMENTS = 179;

test('every requirement is there, in order, and names a test that exists', () => {
  assert.equal(contract.requirements.length, REQUIREMENTS);
  const last = new Map<string, number>();
  for (const { number, section, pointer = '' } of contract.requirements) {
    const next = (last.get(section) ?? 0) + 1;
    assert.equal(number, `${section}.${next}`, `after ${section}.${next - 1}`);
    last.set(section, next);
    const files = [`test/${pointer}.test.ts`, `test/${pointer}`, pointer];
    assert(pointer !== '' && files.some(isFile), `${number} names no test that exists: ${pointer}`);
  }
  for (const section of contract.sections.keys()) {
    const isAlone = [...contract.sections.keys()].every((other) => !other.startsWith(`${section}.`));
    if (section !== '' && isAlone) assert(last.has(section), `section ${section} requires nothing`);
  }
});

test('sections are numbered in order', () => {
  const numbers = [...contract.sections.keys()].filter((number) => number !== '');
  const top = numbers.filter((number) => !number.includes('.'));
  assert.deepEqual(top, ['1', '2', '3', '4', '5', '6', '7', '8', '9']);
  const inOrder = numbers.toSorted((a, b) => Number(a) - Number(b));
  assert.deepEqual(numbers, inOrder);
  assert.deepEqual(
    numbers.filter((number) => number.includes('.')),
    ['2.1', '2.2', '2.3', '2.4', '2.5', '2.6', '4.1', '4.2', '4.3', '4.4', '4.5', '4.6'],
  );
});
