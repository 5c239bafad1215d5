/**
 * The addon lives in a process: these tests cover its logger and memory, worker threads, and exits in the middle of
 * work.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { loadNative } from '../../src/engine/addon.ts';
import { CATALOGUE } from '../../src/models/catalogue.ts';
import { until } from '../until.ts';
import { chunkOptions, fakeModelFile, markFile, textOf } from './fixtures.ts';

const addonUrl = new URL('../../src/engine/addon.ts', import.meta.url).href;
const fake = (path: string) => ({ family: 'fake' as const, path, device: 'cpu', threads: 1 });

/** Runs a script that has `native`, `path` and `options`, in a process of its own. */
function runScript(path: string, body: string, flags: string[] = []) {
  const script = `
    import { loadNative } from ${JSON.stringify(addonUrl)};
    const native = loadNative();
    const load = () => native.loadModel(${JSON.stringify(fake(path))});
    const options = ${JSON.stringify(chunkOptions)};
    ${body}`;
  const started = performance.now();
  const result = spawnSync(
    process.execPath,
    [...flags, '--import', 'tsx', '--input-type=module', '-e', script],
    {
      encoding: 'utf8',
      timeout: 60_000,
    },
  );
  return { ...result, elapsedMs: performance.now() - started };
}

test('exit() while a call runs ends the process cleanly', () => {
  const mark = markFile();
  const path = fakeModelFile(`touch ${mark}`, 'delay_ms 60000');
  const result = runScript(
    path,
    `const { existsSync } = await import('node:fs');
       const model = await load();
       model.transcribe(new Float32Array(100), options);
       setInterval(() => { if (existsSync(${JSON.stringify(mark)})) process.exit(7); }, 5);`,
  );
  assert.equal(result.status, 7, result.stderr);
});

test('an exception while a model loads and calls wait ends the process cleanly', () => {
  const path = fakeModelFile('load_delay_ms 100', 'delay_ms 60000');
  const result = runScript(
    path,
    `const model = await load();
       for (let i = 0; i < 5; i++) model.transcribe(new Float32Array(100), options).catch(() => {});
       load();
       setTimeout(() => { throw new Error('over'); }, 20);`,
  );
  assert.equal(result.status, 1);
  assert.match(result.stderr, /Error: over/);
});

test('the end of the process waits for pending calls, but not for open models and loggers', () => {
  const path = fakeModelFile('delay_ms 200', 'segment 0 1 x');
  const result = runScript(
    path,
    `native.setLogger(() => {});
       const model = await load();
       model.transcribe(new Float32Array(100), options).then((s) => console.log(s.length));`,
  );
  assert.equal(result.status, 0, result.stderr);
  assert.equal(result.stdout, '1\n');
});

test('an unreferenced model is collected with its thread, but not while a call runs', () => {
  const path = fakeModelFile('delay_ms 100', 'segment 0 1 x');
  const result = runScript(
    path,
    `import { readdirSync } from 'node:fs';
       const threads = () => process.platform === 'linux' ? readdirSync('/proc/self/task').length : 0;
       await (await load()).close();
       const before = threads();
       const call = (await load()).transcribe(new Float32Array(100), options);
       globalThis.gc();
       console.log((await call).length);
       for (let i = 0; i < 20; i++) await load();
       for (let i = 0; i < 400 && threads() > before; i++) {
         await new Promise((resolve) => setTimeout(resolve, 50));
         globalThis.gc();
       }
       console.log(threads() - before <= 0);`,
    ['--expose-gc'],
  );
  assert.equal(result.status, 0, result.stderr);
  assert.equal(result.stdout, '1\ntrue\n');
});

test('a worker thread has an environment of its own, and ends while its call runs', async () => {
  const mark = markFile();
  const path = fakeModelFile(`touch ${mark}`, 'delay_ms 60000');
  const code = `
      (async () => {
        const { register } = await import('tsx/esm/api');
        register();
        const { loadNative } = await import(${JSON.stringify(addonUrl)});
        const native = loadNative();
        native.setLogger(() => {});
        const model = await native.loadModel(${JSON.stringify(fake(path))});
        await model.transcribe(new Float32Array(100), ${JSON.stringify(chunkOptions)});
      })();`;
  for (let round = 0; round < 3; round++) {
    const worker = new Worker(code, { eval: true });
    let failure: unknown;
    worker.once('error', (error) => {
      failure = error;
    });
    await until('the call runs', () => existsSync(mark) || failure !== undefined, 30_000);
    assert.equal(failure, undefined);
    await worker.terminate();
    rmSync(mark);
  }
  const model = await loadNative().loadModel(fake(fakeModelFile('segment 0 1 x')));
  assert.equal(textOf(await model.transcribe(new Float32Array(100), chunkOptions)), ' x');
  await model.close();
});

test('worker threads load, log and compute side by side, and are ended in the middle of it', async () => {
  const path = new URL('./data/parakeet-script.bin', import.meta.url).pathname;
  const code = `
      (async () => {
        const { register } = await import('tsx/esm/api');
        register();
        const { loadNative } = await import(${JSON.stringify(addonUrl)});
        const native = loadNative();
        native.setLogger(() => {});
        const { parentPort } = require('node:worker_threads');
        const options = ${JSON.stringify({ ...chunkOptions, words: true })};
        const sound = Float32Array.from({ length: 32_000 }, (_, i) => 0.3 * Math.sin(i / 7));
        for (;;) {
          const family = 'parakeet';
          const model = await native.loadModel({ family, path: ${JSON.stringify(path)}, device: 'cpu', threads: 2 });
          parentPort.postMessage('loaded');
          for (let i = 0; i < 3; i += 1) await model.transcribe(sound, options);
          await model.close();
        }
      })();`;
  for (let round = 0; round < 3; round++) {
    const workers = Array.from({ length: 4 }, () => new Worker(code, { eval: true }));
    await Promise.all(
      workers.map(
        (worker) =>
          new Promise((resolve, reject) => {
            worker.once('message', resolve);
            worker.once('error', reject);
          }),
      ),
    );
    // Each is in another place of its loop by the time that its turn comes.
    for (const worker of workers) {
      await sleep(7 * round);
      await worker.terminate();
    }
  }
  const model = await loadNative().loadModel(fake(fakeModelFile('segment 0 1 x')));
  assert.equal(textOf(await model.transcribe(new Float32Array(100), chunkOptions)), ' x');
  await model.close();
});

test('the addon says what it was built from and what it runs on', () => {
  const { info } = loadNative();
  assert.match(info.whisperVersion, /^\d+\.\d+\.\d+$/);
  assert.ok(info.devices.some((device) => device.name === 'CPU'));
  assert.ok(info.cpuFeatures.length > 0);
});

test('the addon knows which families it can load, those of the catalogue among them', () => {
  const { families } = loadNative().info;
  for (const family of ['fake', ...CATALOGUE.map((model) => model.family)])
    assert.ok(families.includes(family), `${family} is not among ${families.join(', ')}`);
  assert.ok(!families.includes('magic'));
});

test('an addon that is missing is explained', () => {
  assert.throws(() => loadNative('/nowhere/voxgate.node'), {
    message: /cannot be loaded on \w+-\w+[\s\S]*\/nowhere\/voxgate\.node[\s\S]*npm run build/,
  });
});

test('the addon sends whole log lines to the logger, and none without one', async () => {
  const native = loadNative();
  const lines: [string, string][] = [];
  const path = new URL('./data/parakeet-script.bin', import.meta.url).pathname;
  const load = () => native.loadModel({ family: 'parakeet', path, device: 'cpu', threads: 1 });
  native.setLogger((level, message) => lines.push([level, message]));
  await (await load()).close();
  await until('the lines of a load', () => lines.some(([, line]) => line.includes('parakeet')));
  for (const [level, line] of lines) {
    assert.match(level, /^(debug|info|warn|error)$/);
    assert.match(line, /^[^\n]+$/);
  }
  native.setLogger(null);
  const before = lines.length;
  await (await load()).close();
  await sleep(50);
  assert.equal(lines.length, before);
  assert.throws(() => native.setLogger(5 as never), { message: /Expected a function or null/ });
});

test('while JavaScript is busy a thousand log lines wait for it, and further ones are lost', async () => {
  const native = loadNative();
  let lines = 0;
  const path = new URL('./data/parakeet-script.bin', import.meta.url).pathname;
  const load = () => native.loadModel({ family: 'parakeet', path, device: 'cpu', threads: 1 });
  native.setLogger(() => {
    lines += 1;
  });
  await (await load()).close();
  await until('the lines of a load', () => lines > 10);
  await sleep(50);
  const perLoad = lines;
  lines = 0;
  const loads = Array.from({ length: Math.ceil(3000 / perLoad) }, load);
  // The event loop stands still until the loads no longer use the processor.
  let before = -1;
  while (process.cpuUsage().user - before > 5000) {
    before = process.cpuUsage().user;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
  }
  for (const model of await Promise.all(loads)) await model.close();
  native.setLogger(null);
  assert.ok(lines >= 1000 && lines < loads.length * perLoad, `${lines} of ${loads.length * perLoad} lines`);
});
