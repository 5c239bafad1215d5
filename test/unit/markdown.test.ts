/** Every file, name and command that a Markdown file links to or tells the reader to run exists. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { test } from 'node:test';

const ROOT = new URL('../../', import.meta.url).pathname;
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const PLACES = ['', '.github', 'docs', 'docs/recipes', 'examples', 'bench/results'];
const files = PLACES.flatMap((dir) =>
  readdirSync(join(ROOT, dir))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(dir, name)),
);
const { scripts } = JSON.parse(read('package.json'));
/** The parts of the scripts that have some, as each names them when it is asked for another one. */
const parts = new Map(['bench', 'build', 'lint'].map((name) => [name, partsOf(name)]));
const testFiles = readdirSync(join(ROOT, 'test'), { recursive: true }).map((name) =>
  join('test', String(name)),
);

/** Leaves out the code blocks. */
const prose = (markdown: string) => markdown.replace(/^ *```[\s\S]*?^ *```/gm, '');

/** Makes the anchor of a heading as GitHub does. */
const anchors = (markdown: string) =>
  [...prose(markdown).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );

test('the Markdown files are found', () => {
  for (const path of ['README.md', 'CONTRIBUTING.md', 'docs/api.md', 'examples/README.md']) {
    assert(files.includes(path), path);
  }
});

for (const path of files) {
  const markdown = read(path);

  test(`${path}: links lead to files and headings that exist`, () => {
    for (const [, target = ''] of prose(markdown).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      const [file = '', anchor] = target.split('#');
      const linked = file === '' ? path : normalize(join(dirname(path), file));
      assert(existsSync(join(ROOT, linked)), `${target} is not there`);
      if (anchor !== undefined)
        assert(anchors(read(linked)).includes(anchor), `${target} has no such heading`);
    }
  });

  test(`${path}: paths in the tree that it names exist`, () => {
    const roots = 'src|native|test|bench|scripts|cmake|assets|deploy|docs|examples';
    for (const [, named = ''] of prose(markdown).matchAll(/`((?:\w[\w.-]*\/)+[\w.-]*)`/g)) {
      if (!new RegExp(`^(${roots})/`).test(named)) continue;
      assert(existsSync(join(ROOT, named)), `${named} is not there`);
    }
  });

  test(`${path}: the npm scripts and test files it tells to run exist`, () => {
    if (path === 'CHANGELOG.md') return; // an entry keeps the names of its day
    for (const [, name = ''] of markdown.matchAll(/npm run (?:--silent )?(\w[\w:-]*)/g)) {
      assert(scripts[name] !== undefined, `npm run ${name}`);
    }
    for (const [command, name = '', part = ''] of markdown.matchAll(PARTS_OF_SCRIPTS))
      assert(parts.get(name)?.includes(part), command);
    if (path.startsWith('docs/recipes/')) return; // their tests are made on the way; recipes.test.ts runs them
    for (const [, wanted = ''] of markdown.matchAll(/npm test -- ([\w/-]+)/g)) {
      assert(
        testFiles.some((file) => file.endsWith('.test.ts') && file.includes(wanted)),
        `npm test -- ${wanted}`,
      );
    }
    const named = /--test-name-pattern='([^']+)' (\S+)/g;
    for (const [command, pattern = '', file = ''] of markdown.matchAll(named)) {
      assert(existsSync(join(ROOT, file)), command);
      assert(new RegExp(`^ *test\\(.*${pattern}`, 'm').test(read(file)), `${command} runs no test`);
    }
  });
}

test('prose is wrapped, so that it can be read in an editor and compared line by line', () => {
  const long = files.flatMap((path) =>
    prose(read(path))
      .split('\n')
      .filter((line) => line.length > 110 && !isUnbreakable(line))
      .map((line) => `${path}: ${line}`),
  );
  assert(long.length === 0, long.join('\n'));
});

/** What follows the name of a script that has parts, when it is no option. */
const PARTS_OF_SCRIPTS = /npm run (?:--silent )?(bench|build|lint) -- ([a-z][\w-]*)/g;

function partsOf(name: string): string[] {
  const { status, stderr } = spawnSync(process.execPath, [`scripts/${name}.mjs`, 'nothing'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  assert.equal(status, 1);
  const [, named = ''] = /^There is no .*nothing, only (?:of )?(.*)\.$/m.exec(stderr) ?? [];
  return named.split(', ');
}

/** Matches a row of a table, a line that ends in a link, and the title of one test. */
function isUnbreakable(line: string): boolean {
  return line.startsWith('|') || /\]\(\S+$/.test(line) || /^ *“[^”]*”;?$/.test(line);
}

test('every section of docs/performance.md that has figures is repeated in docs/benchmarks.md', () => {
  const [figures, commands] = [sections('docs/performance.md'), sections('docs/benchmarks.md')];
  const measured = [...figures].filter(([, text]) => text.includes('[How to repeat]'));
  assert(measured.length > 10, `only ${measured.length} sections say how to repeat them`);
  for (const [heading, text] of figures) {
    if (text.includes('\n|'))
      assert(text.includes('[How to repeat]'), `${heading} does not say how to repeat it`);
  }
  for (const [heading, text] of measured) {
    const [anchor] = anchors(`## ${heading}`);
    assert(text.includes(`(benchmarks.md#${anchor})`), heading);
    assert(commands.get(heading)?.includes(`(performance.md#${anchor})`), `${heading} has no way back`);
  }
  const written = ['docs/performance.md', 'bench/results/peers.md', 'bench/results/time.md']
    .map(read)
    .join('\n');
  for (const [, name] of written.matchAll(/<!-- bench:([\w-]+) -->/g)) {
    const [, kind, level] = /^([\w-]+?)(?:-(avx2))?$/.exec(name ?? '') ?? [];
    const cpu = level === undefined ? '' : `--cpu ${level} `;
    const command = COMMANDS[name ?? ''] ?? `npm run bench -- ${cpu}--only ${kind}`;
    assert(new RegExp(`${command}(?![\\w-])`).test(read('docs/benchmarks.md')), command);
  }
});

/** The tables that `npm run bench` does not make. */
const COMMANDS: Readonly<Record<string, string>> = {
  growth: 'npm run bench -- growth',
  lanes: 'npm run bench -- lanes',
  live: 'npm run bench -- live',
  'live-sessions': 'npm run bench -- live --sessions',
};

/** Maps a heading of the second level to the text below it. */
function sections(path: string): Map<string, string> {
  const [, ...parts] = read(path).split(/^## /m);
  return new Map(
    parts.map((part) => {
      const end = part.indexOf('\n');
      return [part.slice(0, end), part.slice(end)];
    }),
  );
}
