/** Records of crashes are bounded, newest first, and survive what else is in their folder. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Crashes, createCrashes } from '../../src/crashes/crashes.ts';
import { BUDGETS } from '../../src/limits/budgets.ts';

/** No process has this id: it is above the highest that Linux gives. */
const DEAD = 2 ** 22 + 1;

function folder(t: TestContext): { dir: string; crashes: Crashes } {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-crashes-test-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return { dir, crashes: createCrashes(join(dir, 'made', 'by need')) };
}

const seen = {
  exitCode: null,
  signal: 'SIGSEGV',
  uptimeSec: 3.14,
  message: '',
  requestId: 'holder',
  lines: ['one', 'two'],
};

test('a record says when and how the process ended, and which request held the slot', (t) => {
  const { crashes } = folder(t);
  const { at, ...rest } = crashes.record(DEAD, seen);
  assert.match(at, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  assert.deepEqual(rest, { ...seen, pid: DEAD, uptimeSec: 3.1 });
  assert.deepEqual(crashes.list(), [{ at, ...rest }]);
});

test('only as many records are kept as allowed, the newest, each with bounded lines', (t) => {
  const { dir, crashes } = folder(t);
  const { kept, lines, lineLength, messageLength } = BUDGETS.crashes;
  const many = Array.from({ length: 3 * lines }, (_, i) => `${i} ${'x'.repeat(10_000)}`);
  for (let i = 0; i < kept + 5; i++)
    crashes.record(DEAD + i, { ...seen, message: 'x'.repeat(10_000), lines: many });
  const list = crashes.list();
  assert.equal(list.length, kept);
  assert.deepEqual(
    new Set(list.map(({ pid }) => pid)),
    new Set(Array.from({ length: kept }, (_, i) => DEAD + 5 + i)),
  );
  for (const record of list) {
    assert.equal(record.lines.length, lines);
    assert.equal(record.message.length, messageLength);
    assert(record.lines.every((line) => line.length === lineLength));
    assert(record.lines.at(-1)?.startsWith(`${3 * lines - 1} `));
  }
  const files = readdirSync(join(dir, 'made', 'by need'));
  assert.equal(files.length, kept);
  const bytes = files.reduce((sum, name) => sum + statSync(join(dir, 'made', 'by need', name)).size, 0);
  assert(bytes < 2 * kept * lines * lineLength, `${bytes} bytes`);
});

test('a folder that is not there has no records, and foreign or broken files are passed over', (t) => {
  const { dir } = folder(t);
  assert.deepEqual(createCrashes(join(dir, 'nowhere')).list(), []);
  const crashes = createCrashes(dir);
  writeFileSync(join(dir, 'broken.json'), '{');
  writeFileSync(join(dir, 'notes.txt'), 'mine');
  crashes.record(DEAD, seen);
  assert.equal(crashes.list().length, 1);
  assert.equal(readFileSync(join(dir, 'notes.txt'), 'utf8'), 'mine');
});

test('files of others are neither shown nor removed, whatever they hold, and take no place of a record', (t) => {
  const { dir } = folder(t);
  const crashes = createCrashes(dir);
  const { at } = crashes.record(DEAD, seen);
  const [own = ''] = readdirSync(dir);
  const record = JSON.parse(readFileSync(join(dir, own), 'utf8'));
  for (const [i, odd] of [
    {},
    [],
    null,
    'text',
    { ...record, pid: 'x' },
    { ...record, lines: null },
  ].entries())
    writeFileSync(join(dir, own.replace('Z-', `Z-${i}`)), JSON.stringify(odd));
  for (let i = 0; i < BUDGETS.crashes.kept; i++)
    writeFileSync(join(dir, `x${i}.json`), JSON.stringify(record));
  crashes.record(DEAD + 1, seen);
  assert.deepEqual(
    crashes.list().map(({ pid }) => pid),
    [DEAD + 1, DEAD],
  );
  assert.equal(crashes.list()[1]?.at, at);
  assert.equal(readdirSync(dir).filter((name) => name.startsWith('x')).length, BUDGETS.crashes.kept);
});
