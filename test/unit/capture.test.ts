/** Captures on disk are complete or absent, bounded in memory, without secrets, and never in a request's way. */
import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { createCaptureActions } from '../../src/admin/capture-actions.ts';
import { type Capture, type CaptureOptions, createCapture } from '../../src/capture/capture.ts';
import { captureName, findCapture, listCaptures } from '../../src/capture/capture-folder.ts';
import { type CaptureMeta, scrubHeaders } from '../../src/capture/capture-meta.ts';
import { until } from '../until.ts';
import { exchange, folder, onSmallDisk, recordingLog } from './observability-fixtures.ts';

const AT = new Date(2026, 2, 4, 12);
const DAY = '2026-03-04';

function world(t: TestContext, options: Partial<CaptureOptions> = {}) {
  const dir = options.dir ?? join(folder(t), 'payloads');
  const { log, lines } = recordingLog();
  const failures: string[] = [];
  const capture = createCapture({
    dir,
    log,
    onFailure: (error) => failures.push((error as NodeJS.ErrnoException).code ?? error.message),
    ...options,
  });
  return { capture, dir, lines, failures };
}

const meta = (over: Partial<CaptureMeta> = {}): CaptureMeta => ({
  exchange: exchange(),
  url: '/v1/audio/transcriptions?x=1',
  requestHeaders: {},
  responseHeaders: {},
  complete: true,
  ...over,
});
const read = (...path: string[]) => readFileSync(join(...path), 'utf8');

test('bodies are kept byte for byte, and the meta data holds no secrets', async (t) => {
  const { capture, dir, failures } = world(t);
  const writer = capture.begin('r1', AT);
  const body = Buffer.from(Array.from({ length: 3_000_000 }, (_, n) => (n * 31) % 256));
  for (let from = 0; from < body.length; from += 65_537) writer.request(body.subarray(from, from + 65_537));
  writer.response(Buffer.from('{"text":'));
  await until('the folder', () => existsSync(join(dir, DAY, 'r1', 'req.bin')));
  writer.response(Buffer.from('"hi"}'));
  writer.finish(
    meta({
      exchange: exchange({
        model: 'm',
        route: 'auto:hint',
        slotWaitMs: 3,
        errorKind: 'upstream',
        status: 502,
      }),
      requestHeaders: {
        AUTHORIZATION: 'Bearer s3cret',
        cookie: 's3cret',
        'x-a': ['1', '2'],
        gone: undefined,
      },
      responseHeaders: { 'Set-Cookie': ['s3cret', 's3cret'], 'content-type': 'application/json' },
      errorMessage: 'no',
    }),
  );
  await capture.close();
  const place = join(dir, DAY, 'r1');
  assert.deepEqual(readdirSync(place).sort(), ['meta.json', 'req.bin', 'resp.bin']);
  assert(readFileSync(join(place, 'req.bin')).equals(body));
  assert.equal(read(place, 'resp.bin'), '{"text":"hi"}');
  assert(!read(place, 'meta.json').includes('s3cret'));
  assert.deepEqual(JSON.parse(read(place, 'meta.json')), {
    request_id: 'r1',
    method: 'POST',
    url: '/v1/audio/transcriptions?x=1',
    request_headers: { AUTHORIZATION: '***', cookie: '***', 'x-a': ['1', '2'] },
    response_headers: { 'Set-Cookie': '***', 'content-type': 'application/json' },
    status: 502,
    class: '2xx',
    timings: { at: '2026-03-04T05:06:07.000Z', latency_ms: 100, slot_wait_ms: 3 },
    model: 'm',
    route: 'auto:hint',
    error: { kind: 'upstream', message: 'no' },
  });
  assert.equal(statSync(place).mode & 0o777, 0o700);
  assert.equal(statSync(join(place, 'req.bin')).mode & 0o777, 0o600);
  assert.deepEqual(failures, []);
});

test('every header that carries credentials is scrubbed in any case of its name', () => {
  const names = [
    ...['Authorization', 'Cookie', 'X-Api-Key', 'Proxy-Authorization', 'Set-Cookie', 'Api-Key'],
    ...['X-Goog-Api-Key', 'X-Auth-Token', 'X-Amz-Security-Token', 'X-CSRF-Token', 'Token', 'X-Client-Secret'],
  ];
  const anyCase = fc
    .tuple(fc.constantFrom(...names), fc.array(fc.boolean(), { minLength: 21, maxLength: 21 }))
    .map(([name, up]) => [...name].map((c, k) => (up[k] ? c.toUpperCase() : c.toLowerCase())).join(''));
  fc.assert(
    fc.property(anyCase, (name) => {
      const kept = { 'x-api-keys': 'kept', 'x-ratelimit-remaining-tokens': '9', 'x-tokenizer': 'bpe' };
      assert.deepEqual(scrubHeaders({ [name]: 'secret', ...kept }), { [name]: '***', ...kept });
    }),
  );
});

test('an id names a folder inside the day, which has the same name when the id is well-formed', () => {
  assert.equal(captureName('a-B_c:1.2'), 'a-B_c:1.2');
  assert.deepEqual(['.', '..', '...', ''].map(captureName), ['%2E', '%2E%2E', '...', '%']);
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.string({ unit: fc.constantFrom('.', '/', '\\', '\0', '%', 'a') }),
        fc.string({ unit: 'binary' }),
      ),
      (id) => {
        const place = join('/payloads/day', captureName(id));
        assert.equal(dirname(place), '/payloads/day');
        assert(!relative('/payloads/day', place).includes('\0'));
        assert(captureName(id).length <= 400);
      },
    ),
  );
});

test('the ids . and .. are captured like others', async (t) => {
  const { capture, dir } = world(t);
  for (const id of ['.', '..', 'x'.repeat(128)]) {
    const writer = capture.begin(id, AT);
    writer.request(Buffer.from(id));
    writer.finish(meta());
  }
  await capture.close();
  assert.deepEqual(readdirSync(dirname(dir)), ['payloads']);
  assert.deepEqual(readdirSync(dir), [DAY]);
  assert.deepEqual(readdirSync(join(dir, DAY)).sort(), ['%2E', '%2E%2E', 'x'.repeat(128)]);
});

test('a repeated id never writes into another capture, of this or an earlier run', async (t) => {
  const first = world(t);
  const capture = async (w: ReturnType<typeof world>, bodies: string[]) => {
    const writers = bodies.map(() => w.capture.begin('same', AT));
    for (const [k, body] of bodies.entries()) writers[k]?.request(Buffer.from(body));
    for (const writer of writers) writer.finish(meta());
    await w.capture.close();
  };
  await capture(first, ['a', 'b', 'c']);
  await capture(world(t, { dir: first.dir }), ['d', 'e']);
  const names = ['same', 'same-2', 'same-3', 'same-4', 'same-5'];
  assert.deepEqual(readdirSync(join(first.dir, DAY)).sort(), names);
  assert.deepEqual(
    names.map((name) => read(first.dir, DAY, name, 'req.bin')),
    ['a', 'b', 'c', 'd', 'e'],
  );
});

test('the newest complete capture of a repeated id is found, in the newest day, and no link is followed', async (t) => {
  const { capture, dir } = world(t);
  const write = (at: Date, count: number) => {
    for (let n = 1; n <= count; n += 1) {
      const writer = capture.begin('same', at);
      writer.request(Buffer.alloc(n));
      writer.finish(meta({ url: `/${n}`, exchange: exchange({ requestId: 'same' }) }));
    }
  };
  const found = async () => {
    const stored = await findCapture(dir, 'same');
    return stored && [relative(dir, stored.path), stored.meta.url, stored.requestBytes];
  };
  assert.equal(await found(), null);
  write(new Date(2026, 2, 3, 12), 1);
  write(AT, 11);
  capture.begin('same-12', AT).finish(meta());
  const other = exchange({ requestId: 'same-13' }); // another id, whose folder looks like a repeat of this one
  capture.begin('same-13', AT).finish(meta({ exchange: other }));
  await capture.close();
  rmSync(join(dir, DAY, 'same-12', 'meta.json')); // this is the highest number, but not complete
  assert.deepEqual(await found(), [join(DAY, 'same-11'), '/11', 11]);
  rmSync(join(dir, DAY, 'same-11', 'meta.json'));
  assert.deepEqual(await found(), [join(DAY, 'same-10'), '/10', 10]);
  symlinkSync(join(dir, DAY, 'same-10'), join(dir, DAY, 'same-99'));
  symlinkSync(join(dir, DAY), join(dir, '2026-03-09'));
  assert.deepEqual(await found(), [join(DAY, 'same-10'), '/10', 10]);
  rmSync(join(dir, DAY), { recursive: true });
  assert.deepEqual(await found(), [join('2026-03-03', 'same'), '/1', 1]);
});

test('meta.json is there only when the bodies are complete', async (t) => {
  const { capture, dir } = world(t);
  const writer = capture.begin('r1', AT);
  for (let n = 0; n < 200; n += 1) writer.request(Buffer.alloc(65_536, n));
  writer.finish(meta());
  await until('meta.json', () => {
    const whole = existsSync(join(dir, DAY, 'r1', 'meta.json'));
    const bytes = whole ? statSync(join(dir, DAY, 'r1', 'req.bin')).size : null;
    assert(bytes === null || bytes === 200 * 65_536);
    return whole;
  });
  writer.request(Buffer.from('too late'));
  await capture.close();
  assert.equal(statSync(join(dir, DAY, 'r1', 'req.bin')).size, 200 * 65_536);
});

test('a capture that is abandoned or never finished leaves nothing behind', async (t) => {
  const { capture, dir } = world(t);
  const one = capture.begin('one', AT);
  one.request(Buffer.alloc(100_000));
  await until('its folder', () => existsSync(join(dir, DAY, 'one')));
  one.abandon();
  one.response(Buffer.from('x'));
  one.finish(meta());
  await until('it is gone', () => !existsSync(join(dir, DAY, 'one')));
  capture.begin('two', AT).request(Buffer.from('x'));
  const three = capture.begin('three', AT);
  three.finish(meta());
  three.abandon();
  await capture.close();
  assert.deepEqual(readdirSync(join(dir, DAY)), ['three']);
  capture.begin('late', AT).finish(meta());
  await capture.close();
  assert.deepEqual(readdirSync(join(dir, DAY)), ['three']);
});

test('beyond the bound a body is cut, without holes, the meta data says so, and the memory comes back', async (t) => {
  const { capture, dir } = world(t, { maxWaitingBytes: 16_384 + 10_000 });
  const one = capture.begin('one', AT);
  const chunk = (fill: string) => Buffer.alloc(4000, fill);
  one.request(chunk('a'));
  one.request(chunk('b'));
  one.request(chunk('c'));
  one.request(Buffer.from('d'));
  one.response(Buffer.from('small'));
  await until(
    'it is written',
    () => (statSync(join(dir, DAY, 'one', 'resp.bin'), { throwIfNoEntry: false })?.size ?? 0) > 0,
  );
  one.request(Buffer.from('e'));
  one.finish(meta());
  await until('it is whole', () => existsSync(join(dir, DAY, 'one', 'meta.json')));
  await new Promise((resolve) => setImmediate(resolve)); // then its memory comes back
  const two = capture.begin('two', AT);
  two.request(chunk('a'));
  two.request(chunk('b'));
  two.finish(meta());
  await capture.close();
  assert.equal(read(dir, DAY, 'one', 'req.bin'), `${chunk('a')}${chunk('b')}`);
  assert.equal(read(dir, DAY, 'one', 'resp.bin'), 'small');
  assert.equal(JSON.parse(read(dir, DAY, 'one', 'meta.json')).truncated, true);
  assert.equal(read(dir, DAY, 'two', 'req.bin').length, 8000);
  assert.equal(JSON.parse(read(dir, DAY, 'two', 'meta.json')).truncated, undefined);
});

test('requests beyond the bound are left out, with one line in the log', async (t) => {
  const { capture, dir, lines } = world(t, { maxWaitingBytes: 2 * 16_384 });
  const writers = ['a', 'b', 'c', 'd'].map((id) => capture.begin(id, AT));
  for (const writer of writers) writer.finish(meta());
  await until('the first two', () => existsSync(join(dir, DAY, 'b', 'meta.json')));
  capture.begin('e', AT).finish(meta());
  await capture.close();
  assert.deepEqual(readdirSync(join(dir, DAY)).sort(), ['a', 'b', 'e']);
  assert.deepEqual(lines, ['warn The disk of the captures is too slow; some requests are not captured']);
});

test('many captures at once hold one file open', async (t) => {
  const { capture, dir, failures } = world(t);
  const writers = Array.from({ length: 500 }, (_, n) => capture.begin(`r${n}`, AT));
  let most = 0;
  for (let round = 0; round < 5; round += 1) {
    for (const writer of writers) writer.request(Buffer.from(`${round}`));
    await new Promise((resolve) => setTimeout(resolve, 5));
    const files = readdirSync('/proc/self/fd').filter((fd) => {
      try {
        return readFileSync(`/proc/self/fdinfo/${fd}`) && statSync(`/proc/self/fd/${fd}`).isFile();
      } catch {
        return false;
      }
    });
    most = Math.max(most, files.length);
  }
  for (const writer of writers) writer.finish(meta());
  await capture.close();
  assert(most < 20, `${most} files were open`);
  const captures = await listCaptures(dir);
  assert.equal(captures.length, 500);
  for (const { path } of captures) assert.equal(read(path, 'req.bin'), '01234');
  assert.deepEqual(failures, []);
});

test('a full disk switches capture off once, its halves are removed, callers go on, and capture works again', (t) =>
  onSmallDisk(t, 64, async (dir) => {
    const { capture, lines, failures } = world(t, { dir });
    const whole = capture.begin('whole', AT);
    whole.request(Buffer.alloc(4000));
    whole.finish(meta());
    await until('the first is whole', () => existsSync(join(dir, DAY, 'whole', 'meta.json')));
    const [one, two] = [capture.begin('one', AT), capture.begin('two', AT)];
    for (let n = 0; n < 50; n += 1) for (const writer of [one, two]) writer.request(Buffer.alloc(4000));
    await until('it failed', () => failures.length > 0);
    one.request(Buffer.alloc(10));
    two.finish(meta());
    await until('the halves are gone', () => readdirSync(join(dir, DAY)).length === 1);
    assert.deepEqual(failures, ['ENOSPC']);
    assert.deepEqual(lines, ['error Payload capture is switched off, because the disk failed']);
    const again = capture.begin('again', AT);
    again.request(Buffer.from('x'));
    again.finish(meta());
    await capture.close();
    assert.deepEqual(readdirSync(join(dir, DAY)).sort(), ['again', 'whole']);
    assert(existsSync(join(dir, DAY, 'again', 'meta.json')));
  }));

test('a folder that cannot be made switches capture off', async (t) => {
  const dir = folder(t);
  writeFileSync(join(dir, 'file'), '');
  const { capture, failures, lines } = world(t, { dir: join(dir, 'file', 'payloads') });
  const writer = capture.begin('r1', AT);
  writer.request(Buffer.from('x'));
  writer.finish(meta());
  await capture.close();
  assert.deepEqual(failures, ['ENOTDIR']);
  assert.equal(lines.filter((line) => line.includes('switched off')).length, 1);
});

test('a folder removed by hand loses its captures and nothing else', async (t) => {
  const { capture, dir, failures } = world(t);
  const writer = capture.begin('r1', AT);
  await until('its folder', () => existsSync(join(dir, DAY, 'r1', 'resp.bin')));
  rmSync(dir, { recursive: true });
  writer.request(Buffer.from('x'));
  writer.finish(meta());
  const next = capture.begin('r2', AT);
  next.finish(meta());
  await capture.close();
  assert.deepEqual(readdirSync(join(dir, DAY)), ['r2']);
  assert.deepEqual(failures, []);
});

test('usage counts captures, and clear removes every one, open ones too, and nothing else', async (t) => {
  const { capture, dir } = world(t);
  assert.deepEqual(await capture.usage(), { bytes: 0, captures: 0 });
  assert.equal(await capture.clear(), 0);
  const done = capture.begin('done', AT);
  done.request(Buffer.alloc(1000));
  done.finish(meta());
  await until('it is whole', () => existsSync(join(dir, DAY, 'done', 'meta.json')));
  const open = capture.begin('open', AT);
  open.request(Buffer.alloc(500));
  await until(
    'it is open',
    () => statSync(join(dir, DAY, 'open', 'req.bin'), { throwIfNoEntry: false })?.size === 500,
  );
  const blocks = 2 * 2 + 1 + 2; // the folders, two short bodies with something in them, and meta.json
  assert.deepEqual(await capture.usage(), { bytes: blocks * 4096, captures: 2 });
  mkdirSync(join(dir, DAY, 'notes'));
  writeFileSync(join(dir, DAY, 'notes', 'mine.txt'), '');
  assert.equal(await capture.clear(), 2);
  open.request(Buffer.from('x'));
  open.finish(meta());
  const after = capture.begin('after', AT);
  after.finish(meta());
  await capture.close();
  assert.deepEqual(readdirSync(join(dir, DAY)).sort(), ['after', 'notes']);
});

test('a day that is a symbolic link is not written through, and a linked body is not a capture', async (t) => {
  const elsewhere = folder(t);
  const { capture, dir, failures } = world(t);
  mkdirSync(dir, { recursive: true });
  symlinkSync(elsewhere, join(dir, DAY));
  capture.begin('r1', AT).finish(meta());
  await capture.close();
  assert.deepEqual(readdirSync(elsewhere), []);
  assert.equal(failures.length, 1);

  const other = world(t);
  other.capture.begin('r2', AT).finish(meta({ exchange: exchange({ requestId: 'r2' }) }));
  await other.capture.close();
  assert.notEqual(await findCapture(other.dir, 'r2'), null);
  writeFileSync(join(elsewhere, 'secret'), 'secret');
  for (const file of ['req.bin', 'resp.bin', 'meta.json']) {
    const path = join(other.dir, DAY, 'r2', file);
    const content = readFileSync(path);
    rmSync(path);
    if (file === 'meta.json') writeFileSync(join(elsewhere, 'secret'), content);
    symlinkSync(join(elsewhere, 'secret'), path);
    assert.equal(await findCapture(other.dir, 'r2'), null, file);
    rmSync(path);
    writeFileSync(path, content);
  }
});

test('what another gateway writes into a capture does not keep the captures from being cleared', async (t) => {
  const { capture, dir } = world(t);
  for (const name of ['r1', 'r2', 'r3']) capture.begin(name, AT).finish(meta());
  await until('they are there', async () => (await capture.usage()).captures === 3);
  const busy = join(dir, DAY, 'r2');
  let isCleared = false;
  const write = () => {
    if (isCleared || !existsSync(busy)) return;
    writeFileSync(join(busy, 'req.bin'), 'more');
    setImmediate(write);
  };
  write();
  const cleared = await capture.clear();
  isCleared = true;
  assert(cleared >= 2, `${cleared} were cleared`);
  assert(!existsSync(join(dir, DAY, 'r1')) && !existsSync(join(dir, DAY, 'r3')));
  assert.equal(await capture.clear(), 3 - cleared);
});

test('clear follows no symbolic link', async (t) => {
  const { capture, dir } = world(t);
  const outside = join(folder(t), DAY, 'r1');
  mkdirSync(outside, { recursive: true });
  writeFileSync(join(outside, 'req.bin'), 'precious');
  mkdirSync(join(dir, DAY), { recursive: true });
  symlinkSync(outside, join(dir, DAY, 'linked'));
  symlinkSync(dirname(outside), join(dir, '2026-03-05'));
  mkdirSync(join(dir, DAY, 'inner'));
  symlinkSync(join(outside, 'req.bin'), join(dir, DAY, 'inner', 'req.bin'));
  assert.equal(await capture.clear(), 0);
  assert.equal(read(outside, 'req.bin'), 'precious');
  assert(existsSync(join(dir, DAY, 'inner')));
});

test('the captures never take more than their size, and the oldest go first', async (t) => {
  const maxBytes = 1_000_000;
  const at = new Date(); // captures of an old day would all be as old as its end
  const day = () => join(dir, readdirSync(dir)[0] ?? '');
  const { capture, dir, failures } = world(t, { maxBytes });
  let most = 0;
  const watch = setInterval(() => {
    if (!existsSync(dir)) return;
    const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    const sizes = files.map(
      (file) => statSync(join(file.parentPath, file.name), { throwIfNoEntry: false })?.size ?? 0,
    );
    most = Math.max(
      most,
      sizes.reduce((sum, size) => sum + size, 0),
    );
  }, 1);
  t.after(() => clearInterval(watch));
  for (let n = 0; n < 20; n++) {
    const writer = capture.begin(`r${n}`, at);
    writer.request(Buffer.alloc(250_000, 1));
    writer.finish(meta());
    await until('it is written', () => existsSync(dir) && existsSync(join(day(), `r${n}`, 'meta.json')));
  }
  assert.deepEqual(failures, []);
  const left = readdirSync(day());
  assert.deepEqual(left.sort(), ['r17', 'r18', 'r19']);
  assert(most <= maxBytes && most > maxBytes / 2, `${most} bytes`);
  await capture.close();
});

test('small captures count with what they take on the disk, so that they stay within their size too', async (t) => {
  const maxBytes = 400_000;
  const { capture, dir } = world(t, { maxBytes });
  for (let n = 0; n < 100; n++) {
    const writer = capture.begin(`r${n}`, AT);
    writer.request(Buffer.from('{}'));
    writer.response(Buffer.from('{}'));
    writer.finish(meta());
  }
  await capture.close();
  const taken = readdirSync(dir, { recursive: true, encoding: 'utf8' }).map(
    (path) => statSync(join(dir, path)).blocks * 512,
  );
  const sum = taken.reduce((all, bytes) => all + bytes, 0);
  assert(sum <= maxBytes, `${sum} bytes in ${taken.length} files`);
  assert(readdirSync(join(dir, DAY)).length > 10);
});

test('a folder of captures is measured once at a time, and the answer is kept from then on', async () => {
  let scans = 0;
  let ends: (found: { bytes: number; captures: number }) => void = () => undefined;
  const usage = () => {
    scans += 1;
    return new Promise<{ bytes: number; captures: number }>((resolve) => (ends = resolve));
  };
  let at = 0;
  const actions = createCaptureActions({
    ...{ dir: '', base: () => null, apiKey: undefined, failure: () => null, now: () => at },
    capture: { usage } as Capture,
  });
  const first = actions.usage();
  at = 60_000;
  const second = actions.usage();
  ends({ bytes: 1, captures: 1 });
  assert.deepEqual(await Promise.all([first, second]), Array(2).fill({ bytes: 1, captures: 1 }));
  at += 4000;
  await actions.usage();
  assert.equal(scans, 1);
  at += 2000;
  void actions.usage();
  assert.equal(scans, 2);
});

test('one capture takes at most half of the size and is then cut, and says so', async (t) => {
  const { capture, dir } = world(t, { maxBytes: 4_000_000 });
  const writer = capture.begin('large', AT);
  for (let n = 0; n < 60; n++) writer.request(Buffer.alloc(100_000, 1));
  writer.finish(meta());
  await capture.close();
  const bytes = statSync(join(dir, DAY, 'large', 'req.bin')).size;
  assert(bytes <= 2_000_000 && bytes > 0, `${bytes} bytes`);
  assert.equal(JSON.parse(read(dir, DAY, 'large', 'meta.json')).truncated, true);
});

test('captures that were there before, and those that are cleared, are counted', async (t) => {
  const { capture, dir } = world(t, { maxBytes: 1_000_000 });
  const old = join(dir, '2026-03-01', 'old');
  mkdirSync(old, { recursive: true });
  writeFileSync(join(old, 'req.bin'), Buffer.alloc(900_000));
  const write = async (id: string) => {
    const writer = capture.begin(id, AT);
    writer.request(Buffer.alloc(300_000));
    writer.finish(meta());
    await until('it is written', () => existsSync(join(dir, DAY, id, 'meta.json')));
  };
  await write('new');
  assert(!existsSync(old));
  await capture.clear();
  for (const id of ['a', 'b', 'c']) await write(id);
  assert.deepEqual(readdirSync(join(dir, DAY)).sort(), ['a', 'b', 'c']);
  await capture.close();
});
