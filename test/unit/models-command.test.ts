/** `voxgate models` runs over a scripted store: these tests say what it prints where, and how it exits. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, test } from 'node:test';
import { Command } from 'commander';
import { createProgressView } from '../../src/cli/model-progress.ts';
import { registerModelsCommand } from '../../src/cli/models.ts';
import type { NativeEngine } from '../../src/engine/types.ts';
import { ALL_WEIGHTS, findModel } from '../../src/models/catalogue.ts';
import type { ModelStore } from '../../src/models/store.ts';
import { localFile } from '../../src/models/weights.ts';
import { createNaming } from '../../src/recognition.ts';

afterEach(() => {
  process.exitCode = undefined;
});

async function run(args: string[], store: Partial<ModelStore>, texts: string[] = []) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const program = new Command().exitOverride().configureOutput({ writeErr() {} });
  registerModelsCommand(program, {
    async open() {
      const full = { dir: '/models', isInstalled: () => false, ...store } as ModelStore;
      const config = { modelAllow: [], modelAliases: { mine: 'cjk' }, modelDefaultSize: 'tiny' };
      const engine = { info: { families: ['whisper', 'parakeet', 'sensevoice'] } } as unknown as NativeEngine;
      const caches = { models: { entries: () => [], fits: () => true } } as never;
      const naming = createNaming(config, { store: full, engine }, caches);
      return { store: full, modelId: (name) => naming.modelId(name) ?? name, threads: 2 };
    },
    async start() {
      const answers = [...texts];
      return {
        ask: async () =>
          JSON.stringify({
            text: answers.shift() ?? '',
            duration: 11,
            language: 'english',
            language_code: 'en',
          }),
        async [Symbol.asyncDispose]() {},
      };
    },
    stdout,
    stderr: stderr as unknown as NodeJS.WriteStream,
  });
  await program.parseAsync(['models', ...args], { from: 'user' });
  return { out: String(stdout.read() ?? ''), err: String(stderr.read() ?? ''), code: process.exitCode ?? 0 };
}

const listed = {
  id: 'multilingual-base',
  family: 'whisper' as const,
  installed: true,
  bytes: 81768585,
  files: [{ file: 'ggml-base-q8_0.bin', precision: 'q8_0' as const, bytes: 81768585 }],
};

test('list prints a table for people and JSON for programs', async () => {
  const list = () => [listed, { ...listed, id: 'cjk', installed: false, bytes: 0, files: [] }];
  const { out } = await run(['list'], { list });
  assert.match(
    out,
    /^\/models\nmultilingual-base {2}whisper {2}CPU 19\d MB \(2 lanes\), GPU 13\d MB {2}82 MB \(ggml-base-q8_0\.bin\)\ncjk .*CPU more than 253 MB +not installed/,
  );
  const json = JSON.parse((await run(['list', '--json'], { list })).out);
  const [{ memory, ...base }] = json.models;
  assert.deepEqual([json.dir, base], ['/models', listed]);
  assert.deepEqual([memory.cpu.lanes, memory.cpu.isLeast, memory.gpu.lanes], [2, false, 1]);
});

test('pull prints the path on stdout and progress on stderr, and exits with 0', async () => {
  const pull: ModelStore['pull'] = async (id, options) => {
    const progress = { id, phase: 'downloading' as const, what: 'x.bin', doneBytes: 5e6, totalBytes: 2e7 };
    options?.onProgress?.(progress);
    return { path: `/models/${id}` };
  };
  const { out, err, code } = await run(['pull', 'cjk'], { pull });
  assert.equal(out, '/models/cjk\n');
  assert.equal(err, 'downloading x.bin 5.0 MB of 20 MB\n');
  assert.equal(code, 0);
});

test('pull and import take an alias wherever they take an id, and auto is the size that it prefers', async () => {
  const pull: ModelStore['pull'] = async (id) => ({ path: id });
  for (const [name, id] of [
    ['whisper-small', 'multilingual-small'],
    ['base', 'multilingual-base'],
    ['openai/whisper-large', 'multilingual-large-v3'],
    ['mine', 'cjk'],
    ['auto', 'multilingual-tiny'],
    ['whisper-1', 'multilingual-tiny'],
    ['no such model', 'no such model'],
  ] as const)
    assert.equal((await run(['pull', name], { pull })).out, `${id}\n`);
  const onDisk = { pull, isInstalled: (id: string) => id === 'multilingual-base' };
  assert.equal((await run(['pull', 'whisper-1'], onDisk)).out, 'multilingual-base\n', 'requests use it');
  const take: ModelStore['import'] = async (_source, options) => ({ id: options?.id ?? '', path: '/x' });
  const { out } = await run(['import', '/dir', '--id', 'whisper-large-v2'], { import: take });
  assert.equal(out, 'multilingual-large-v2 /x\n');
});

test('a failure is one line on stderr and exit code 1', async () => {
  const pull: ModelStore['pull'] = async () => {
    throw new Error('no weights', { cause: new Error('no network') });
  };
  const { out, err, code } = await run(['pull', 'cjk'], { pull });
  assert.deepEqual([out, err, code], ['', 'no weights: no network\n', 1], 'with what a client is not told');
});

test('Ctrl-C aborts the work and exits with 130', async () => {
  const pull: ModelStore['pull'] = (_, options) =>
    new Promise((_, reject) => {
      const work = setTimeout(() => reject(new Error('never interrupted')), 5000);
      options?.signal?.addEventListener('abort', () => {
        clearTimeout(work);
        reject(options.signal?.reason);
      });
      process.kill(process.pid, 'SIGINT');
    });
  assert.equal((await run(['pull', 'cjk'], { pull })).code, 130);
});

test('import passes the folder and the id', async () => {
  const seen: unknown[] = [];
  const take: ModelStore['import'] = async (source, options) => {
    seen.push(source, options?.id);
    return { id: 'multilingual-large-v2', path: '/models/x' };
  };
  const { out } = await run(['import', '/some/dir', '--id', 'multilingual-large-v2'], { import: take });
  assert.deepEqual(seen, ['/some/dir', 'multilingual-large-v2']);
  assert.equal(out, 'multilingual-large-v2 /models/x\n');
  await assert.rejects(run(['pull'], {}), /missing required argument/);
});

test('without a terminal a step is announced once and then now and then', () => {
  const stream = new PassThrough();
  let now = 0;
  const view = createProgressView(stream as unknown as NodeJS.WriteStream, () => now);
  const progress = { id: 'x', phase: 'downloading' as const, what: 'f', doneBytes: 0, totalBytes: 1e7 };
  view.update(progress);
  view.update({ ...progress, doneBytes: 1e6 });
  now = 6000;
  view.update({ ...progress, doneBytes: 2e6 });
  view.update({ ...progress, phase: 'verifying', totalBytes: null, doneBytes: 0 });
  view.close();
  assert.equal(
    String(stream.read()),
    'downloading f 0.0 MB of 10 MB\ndownloading f 2.0 MB of 10 MB\nverifying f\n',
  );
});

test('the catalogue is pinned and unambiguous', () => {
  const files = new Set<string>();
  for (const model of ALL_WEIGHTS) {
    for (const published of Object.values(model.files)) {
      assert.match(published.revision, /^[0-9a-f]{40}$/);
      assert.equal(published.sha256 === null, published.bytes === null);
      if (published.sha256 !== null) assert.match(published.sha256, /^[0-9a-f]{64}$/);
      assert.equal(files.has(published.file), false);
      files.add(published.file);
    }
    for (const derived of model.derived) assert.equal(localFile(model, derived.precision), derived.file);
  }
  const large = findModel('multilingual-large-v3');
  assert.ok(large);
  assert.equal(localFile(large, 'q8_0'), 'ggml-large-v3-q8_0.bin');
});

const stored = { file: 'ggml-base-q8_0.bin', path: '/models/ggml-base-q8_0.bin', problem: null };

test('verify names each file, and exits with 1 when one is wrong', async () => {
  const asked: string[] = [];
  const list = () => [listed];
  const verify: ModelStore['verify'] = async (id) => {
    asked.push(id);
    return [{ ...stored, problem: id === 'cjk' ? 'found sha256 1, expected 2' : null }];
  };
  const all = await run(['verify'], { list, verify });
  assert.deepEqual([all.out, all.err, all.code], [`ok     ${stored.path}\n`, '', 0]);
  const two = await run(['verify', 'whisper-base', 'mine'], { list, verify });
  assert.match(two.out, /^ok .*\nwrong {2}\/models\/ggml-base-q8_0\.bin: found sha256 1, expected 2\n$/);
  assert.deepEqual([two.err, two.code], ['1 of 2 files are not what they should be\n', 1]);
  assert.deepEqual(asked, ['multilingual-base', 'multilingual-base', 'cjk']);
  const { out } = await run(['verify', '--json'], { list, verify });
  assert.deepEqual(JSON.parse(out), { files: [{ id: 'multilingual-base', ...stored }] });
});

test('verify exits with 1 where nothing was verified, and says what is not there', async () => {
  const list = () => [listed];
  const verify: ModelStore['verify'] = async (id) => (id === 'cjk' ? [] : [stored]);
  const named = await run(['verify', 'whisper-base', 'mine'], { list, verify });
  assert.deepEqual(
    [named.out, named.err, named.code],
    [`ok     ${stored.path}\n`, 'cjk is not in /models\n', 1],
  );
  const none = await run(['verify'], { list, verify: async () => [] });
  assert.deepEqual([none.out, none.code], ['', 1]);
  assert.match(none.err, /^no weights are in \/models: .*voxgate models pull/);
});

test('rm tells what it removed, and that there was nothing', async () => {
  const remove: ModelStore['remove'] = async (id) =>
    id === 'cjk' ? [] : [{ file: stored.file, bytes: 81768585 }];
  const { out, err, code } = await run(['rm', 'whisper-base', 'mine'], { remove });
  assert.equal(out, 'removed ggml-base-q8_0.bin (82 MB)\n');
  assert.deepEqual([err, code], ['cjk is not in /models\n', 1]);
});

const SAID =
  'And so my fellow Americans, ask not what your country can do for you, ask what you can do for your country.';

test('check tells how many words of the clip are wrong, and how fast it went', async () => {
  const here = { isInstalled: () => true };
  const good = await run(['check', 'mine'], here, ['', `${SAID} Thanks!`.toUpperCase()]);
  assert.match(
    good.out,
    /^sample\.mp3, en: 4\.5 % of the words wrong, 11\.0 s in [\d.]+ s \(real-time factor [\d.]+\)\n {2}AND SO MY/,
  );
  assert.deepEqual([good.err, good.code], ['', 0]);
  const { out, code } = await run(['check', 'cjk', '--json'], here, ['', SAID]);
  const { model, clips } = JSON.parse(out);
  assert.deepEqual(
    [model, clips.length, clips[0].wordErrorRate, clips[0].heard, code],
    ['cjk', 1, 0, SAID, 0],
  );
});

test('check fails where more than a fifth of the words are wrong', async () => {
  for (const heard of [
    '',
    'and so',
    SAID.replace(/ask/g, 'task')
      .replace(/country/g, 'contrary')
      .replace('so', ''),
  ]) {
    const { out, err, code } = await run(['check', 'european'], { isInstalled: () => true }, ['', heard]);
    assert.match(out, /% of the words wrong/);
    assert.match(err, /european does not work: of 1 of 1 clips more than 20 % of the words are wrong/);
    assert.equal(code, 1);
  }
});

test('check says what has to be fetched, and what cannot be checked', async () => {
  const { err, code } = await run(['check', 'european'], { isInstalled: () => false });
  assert.equal(
    err,
    '/models lacks european and voice-activity: fetch it with voxgate models pull european\n',
  );
  assert.equal(code, 1);
  assert.match((await run(['check', 'diarization'], {})).err, /diarization does not transcribe/);
});

test('check takes the clips of a folder, with the language of their name', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'voxgate-check-'));
  try {
    const none = await run(['check', 'cjk', '--clips', folder], { isInstalled: () => true });
    assert.match(none.err, /has no audio file with its text beside it/);
    process.exitCode = undefined;
    for (const [name, text] of [
      ['zh-1.wav', ''],
      ['zh-1.txt', '今天天气，很好。'],
      ['long name.flac', ''],
      ['long name.txt', 'It’s 20 degrees'],
      ['notes.txt', ''],
    ] as const)
      writeFileSync(join(folder, name), text);
    const texts = ['', 'its 20 degrees', '今天天气不好'];
    const { out, code } = await run(
      ['check', 'cjk', '--clips', folder, '--json'],
      { isInstalled: () => true },
      texts,
    );
    const { clips } = JSON.parse(out) as {
      clips: { clip: string; language: string; wordErrorRate: number }[];
    };
    assert.deepEqual(
      clips.map(({ clip, language, wordErrorRate }) => [clip, language, wordErrorRate.toFixed(2)]),
      [
        ['long name.flac', 'en', '0.00'],
        ['zh-1.wav', 'zh', '0.17'],
      ],
    );
    assert.equal(code, 0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
