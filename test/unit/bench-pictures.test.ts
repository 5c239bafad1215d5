/** The pictures of docs/performance.md and docs/accuracy.md show what the tables of bench/results say. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { ROOT } from '../../bench/common/machine.ts';
import { accuracyPicture, speedPicture } from '../../bench/common/pictures.ts';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

test('both pictures are drawn from the tables', () => {
  assert.equal(read('docs/images/speed.svg'), speedPicture());
  assert.equal(read('docs/images/word-errors.svg'), accuracyPicture());
});

test('the first table of docs/accuracy.md has the rates of the picture', () => {
  const rates = [...accuracyPicture().matchAll(/>([\d.]+ %)</g)].map(([, rate]) => rate);
  const [table = ''] = /^\|[\s\S]*?\n\n/m.exec(read('docs/accuracy.md')) ?? [];
  const written = [...table.matchAll(/([\d.]+ %)/g)].map(([, rate]) => rate);
  assert(rates.length > 20);
  for (const rate of rates) assert(written.includes(rate), `${rate} is not in the table`);
});

test('the first table of docs/performance.md has the ratios of the picture', () => {
  const ratios = [...speedPicture().matchAll(/>([\d.]+) times</g)].map(([, ratio]) => ratio);
  assert.equal(ratios.length, 4);
  for (const ratio of ratios) assert(read('docs/performance.md').includes(`| ${ratio}x `), ratio);
});
