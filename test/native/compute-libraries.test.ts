/** Which of the compute libraries beside the addon are loaded, and what is said where none can be used. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { copyFile, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

const run = promisify(execFile);
const BUILD = new URL('../../build/Release/', import.meta.url).pathname;
const ADDON = new URL('../../src/engine/addon.ts', import.meta.url).href;

let dir: string;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'voxgate-libraries-'));
});
after(() => rm(dir, { recursive: true }));

/** Copies the addon and its libraries, but for those whose names are given. */
async function addonWithout(...left: string[]): Promise<string> {
  const folder = await mkdtemp(join(dir, 'addon-'));
  for (const name of await readdir(BUILD))
    if (/\.(node|so)$/.test(name) && !left.some((begin) => name.startsWith(begin)))
      await copyFile(join(BUILD, name), join(folder, name));
  return folder;
}

async function compile(source: string, library: string): Promise<void> {
  await writeFile(`${library}.c`, source);
  execFileSync('cc', ['-shared', '-fPIC', '-o', library, `${library}.c`]);
  await rm(`${library}.c`);
}

/** Loads the addon of a folder in a process of its own, and gives what the script prints. */
async function inProcess(folder: string, options: { gpus: boolean }, script: string): Promise<string> {
  const load = `
    const { loadNative } = await import(${JSON.stringify(ADDON)});
    const native = loadNative(${JSON.stringify(join(folder, 'voxgate.node'))}, ${JSON.stringify(options)});
    ${script}`;
  const { stdout } = await run(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', load]);
  return stdout;
}

const LOAD_A_MODEL = `
  const error = await native
    .loadModel({ family: 'whisper', path: '/nowhere', device: 'cpu', threads: 1 })
    .then(() => null, (failure) => failure);
  console.log(error.code, error.message);`;

test('a library for GPUs is loaded only where a GPU may be used', async () => {
  const folder = await addonWithout('libggml-cuda');
  await compile(
    `#include <stdio.h>
     __attribute__((constructor)) static void loaded(void) { puts("the driver was asked"); fflush(stdout); }`,
    join(folder, 'libggml-cuda.so'),
  );
  const names = 'console.log(native.info.devices.map(({ name }) => name).join());';
  assert.equal(await inProcess(folder, { gpus: false }, names), 'CPU\n');
  assert.match(await inProcess(folder, { gpus: true }, names), /^the driver was asked\n(.|\n)*CPU\n$/);
});

test('a library for another processor is said to be one', async () => {
  const folder = await addonWithout('libggml-cpu');
  await compile('int ggml_backend_score(void) { return 0; }', join(folder, 'libggml-cpu.so'));
  const said = await inProcess(folder, { gpus: false }, LOAD_A_MODEL);
  assert.match(said, /^load_failed No CPU compute library can be used here; libggml-cpu\.so is compiled for/);
  assert.match(said, /npm run build:native/);
});

test('a library that cannot be loaded is named with the reason, and one that is not there is missed', async () => {
  const folder = await addonWithout('libggml-cpu');
  assert.match(
    await inProcess(folder, { gpus: false }, LOAD_A_MODEL),
    /^load_failed No CPU compute library was found beside the addon/,
  );
  await writeFile(join(folder, 'libggml-cpu-haswell.so'), 'no library');
  assert.match(
    await inProcess(folder, { gpus: false }, LOAD_A_MODEL),
    /^load_failed No CPU compute library can be used here; libggml-cpu-haswell\.so cannot be loaded: .*too short/,
  );
});
