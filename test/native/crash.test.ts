/** A native call that ends the process leaves why on standard error, where the supervisor keeps it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { chunkOptions, fakeModelFile } from './fixtures.ts';

const addonUrl = new URL('../../src/engine/addon.ts', import.meta.url).href;

for (const [how, signal, words] of [
  ['assert', 'SIGABRT', /GGML_ASSERT\(crash\.how != "assert"\) failed/],
  ['terminate', 'SIGABRT', /thrown/],
  ['memory', 'SIGSEGV', /^/],
] as const)
  test(`a native call that ends the process (${how}) ends it by ${signal}, and says why`, () => {
    const model = { family: 'fake', path: fakeModelFile(`crash ${how}`), device: 'cpu', threads: 1 };
    const script = `
      import { loadNative } from ${JSON.stringify(addonUrl)};
      const model = await loadNative().loadModel(${JSON.stringify(model)});
      await model.transcribe(new Float32Array(100), ${JSON.stringify(chunkOptions)});`;
    const args = ['--import', 'tsx', '--input-type=module', '-e', script];
    const ended = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 });
    assert.deepEqual([ended.status, ended.signal], [null, signal], ended.stderr);
    assert.match(ended.stderr, words);
  });
