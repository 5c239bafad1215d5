/** The access log writes its lines into daily files, and no disk can make a request wait. */
import assert from 'node:assert/strict';
import {
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { createAccessLog, createStdoutLog } from '../../src/observability/access-log.ts';
import { createInstruments } from '../../src/observability/instruments.ts';
import { localDay } from '../../src/observability/local-day.ts';
import { until } from '../until.ts';
import { exchange, folder, IDLE, onSmallDisk, recordingLog } from './observability-fixtures.ts';

const NOON = new Date(2026, 2, 4, 12, 0, 0);
const FILE = 'access-2026-03-04.jsonl';

const linesOf = (path: string) =>
  readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
const idsIn = (path: string) => (existsSync(path) ? linesOf(path).map((line) => line.request_id) : []);

test('a line has exactly the documented fields, and absent ones are left out', async (t) => {
  const dir = folder(t);
  const access = createAccessLog({ dir: join(dir, 'a', 'b'), log: recordingLog().log, now: () => NOON });
  access.write(
    exchange({
      model: 'm',
      slotWaitMs: 4,
      waitedMs: 2.6,
      clientIp: '::1',
      userAgent: 'curl "quoted"\n',
      audioSec: 2,
      rtf: 0.1,
      speakers: 2,
      diarizationSec: 0.4,
      language: 'en',
      route: 'requested',
      errorKind: 'upstream',
      status: 502,
      class: '5xx',
    }),
  );
  access.write(exchange({ category: undefined, method: 'GET', path: '/v1/models', provider: 'voxgate' }));
  await access.close();
  assert.deepEqual(linesOf(join(dir, 'a', 'b', FILE)), [
    {
      ts: NOON.toISOString(),
      level: 'error',
      request_id: 'r1',
      method: 'POST',
      path: '/v1/audio/transcriptions',
      category: 'asr',
      model: 'm',
      status: 502,
      class: '5xx',
      latency_ms: 100,
      bytes_in: 10,
      bytes_out: 20,
      client_ip: '::1',
      user_agent: 'curl "quoted"\n',
      extra: {
        provider: 'multilingual',
        rtf: 0.1,
        audio_sec: 2,
        speakers: 2,
        diarization_sec: 0.4,
        language: 'en',
        route: 'requested',
        slot_wait_ms: 4,
        waited_ms: 3,
        error_kind: 'upstream',
      },
    },
    {
      ts: NOON.toISOString(),
      level: 'info',
      request_id: 'r1',
      method: 'GET',
      path: '/v1/models',
      status: 200,
      class: '2xx',
      latency_ms: 100,
      bytes_in: 10,
      bytes_out: 20,
      extra: { provider: 'voxgate' },
    },
  ]);
});

test('close loses no line, keeps the order, and may be called twice', async (t) => {
  const dir = folder(t);
  const access = createAccessLog({ dir, log: recordingLog().log, now: () => NOON });
  for (let n = 0; n < 20_000; n += 1) access.write(exchange({ requestId: `r${n}` }));
  await Promise.all([access.close(), access.close()]);
  access.write(exchange({ requestId: 'too late' }));
  assert.deepEqual(
    idsIn(join(dir, FILE)),
    Array.from({ length: 20_000 }, (_, n) => `r${n}`),
  );
});

test('midnight begins another file, and a line is in the file of its own day', async (t) => {
  const dir = folder(t);
  let now = new Date(2026, 2, 4, 23, 59, 59, 999);
  const access = createAccessLog({ dir, log: recordingLog().log, now: () => now });
  access.write(exchange({ requestId: 'before' }));
  now = new Date(2026, 2, 5, 0, 0, 0, 0);
  access.write(exchange({ requestId: 'after' }));
  await access.close();
  assert.deepEqual(readdirSync(dir).sort(), [FILE, 'access-2026-03-05.jsonl']);
  assert.deepEqual(idsIn(join(dir, FILE)), ['before']);
  assert.deepEqual(idsIn(join(dir, 'access-2026-03-05.jsonl')), ['after']);
});

test('a deleted file or folder is made again by the next line, every time', async (t) => {
  const dir = join(folder(t), 'logs');
  const { log, lines } = recordingLog();
  const access = createAccessLog({ dir, log, now: () => NOON });
  for (const id of ['one', 'two', 'three']) {
    access.write(exchange({ requestId: id }));
    await until(`${id} is written`, () => idsIn(join(dir, FILE)).includes(id));
    if (id === 'one') unlinkSync(join(dir, FILE));
    if (id === 'two') rmSync(dir, { recursive: true });
  }
  assert.deepEqual(idsIn(join(dir, FILE)), ['three']);
  renameSync(join(dir, FILE), join(dir, 'moved'));
  access.write(exchange({ requestId: 'four' }));
  await access.close();
  assert.deepEqual(idsIn(join(dir, FILE)), ['four']);
  assert.deepEqual(lines, []);
});

test('a disk that refuses is one line in the log, and the waiting lines arrive when it takes them', async (t) => {
  const dir = folder(t);
  const { log, lines } = recordingLog();
  symlinkSync('/dev/full', join(dir, FILE));
  const access = createAccessLog({ dir, log, now: () => NOON, retryMs: 10 });
  access.write(exchange({ requestId: 'one' }));
  await until('the first failure', () => lines.length > 0);
  access.write(exchange({ requestId: 'two' }));
  await new Promise((resolve) => setTimeout(resolve, 60));
  assert.equal(lines.length, 1);
  unlinkSync(join(dir, FILE));
  await until('both lines are there', () => idsIn(join(dir, FILE)).length === 2);
  access.write(exchange({ requestId: 'three' }));
  await access.close();
  assert.deepEqual(idsIn(join(dir, FILE)), ['one', 'two', 'three']);
  assert.deepEqual(lines, [
    'error Cannot write the access log; requests are still served',
    'info The access log is being written again',
  ]);
});

test('closing does not wait for a disk that refuses, and says how many lines are lost', async (t) => {
  const dir = folder(t);
  const { log, lines } = recordingLog();
  symlinkSync('/dev/full', join(dir, FILE));
  const access = createAccessLog({ dir, log, now: () => NOON, retryMs: 60_000 });
  access.write(exchange());
  await until('the first failure', () => lines.length > 0);
  const start = performance.now();
  await access.close();
  assert(performance.now() - start < 30_000, 'waited for the retry');
  assert.equal(lines.at(-1), 'error Access log lines are lost');
});

test('a really full disk tears no line and doubles none', (t) =>
  onSmallDisk(t, 64, async (dir) => {
    const { log, lines } = recordingLog();
    const access = createAccessLog({ dir, log, now: () => NOON, retryMs: 10 });
    writeFileSync(join(dir, 'ballast'), Buffer.alloc(56 * 1024));
    for (let n = 0; n < 100; n += 1) access.write(exchange({ requestId: `r${n}` }));
    await until('the disk is full', () => lines.length > 0);
    const torn = readFileSync(join(dir, FILE), 'utf8');
    assert(torn !== '' && !torn.endsWith('\n'), 'the disk filled up in the middle of a line');
    unlinkSync(join(dir, 'ballast'));
    await access.close();
    assert.deepEqual(
      idsIn(join(dir, FILE)),
      Array.from({ length: 100 }, (_, n) => `r${n}`),
    );
  }));

test('a file that vanishes from a full disk takes only its own lines along', (t) =>
  onSmallDisk(t, 64, async (dir) => {
    const { log, lines } = recordingLog();
    const access = createAccessLog({ dir, log, now: () => NOON, retryMs: 10 });
    writeFileSync(join(dir, 'ballast'), Buffer.alloc(56 * 1024));
    for (let n = 0; n < 50; n += 1) access.write(exchange({ requestId: `r${n}` }));
    await until('the disk is full', () => lines.length > 0);
    const whole = readFileSync(join(dir, FILE), 'utf8').split('\n').length - 1;
    unlinkSync(join(dir, FILE));
    unlinkSync(join(dir, 'ballast'));
    await access.close();
    assert.deepEqual(
      idsIn(join(dir, FILE)),
      Array.from({ length: 50 - whole }, (_, n) => `r${n + whole}`),
    );
  }));

test('lines that a stuck disk cannot take are bounded', async (t) => {
  const dir = folder(t);
  const { log, lines } = recordingLog();
  symlinkSync('/dev/full', join(dir, FILE));
  const access = createAccessLog({ dir, log, now: () => NOON });
  const userAgent = 'x'.repeat(16_000);
  for (let n = 0; n < 15_000; n += 1) {
    access.write(exchange({ userAgent }));
    if (n % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  assert(lines.includes('error The disk of the access log is too slow; lines are dropped'));
  await access.close();
});

test('a folder that cannot be made is one line in the log, and is made when it can be', async (t) => {
  const dir = folder(t);
  const file = join(dir, 'file');
  writeFileSync(file, '');
  const { log, lines } = recordingLog();
  const access = createAccessLog({ dir: join(file, 'logs'), log, now: () => NOON, retryMs: 10 });
  access.write(exchange({ requestId: 'one' }));
  await until('the failure', () => lines.length > 0);
  unlinkSync(file);
  await until('the line is written', () => idsIn(join(file, 'logs', FILE)).includes('one'));
  await access.close();
  assert.deepEqual(lines, [
    'error Cannot write the access log; requests are still served',
    'info The access log is being written again',
  ]);
});

test('the day is the local one, and the file of today needs no clock to be handed in', async (t) => {
  const dir = folder(t);
  const access = createAccessLog({ dir, log: recordingLog().log });
  const before = localDay(new Date());
  access.write(exchange());
  await access.close();
  const [name] = readdirSync(dir);
  assert(
    [before, localDay(new Date())].some((day) => name === `access-${day}.jsonl`),
    name,
  );
});

test('what a client chooses is cut in its line', async (t) => {
  const dir = folder(t);
  const access = createAccessLog({ dir, log: recordingLog().log, now: () => NOON });
  const long = 'x'.repeat(16_000);
  access.write(exchange({ userAgent: long, path: `/${long}`, model: long, method: long }));
  await access.close();
  const text = readFileSync(join(dir, FILE), 'utf8');
  assert(text.length < 3000, `${text.length} characters`);
  const [line] = linesOf(join(dir, FILE));
  assert.equal(line.user_agent, `${'x'.repeat(512)}…`);
});

test('access logs of days that are too old are removed, and no other file', async (t) => {
  const dir = folder(t);
  const names = [
    'access-2026-02-01.jsonl',
    'access-2026-02-01.2.jsonl',
    'access-2026-02-28.jsonl',
    'notes.jsonl',
  ];
  for (const name of names) writeFileSync(join(dir, name), 'x');
  const access = createAccessLog({
    dir,
    log: recordingLog().log,
    now: () => NOON,
    maxAgeMs: 30 * 86_400_000,
  });
  access.write(exchange());
  await access.close();
  assert.deepEqual(readdirSync(dir).sort(), ['access-2026-02-28.jsonl', FILE, 'notes.jsonl'].sort());
});

test('what is too old is removed at the start and every half hour, without a line', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const dir = folder(t);
  const old = join(dir, 'access-2026-02-01.jsonl');
  const young = join(dir, 'access-2026-02-28.jsonl');
  for (const path of [old, young, join(dir, FILE)]) writeFileSync(path, 'x');
  let now = NOON;
  const access = createAccessLog({ dir, log: recordingLog().log, now: () => now, maxAgeMs: 30 * 86_400_000 });
  await until('the old file is gone', () => !existsSync(old));
  assert(existsSync(young));
  now = new Date(2026, 3, 2, 12);
  t.mock.timers.tick(30 * 60_000);
  await until('the other one, too', () => !existsSync(young));
  await access.close();
  assert.deepEqual(readdirSync(dir), [FILE]);
});

test('a gateway that is not ready is no news, and a probe that fails otherwise is', async (t) => {
  const dir = folder(t);
  const { observability } = readConfig({ SVC_OBS_LOG_DIR: dir, SVC_OBS_PAYLOAD_DIR: dir }).config;
  const instruments = createInstruments(observability, { ...IDLE, log: recordingLog().log });
  for (const [path, status] of [
    ['/ready', 503],
    ['/metrics', 500],
    ['/health', 503],
  ] as const)
    instruments.finished(exchange({ method: 'GET', path, status, class: '5xx' }));
  await instruments.close();
  const written = readdirSync(dir).flatMap((name) =>
    readFileSync(join(dir, name), 'utf8').trim().split('\n'),
  );
  assert.deepEqual(
    written.map((line) => JSON.parse(line).path),
    ['/metrics', '/health'],
  );
});

test('while the access log is off, its old files are removed, and no folder is made', async (t) => {
  const dir = folder(t);
  const old = join(dir, 'access-2026-02-01.jsonl');
  writeFileSync(old, 'x');
  const begin = (logDir: string) => {
    const env = { SVC_OBS_ACCESS_LOG_ENABLED: 'off', SVC_OBS_LOG_DIR: logDir, SVC_OBS_PAYLOAD_DIR: dir };
    const { observability } = readConfig(env).config;
    return createInstruments(observability, { ...IDLE, log: recordingLog().log });
  };
  const [one, other] = [begin(dir), begin(join(dir, 'logs'))];
  await until('the old file is gone', () => !existsSync(old));
  one.finished(exchange());
  other.finished(exchange());
  await Promise.all([one.close(), other.close()]);
  assert.deepEqual(readdirSync(dir), []);
});

test('the access log stays within its size, also on one day, and keeps its newest lines', async (t) => {
  const dir = folder(t);
  const maxBytes = 1024 * 1024;
  writeFileSync(join(dir, 'access-2026-03-03.jsonl'), 'x'.repeat(maxBytes / 2));
  const access = createAccessLog({ dir, log: recordingLog().log, now: () => NOON, maxBytes: 1024 ** 2 });
  /** A file may get another name, or go, between its listing and its reading. */
  const textOf = (name: string) => {
    try {
      return readFileSync(join(dir, name), 'utf8');
    } catch {
      return '';
    }
  };
  const total = () => readdirSync(dir).reduce((sum, name) => sum + textOf(name).length, 0);
  for (let batch = 0; batch < 20; batch++) {
    for (let n = 0; n < 200; n++) {
      const userAgent = 'u'.repeat(300);
      access.write(exchange({ requestId: `${batch}-${n}`, userAgent }));
    }
    const last = `"request_id":"${batch}-199"`;
    await until('the batch is written', () => readdirSync(dir).some((name) => textOf(name).includes(last)));
    assert(total() <= maxBytes, `${total()} bytes`);
  }
  await access.close();
  const names = readdirSync(dir).sort();
  assert(!names.includes('access-2026-03-03.jsonl'), 'the oldest went first');
  assert(names.some((name) => /^access-2026-03-04\.\d+\.jsonl$/.test(name)));
  assert(total() > maxBytes / 2, 'no more is removed than needed');
  assert(names.flatMap((name) => idsIn(join(dir, name))).includes('19-199'));
});

test('lines for a reader of standard output that is too slow are dropped, which is said once', () => {
  const { log, lines } = recordingLog();
  const written: string[] = [];
  const stdout = { writableLength: 0, write: (line: string) => written.push(line) > 0 };
  const access = createStdoutLog(log, stdout as never);
  access.write(exchange({ requestId: 'first', key: 'alice' }));
  stdout.writableLength = 64 * 1024 * 1024;
  for (let i = 0; i < 3; i++) access.write(exchange({ requestId: 'lost' }));
  stdout.writableLength = 0;
  access.write(exchange({ requestId: 'last' }));
  const records = written.map((line) => JSON.parse(line));
  assert.deepEqual(
    records.map(({ request_id, extra }) => [request_id, extra.key]),
    [
      ['first', 'alice'],
      ['last', undefined],
    ],
  );
  assert(written.every((line) => line.endsWith('\n')));
  assert.deepEqual(lines, [
    'error The reader of standard output is too slow; access log lines are dropped',
    'warn Access log lines were dropped',
  ]);
});
