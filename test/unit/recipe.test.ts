/** The reader of recipes knows what a block means, and skips and guesses nothing. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { applyDiff, parseRecipe } from '../recipes/recipe.ts';

const block = (info: string, text = 'x') => `Words.\n\n\`\`\`${info}\n${text}\n\`\`\`\n`;

test('blocks become steps in the order in which they stand', () => {
  const markdown = [
    block('ts file=src/new.ts'),
    block('diff file=docs/api.md', '+x'),
    block('sh fails=404 !== 200'),
    block('sh serve', 'npm start'),
    block('sh'),
    block('text answer', '{}'),
  ].join('\n');
  assert.deepEqual(parseRecipe(markdown), [
    { line: 3, does: 'create', path: 'src/new.ts', text: 'x\n' },
    { line: 9, does: 'change', path: 'docs/api.md', text: '+x\n' },
    { line: 15, does: 'run', command: 'x\n', fails: '404 !== 200', answer: null },
    { line: 21, does: 'serve', command: 'npm start\n' },
    { line: 27, does: 'run', command: 'x\n', fails: null, answer: '{}\n' },
  ]);
});

for (const [what, markdown] of [
  ['code without a place', block('ts')],
  ['a block without a kind', block('')],
  ['a misspelled use', block('sh fail=404')],
  ['a failure without its reason', block('sh fails')],
  ['an answer to nothing', block('text answer')],
  ['an answer to an edit', block('ts file=a.ts') + block('text answer')],
  ['a block without an end', '```sh\nx\n'],
] as const) {
  test(`${what} is refused with its line`, () => assert.throws(() => parseRecipe(markdown), /line \d/));
}

const table = '| `A`    | first  |\n| `B`    | second |\n';

test('a change is found by its context in any padding, and leaves the rest as it was', () => {
  assert.equal(
    applyDiff(table, ' | `A` | first |\n+| `C` | new |\n'),
    `| \`A\`    | first  |
| \`C\` | new |
| \`B\`    | second |
`,
  );
});

test('a change may replace lines and have several places', () => {
  assert.equal(applyDiff('a\nb\nc\nd\n', '-a\n+A\n b\n@@ further down\n c\n-d\n+D\n'), 'A\nb\nc\nD\n');
});

for (const [what, source, diff] of [
  ['is not there', 'a\nb\n', ' c\n+d\n'],
  ['is there twice', 'a\na\n', ' a\n+d\n'],
  ['is empty', 'a\n', '+d\n'],
  ['runs past the end', 'a', ' a\n \n \n+d\n'],
] as const) {
  test(`a change is refused when its context ${what}`, () => assert.throws(() => applyDiff(source, diff)));
}

// check:deep follows every recipe; that a change still finds its place, and an import its file, is known without that.
const ROOT = new URL('../../', import.meta.url).pathname;
for (const name of readdirSync(`${ROOT}docs/recipes`).filter((entry) => entry.endsWith('.md'))) {
  test(`the changes of docs/recipes/${name} find their places, and their imports the files`, () => {
    const files = new Map<string, string>();
    for (const step of parseRecipe(readFileSync(`${ROOT}docs/recipes/${name}`, 'utf8'))) {
      if (step.does === 'create') files.set(step.path, step.text);
      if (step.does !== 'change') continue;
      const source = files.get(step.path) ?? readFileSync(ROOT + step.path, 'utf8');
      files.set(step.path, applyDiff(source, step.text));
    }
    assert(files.size > 0);
    for (const [path, text] of files)
      for (const [, imported = ''] of text.matchAll(/ from '(\.[^']+)';/g)) {
        const file = join(dirname(path), imported);
        assert(files.has(file) || existsSync(ROOT + file), `${path} imports ${file}, which is not there`);
      }
  });
}
