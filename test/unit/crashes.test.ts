/** Records of crashes are bounded, newest first, and survive what else is in their folder. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parseCrashNote, writeEnding } from '../../src/crashes/crash-note.ts';
import { type Crashes, createCrashes } from '../../src/crashes/crashes.ts';
import { BUDGETS } from '../../src/limits/budgets.ts';

const CELL = 256;
/** No process has this id: it is above the highest that Linux gives. */
const DEAD = 2 ** 22 + 1;

function folder(t: TestContext): { dir: string; crashes: Crashes } {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-crashes-test-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return { dir, crashes: createCrashes(join(dir, 'made', 'by need')) };
}

/** Makes a note from the texts of its cells, by their index. */
function note(cells: Record<number, string>): Buffer {
  const bytes = Buffer.alloc(32 * CELL);
  for (const [cell, text] of Object.entries(cells)) bytes.write(`${text}\0`, Number(cell) * CELL);
  return bytes;
}

const seen = { exitCode: null, signal: 'SIGSEGV', uptimeSec: 3.14, lines: ['one', 'two'] };
const FATAL = {
  0: 'SIGSEGV\t7\t',
  4: 'asr holder',
  5: '6\ttranscribe: whisper\t',
  9: '7\tdecode audio: mp3\tother',
};

test('a record names the call that failed and its request, or else the calls and the holder of the slot', (t) => {
  const { crashes } = folder(t);
  const record = (cells: Record<number, string>) => {
    writeFileSync(crashes.notePath(DEAD), note(cells));
    const { at, ...rest } = crashes.record(DEAD, seen);
    assert.match(at, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    return rest;
  };
  const common = {
    pid: DEAD,
    uptimeSec: 3.1,
    exitCode: null,
    signal: 'SIGSEGV',
    message: '',
    lines: ['one', 'two'],
  };
  assert.deepEqual(record(FATAL), { ...common, place: 'decode audio: mp3', requestId: 'other' });
  assert.deepEqual(record({ ...FATAL, 0: '' }), {
    ...common,
    ...{ place: 'transcribe: whisper, decode audio: mp3', requestId: 'holder' },
  });
  assert.deepEqual(record({ 5: '6\tfree a model\t' }), { ...common, place: 'free a model', requestId: null });
  assert.deepEqual(record({}), { ...common, place: null, requestId: null });
});

test('only as many records are kept as allowed, the newest, each with bounded lines', (t) => {
  const { dir, crashes } = folder(t);
  const { kept, lines, lineLength } = BUDGETS.crashes;
  const many = Array.from({ length: 3 * lines }, (_, i) => `${i} ${'x'.repeat(10_000)}`);
  for (let i = 0; i < kept + 5; i++) crashes.record(DEAD + i, { ...seen, lines: many });
  const list = crashes.list();
  assert.equal(list.length, kept);
  assert.deepEqual(
    new Set(list.map(({ pid }) => pid)),
    new Set(Array.from({ length: kept }, (_, i) => DEAD + 5 + i)),
  );
  for (const record of list) {
    assert.equal(record.lines.length, lines);
    assert(record.lines.every((line) => line.length === lineLength));
    assert(record.lines.at(-1)?.startsWith(`${3 * lines - 1} `));
  }
  const files = readdirSync(join(dir, 'made', 'by need'));
  assert.equal(files.length, kept);
  const bytes = files.reduce((sum, name) => sum + statSync(join(dir, 'made', 'by need', name)).size, 0);
  assert(bytes < 2 * kept * lines * lineLength, `${bytes} bytes`);
});

test('the note of a process that lives stays, and those of dead ones and of its own id become records', (t) => {
  const { crashes } = folder(t);
  const living = process.ppid;
  for (const pid of [living, process.pid, DEAD]) writeFileSync(crashes.notePath(pid), note(FATAL));
  const records = crashes.recordAbandoned();
  assert.deepEqual(records.map(({ pid }) => pid).sort(), [process.pid, DEAD].sort());
  for (const { signal, uptimeSec, exitCode, lines } of records)
    assert.deepEqual([signal, uptimeSec, exitCode, lines], ['SIGSEGV', null, null, []]);
  assert.equal(readFileSync(crashes.notePath(living)).length, 32 * CELL);
  assert.deepEqual(crashes.recordAbandoned(), []);
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

test('a note of any bytes is read without an error, and an ending that is too long is cut', (t) => {
  for (const bytes of [Buffer.alloc(0), Buffer.alloc(5000, 0xff), Buffer.alloc(100, '\t')])
    assert.equal(typeof parseCrashNote(bytes).message, 'string');
  const { crashes } = folder(t);
  const path = crashes.notePath(DEAD);
  writeFileSync(path, note(FATAL));
  writeEnding(path, 'uncaughtException', 'x'.repeat(5000));
  const { cause, message, holder, calls } = parseCrashNote(readFileSync(path));
  assert.deepEqual([cause, holder, calls.length], ['uncaughtException', 'asr holder', 2]);
  assert.equal(message, 'x'.repeat(4 * CELL - 1 - 'uncaughtException\t\t'.length));
});
