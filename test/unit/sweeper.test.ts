/** These tests say which captures are removed and when, and that no other file ever is. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mock, type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { type CaptureRetentionOptions, createCaptureRetention } from '../../src/capture/capture-retention.ts';
import { endOfLocalDay, localDay } from '../../src/observability/local-day.ts';
import { planRemoval, type RetentionLimits } from '../../src/observability/retention.ts';
import { until } from '../until.ts';
import { folder, recordingLog } from './observability-fixtures.ts';

const DAY_MS = 86_400_000;
const LIMITS = { maxAgeMs: 7 * DAY_MS, maxBytes: 5 * 1024 ** 3 };
const NOW = new Date(2026, 2, 10, 12).getTime();

/** Makes a capture of that age and size, in the folder of its day unless told otherwise. */
function put(dir: string, name: string, ageDays: number, bytes: number, day?: string): string {
  const at = new Date(NOW - ageDays * DAY_MS);
  const path = join(dir, day ?? localDay(at), name);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'req.bin'), Buffer.alloc(bytes));
  utimesSync(path, at, at);
  return path;
}

function world(t: TestContext, options: Partial<CaptureRetentionOptions> = {}) {
  const dir = folder(t);
  const { log, lines } = recordingLog();
  const open = new Set<string>();
  const start = () => {
    const isOpen = (path: string) => open.has(path);
    const sweeper = createCaptureRetention({ ...LIMITS, dir, isOpen, log, now: () => NOW, ...options });
    t.after(() => sweeper.close());
    return sweeper;
  };
  return { dir, lines, open, start };
}

test('the plan removes by age first, then the oldest until the rest is within the size', () => {
  const of = (path: string, at: number, bytes: number, busy = false) => ({ path, at, bytes, busy });
  const limits = { maxAgeMs: 100, maxBytes: 10 };
  const plan = (stored: ReturnType<typeof of>[], within: RetentionLimits, now: number) =>
    planRemoval(stored, within, now).map(({ path }) => path);
  assert.deepEqual(plan([], limits, 0), []);
  assert.deepEqual(plan([of('edge', 0, 1), of('new', 50, 1)], limits, 100), []);
  assert.deepEqual(plan([of('old', -1, 9), of('b', 20, 5), of('a', 10, 5)], limits, 100), ['old']);
  assert.deepEqual(plan([of('c', 30, 5), of('a', 10, 5), of('b', 20, 5)], limits, 100), ['a']);
  assert.deepEqual(plan([of('busy', -9, 50, true), of('a', 10, 1)], limits, 100), ['a']);
  assert.deepEqual(plan([of('b', 10, 6), of('a', 10, 6)], limits, 100), ['b']);
});

test('the plan keeps its promises for all captures', () => {
  const candidate = fc.record({
    at: fc.integer({ min: 0, max: 1000 }),
    bytes: fc.integer({ min: 0, max: 100 }),
    busy: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(candidate), fc.nat(1000), fc.nat(2000), (some, maxAgeMs, maxBytes) => {
      const gone = planRemoval(some, { maxAgeMs, maxBytes }, 1000);
      const kept = some.filter((c) => !gone.includes(c));
      const young = gone.filter((c) => 1000 - c.at <= maxAgeMs);
      const idle = kept.filter((c) => !c.busy);
      const bytes = kept.reduce((sum, c) => sum + c.bytes, 0);
      assert(
        gone.every((c) => !c.busy),
        'never what is being written',
      );
      assert(
        idle.every((c) => 1000 - c.at <= maxAgeMs),
        'nothing idle is too old',
      );
      assert(bytes <= maxBytes || idle.length === 0, 'the size holds unless only busy ones are left');
      assert(
        young.every((y) => idle.every((k) => y.at <= k.at)),
        'the oldest go first',
      );
      const newest = Math.max(...young.map((c) => c.at));
      const last = young.filter((c) => c.at === newest).reduce((sum, c) => Math.max(sum, c.bytes), 0);
      assert(young.length === 0 || bytes + last > maxBytes, 'no more than needed');
    }),
  );
});

test('a sweep at the start removes what is too old, and its empty day', async (t) => {
  const { dir, start, lines } = world(t);
  const old = put(dir, 'old', 8, 10);
  const young = put(dir, 'young', 6, 10);
  start();
  const days = [localDay(new Date(NOW - 6 * DAY_MS))];
  await until('the empty day is gone', () => readdirSync(dir).length === days.length);
  assert(existsSync(young) && !existsSync(old));
  assert.deepEqual(readdirSync(dir), days);
  await until('the line', () => lines.length > 0);
  assert.deepEqual(lines, ['info Old captures were removed']);
});

test('what is too old goes first, then the oldest above the size', async (t) => {
  const { dir, start } = world(t, { maxAgeMs: DAY_MS / 2, maxBytes: 0.00003 * 1024 ** 3 });
  const paths = [
    put(dir, 'a', 0.6, 10),
    put(dir, 'b', 0.4, 6000),
    put(dir, 'c', 0.3, 6000),
    put(dir, 'd', 0.2, 100),
  ];
  assert.equal(await start().sweep(), 2);
  assert.deepEqual(
    paths.map((path) => existsSync(path)),
    [false, false, true, true],
  );
});

test('a capture moved or copied to an old day counts as old', async (t) => {
  const { dir, start } = world(t);
  const path = put(dir, 'copied', 0, 10, '2020-01-01');
  assert.equal(await start().sweep(), 1);
  assert(!existsSync(path));
});

test('a capture that is being written stays, and counts', async (t) => {
  const { dir, start, open } = world(t, { maxBytes: 0.00001 * 1024 ** 3 });
  const busy = put(dir, 'busy', 9, 20_000);
  const idle = put(dir, 'idle', 1, 10);
  open.add(busy);
  assert.equal(await start().sweep(), 1);
  assert(existsSync(busy) && !existsSync(idle));
});

test('a folder that does not look like a capture is left alone, and links are not followed', async (t) => {
  const { dir, start } = world(t, { maxAgeMs: 0, maxBytes: 0 });
  const outside = folder(t);
  const precious = put(outside, 'r1', 30, 10);
  const ancient = '2020-01-01';
  put(dir, 'with-more', 30, 10, ancient);
  writeFileSync(join(dir, ancient, 'with-more', 'notes.txt'), '');
  mkdirSync(join(dir, ancient, 'with-folder', 'req.bin'), { recursive: true });
  put(dir, 'not a name', 30, 10, ancient);
  put(dir, 'r1', 30, 10, 'holiday-2020');
  writeFileSync(join(dir, ancient, 'file'), '');
  symlinkSync(precious, join(dir, ancient, 'link'));
  symlinkSync(join(outside, localDay(new Date(NOW - 30 * DAY_MS))), join(dir, '2020-01-02'));
  put(dir, 'capture', 30, 10, ancient);
  assert.equal(await start().sweep(), 1);
  assert.deepEqual(readdirSync(dir).sort(), [ancient, '2020-01-02', 'holiday-2020']);
  assert.deepEqual(readdirSync(join(dir, ancient)).sort(), [
    'file',
    'link',
    'not a name',
    'with-folder',
    'with-more',
  ]);
  assert(existsSync(join(precious, 'req.bin')));
});

test('the sweeper sweeps again every half hour, and not after close', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] });
  t.after(() => mock.timers.reset());
  const { dir, start } = world(t);
  const sweeper = start();
  await sweeper.sweep();
  const second = put(dir, 'second', 8, 10);
  mock.timers.tick(30 * 60_000 - 1);
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert(existsSync(second));
  mock.timers.tick(1);
  await until('the second sweep', () => !existsSync(second));
  await sweeper.close();
  const third = put(dir, 'third', 8, 10);
  mock.timers.tick(30 * 60_000);
  await new Promise((resolve) => setTimeout(resolve, 30));
  assert(existsSync(third));
});

test('a missing folder is nothing to sweep, and one that is a file is a line in the log', async (t) => {
  const dir = folder(t);
  const missing = world(t, { dir: join(dir, 'missing') });
  assert.equal(await missing.start().sweep(), 0);
  assert.deepEqual(missing.lines, []);
  writeFileSync(join(dir, 'file'), '');
  const file = world(t, { dir: join(dir, 'file') });
  assert.equal(await file.start().sweep(), 0);
  assert.deepEqual(file.lines, ['error Cannot sweep the captures']);
});

test('a local day ends where the next begins', () => {
  fc.assert(
    fc.property(
      fc.date({ min: new Date(2000, 0, 1), max: new Date(2099, 0, 1), noInvalidDate: true }),
      (at) => {
        const end = endOfLocalDay(localDay(at));
        assert(at.getTime() < end);
        assert.notEqual(localDay(new Date(end)), localDay(at));
        assert.equal(localDay(new Date(end - 1)), localDay(at));
      },
    ),
  );
});
