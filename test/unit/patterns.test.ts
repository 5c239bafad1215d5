/**
 * Every regular expression of the gateway takes linear time. Most meet text that a client or an upstream wrote, and
 * one that backtracks needs only a few kilobytes of it to stop the event loop for minutes (CWE-1333).
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { analyse } from 'scslre';
import { nodesOf, parsed } from '../syntax-tree.ts';

const ROOT = new URL('../../', import.meta.url).pathname;

const sources = readdirSync(join(ROOT, 'src'), { recursive: true })
  .map((path) => join('src', String(path)))
  .filter((path) => path.endsWith('.ts'));

test('the analysis knows a pattern that backtracks from one that does not', () => {
  for (const slow of [/^\d+\.?\d*$/, /\s+$/, /^(a+)+$/]) assert.notEqual(analyse(slow).reports.length, 0);
  for (const linear of [/^\d+(\.\d*)?$/, /(?<!\s)\s+$/, /^a+$/])
    assert.equal(analyse(linear).reports.length, 0);
});

test('no pattern backtracks, and none is made at run time, where it could not be analyzed', () => {
  let patterns = 0;
  for (const path of sources) {
    for (const node of nodesOf(parsed(path, readFileSync(join(ROOT, path), 'utf8')))) {
      const isMade = node.type === 'Identifier' && node.name === 'RegExp';
      assert(!isMade, `${path} makes a pattern at run time`);
      if (node.type !== 'Literal' || !('regex' in node)) continue;
      patterns += 1;
      const { pattern, flags } = node.regex;
      const kinds = analyse(new RegExp(pattern, flags)).reports.map((report) => report.type);
      assert.deepEqual(kinds, [], `${path}: ${node.raw} takes more than linear time`);
    }
  }
  assert(patterns > 30);
});
