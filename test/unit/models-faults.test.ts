/** These tests say what stays true of the weights where the disk fails, or a process ends, at the worst moment. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import fs, { mkdir, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { mock, type TestContext, test } from 'node:test';
import { acquireLock } from '../../src/models/lock.ts';
import { createModelStore, type ModelStoreOptions } from '../../src/models/store.ts';
import { oneModel, someWeights } from '../model/hub-server.ts';

const ID = 'multilingual-base';
const weights = someWeights();
/** What an import by name would give while it is replaced. */
const { rename, rm } = fs;

/** A store whose f16 file is there already, and its q8_0 file is to be made. */
async function scene(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'voxgate-models-faults-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  await writeFile(join(dir, 'ggml-base.bin'), weights);
  const warnings: string[] = [];
  const open = (quantize: ModelStoreOptions['quantize']) =>
    createModelStore({
      ...{ dir, download: false, precision: 'q8_0', sources: [], quantize },
      log: { info() {}, warn: (line) => warnings.push(line) },
      catalogue: [oneModel(weights)],
    });
  return { dir, warnings, open, made: join(dir, 'ggml-base-q8_0.bin') };
}

/** Replaces a function of the file system, also where it was imported by its name. */
function replace<Name extends 'rename' | 'rm'>(t: TestContext, name: Name, by: (typeof fs)[Name]) {
  mock.method(fs, name, by);
  syncBuiltinESMExports();
  const restore = () => {
    mock.restoreAll();
    syncBuiltinESMExports();
  };
  t.after(restore);
  return restore;
}

test('work on a model that leaves its scratch folder behind gives the lock back, and ends as it ended', async (t) => {
  const { dir, warnings, open, made } = await scene(t);
  let begun = false;
  const restore = replace(t, 'rm', async (path, options) => {
    if (begun && String(path).endsWith('.tmp')) throw new Error('the folder is busy');
    await rm(path, options);
  });
  const store = open(async ({ target }) => {
    begun = true;
    await writeFile(target, 'quantized');
  });
  assert.equal((await store.ensure(ID)).path, made);
  assert.equal(existsSync(join(dir, `.${ID}.lock`)), false);
  assert.deepEqual(warnings, [`Left behind by ${ID}: the folder is busy`]);
  restore();
  assert.equal((await store.remove(ID)).length, 2);
  assert.equal(existsSync(join(dir, `.${ID}.tmp`)), false);
});

test('of two processes that find a lock dead, the slower one does not take that of the faster', async (t) => {
  const { dir } = await scene(t);
  const path = join(dir, `.${ID}.lock`);
  // A container was restarted: the lock has the id of this process, but is not its own.
  await writeFile(path, JSON.stringify({ pid: process.pid, host: hostname(), nonce: 1 }));
  const faster = JSON.stringify({ pid: process.ppid, host: hostname(), nonce: 2 });
  let raced = false;
  replace(t, 'rename', async (from, to) => {
    if (!raced) {
      raced = true;
      await rm(path);
      await writeFile(path, faster);
    }
    await rename(from, to);
  });
  // It waits, and is called off when it has done so for a while.
  const calledOff = new AbortController();
  let waits = 0;
  const onWait = () => {
    waits += 1;
    if (waits === 20) calledOff.abort(new Error('called off'));
  };
  const slower = acquireLock(path, calledOff.signal, onWait, { touchMs: 1000, staleMs: 60_000, pollMs: 10 });
  await assert.rejects(slower, { message: /called off|aborted/ });
  assert(raced);
  assert.equal(await readFile(path, 'utf8'), faster);
  assert.deepEqual((await readdir(dir)).sort(), [`.${ID}.lock`, 'ggml-base.bin']);
});

test('a process that ends as soon as a quantized file has its name leaves a file that is used', async (t) => {
  const { open, made } = await scene(t);
  const restore = replace(t, 'rename', async (from, to) => {
    await rename(from, to);
    if (to === made) throw new Error('the process ends');
  });
  await open(({ target }) => writeFile(target, 'quantized')).ensure(ID);
  restore();
  const next = open(() => assert.fail('it is there already'));
  assert.equal((await next.ensure(ID)).path, made);
});

test('a file that the catalogue does not know is made only with a record of it', async (t) => {
  const { dir, warnings, open, made } = await scene(t);
  await mkdir(`${made}.json`);
  const { path } = await open(({ target }) => writeFile(target, 'quantized')).ensure(ID);
  assert.equal(path, join(dir, 'ggml-base.bin'));
  assert.match(warnings.join(), /the record of ggml-base-q8_0.bin cannot be written: EISDIR/);
  assert.equal(existsSync(made), false);
});
