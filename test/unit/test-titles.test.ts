/** The titles of tests are read from the source. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { titlesIn } from './test-titles.ts';

/** In the source that is read, `@{` stands for `${`. */
const titles = (...lines: string[]) => [...titlesIn('a.test.ts', lines.join('\n').replaceAll('@{', '${'))];

test('titles of a table are read row by row, never mixed', () => {
  assert.deepEqual(
    titles(
      'for (const [city, river] of [["Paris", "Seine"], ["Rome", "Tiber"]] as const)',
      '  test(`@{city} is on the @{river}`, () => {});',
    ),
    ['Paris is on the Seine', 'Rome is on the Tiber'],
  );
});

test('members, rows that map makes, constants and missing values are followed', () => {
  assert.deepEqual(
    titles(
      'const ROWS: Row[] = [{ row: "one" }, ...["a", "b"].map((letter) => ({ row: `letter @{letter}` }))];',
      'for (const { row } of ROWS) test(row, () => {});',
      'for (const row of ROWS) test(`again: @{row.row}`, () => {});',
      'for (const hint of ["en", undefined]) test(`hint @{hint ?? "none"}`, () => {});',
    ),
    [
      'one',
      'letter a',
      'letter b',
      'again: one',
      'again: letter a',
      'again: letter b',
      'hint en',
      'hint none',
    ],
  );
});

test('a computed part is …, and a title that is computed as a whole is left out', () => {
  assert.deepEqual(
    titles(
      'test(`bad @{JSON.stringify(body)}`, () => {});',
      'for (const name of list()) test(name, () => {});',
    ),
    ['bad …'],
  );
});

test('a title follows the titles of the tests around it, and C++ tests have titles too', () => {
  assert.deepEqual(titles('test("a model works", async (t) => { await t.test("twice", () => {}); });'), [
    'a model works',
    'a model works > twice',
  ]);
  assert.deepEqual([...titlesIn('a.cpp', 'TEST("vad: no file") {\n}\n// TEST("gone")\n')], ['vad: no file']);
});
