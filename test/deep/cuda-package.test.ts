/**
 * The package of the CUDA library, with what it needs of CUDA, in an empty prefix on a machine without a compiler and
 * without CUDA: the gateway finds and loads it, and says why it computes on the CPU. The driver is a stub that sees no
 * GPU. This runs with libraries that stand for NVIDIA's (cuda-stub.c), and with the compiled one where there is one.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createReadStream, existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { serve } from '../http/served.ts';
import { JFK, JFK_TEXT, MODEL, needsWeights, plain } from '../model/gateway.ts';
import { bareMachine } from './bare-machine.ts';
import { stubBuild, stubDriver } from './cuda-stubs.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const COMPILED = join(ROOT, 'build-cuda');
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const NAME = `@voxgate/engine-${process.platform}-${process.arch}-cuda`;
const skip = process.platform !== 'linux' && 'the packages are for Linux';

const { dir, settings, run, install, remove } = bareMachine();
after(remove);

/** Packs the libraries of a build folder and installs them with voxgate. */
async function installed(t: TestContext, build: string): Promise<string> {
  const prefix = join(dir, 'prefix');
  const out = join(dir, 'packages');
  for (const folder of [prefix, out]) rmSync(folder, { recursive: true, force: true });
  const pack = [join(ROOT, 'scripts/pack.mjs'), '--any-cpu', `--gpu=${build}`, `--out=${out}`];
  const said = execFileSync(process.execPath, pack, { encoding: 'utf8' });
  t.diagnostic(/^.*-cuda-.*$/m.exec(said)?.[0] ?? said);
  // Nothing but the package may have the libraries.
  rmSync(join(dir, 'toolkit'), { recursive: true, force: true });
  await install(prefix, ...readdirSync(out).map((name) => join(out, name)));
  return prefix;
}

/** The folders in which a library looks for those that it needs. */
function runPath(library: string): string[] {
  const said = execFileSync('readelf', ['--dynamic', library], { encoding: 'utf8' });
  return [...said.matchAll(/\((?:RUNPATH|RPATH)\).*\[(.*)\]/g)].flatMap(([, folders = '']) =>
    folders.split(':'),
  );
}

/** Loads the addon of the package with its GPUs, every symbol of the library, and prints what is in memory then. */
const LOAD = (voxgate: string, library: string) => `
  import { constants } from 'node:os';
  import { readFileSync } from 'node:fs';
  const { loadNative } = await import(${JSON.stringify(join(voxgate, 'dist/engine/addon.js'))});
  const native = loadNative(undefined, { gpus: true });
  const { info } = native;
  const loadErrors = native.gpuLoadErrors();
  let symbols = '';
  try {
    process.dlopen({ exports: {} }, ${JSON.stringify(library)}, constants.dlopen.RTLD_NOW);
  } catch ({ message }) {
    symbols = message;
  }
  const maps = readFileSync('/proc/self/maps', 'utf8').match(/\\/\\S+\\.so\\S*$/gm);
  console.log(JSON.stringify({ info, loadErrors, symbols, loaded: [...new Set(maps)] }));`;

for (const [what, build] of [
  ['libraries that stand for those of CUDA', null],
  ['the compiled library', COMPILED],
] as const)
  test(`${what} are found and loaded without CUDA, and say why the CPU computes`, { skip }, async (t) => {
    if (build !== null && !existsSync(join(build, 'lib/libggml-cuda.so')))
      return t.skip('there is no CUDA library: npm run build -- cuda');
    const made = build ?? stubBuild(dir);
    assert.deepEqual(runPath(join(made, 'lib/libggml-cuda.so')), ['$ORIGIN']);
    const prefix = await installed(t, made);
    const modules = join(prefix, 'lib/node_modules');
    const folder = join(modules, NAME);
    const files = readdirSync(folder);
    const cuda = files.filter((name) => /^libcu/.test(name)).sort();
    assert.deepEqual(
      cuda.map((name) => name.replace(/\.so\.\d+$/, '')),
      ['libcublas', 'libcublasLt', 'libcudart'],
    );
    assert(files.includes('LICENSE-nvidia') && statSync(join(folder, 'LICENSE-nvidia')).size > 0);
    assert.match(readFileSync(join(folder, 'README.md'), 'utf8'), /LICENSE-nvidia is that of .*libcudart/);

    const driver = { LD_LIBRARY_PATH: stubDriver(dir) };
    const library = join(folder, 'libggml-cuda.so');
    const script = LOAD(join(modules, 'voxgate'), library);
    const args = ['--input-type=module', '--eval', script];
    const { stdout, stderr } = await run(process.execPath, args, { ...settings, ...driver });
    const { info, loadErrors, symbols, loaded } = JSON.parse(stdout || assert.fail(stderr));
    assert.match(symbols, /did not self-register/, 'it is no addon, but every symbol was found');
    for (const name of [...cuda, 'libggml-cuda.so'])
      assert(loaded.includes(join(folder, name)), `${name} of ${loaded}`);
    assert.deepEqual(loadErrors, {});
    assert.match(info.cudaArchitectures, /^\d+/);

    const voxgate = join(prefix, 'bin/voxgate');
    const doctor = async (env: NodeJS.ProcessEnv) =>
      (await run(voxgate, ['doctor', '--verbose'], { ...settings, ...env })).stdout;
    const why =
      /^warning +GPU +models run on the CPU, because CUDA says "no CUDA-capable device is detected": mend/m;
    assert.match(await doctor({ ...driver, SVC_DEVICE: 'cuda' }), why);
    // Without any driver the machine has no GPU, and that is all there is to say.
    assert.match(await doctor({ LD_LIBRARY_PATH: '' }), /^(ok|warning) +GPU /m);

    if (!needsWeights(t)) return;
    await using served = await serve({ ...settings, ...driver, SVC_DEVICE: 'cuda' }, [voxgate, 'serve']);
    assert.match(served.log(), /device=cpu/);
    assert.match(
      served.log(),
      /SVC_DEVICE is cuda, but 0 GPUs are usable here: .*finds no GPU: check nvidia-smi/,
    );
    const body = new FormData();
    body.set('file', new Blob([readFileSync(JFK)]), 'jfk.mp3');
    body.set('model', MODEL);
    const answer = await fetch(`${served.base}/v1/audio/transcriptions`, { method: 'POST', body });
    assert.equal(answer.status, 200, served.log());
    assert.equal(plain(((await answer.json()) as { text: string }).text), plain(JFK_TEXT));
  });

/** npm 12 is the first major version that refuses a URL by default. It runs on an older Node than it asks for. */
const NPM = ['--no-engine-strict', 'npm@12.2.2'];

test('a package without a library that CUDA should have brought names it, and what doctor says to run installs it', {
  skip,
}, async (t) => {
  const prefix = join(dir, 'prefix');
  const folder = join(prefix, 'lib/node_modules', NAME);
  rmSync(join(folder, readdirSync(folder).find((name) => name.startsWith('libcublas.')) ?? 'nothing'));
  const env = { ...settings, LD_LIBRARY_PATH: join(dir, 'driver'), SVC_DEVICE: 'cuda' };
  const doctor = async () => (await run(join(prefix, 'bin/voxgate'), ['doctor', '--verbose'], env)).stdout;
  const broken = /needs cuBLAS, and libcublas\.so\.\d+ is not beside it: run npm install -g .*https:\S+/;
  assert.match(await doctor(), broken);

  rmSync(folder, { recursive: true });
  const says = await doctor();
  const order = /CUDA library is not installed: run npm (install -g.*?) (https:\S+)\/(\S+) /.exec(says);
  const [, options = '', home = '', file = ''] = order ?? assert.fail(says);
  assert(home.endsWith(`/voxgate/releases/download/v${version}`), home);
  const server = createServer((_, res) => createReadStream(join(dir, 'packages', file)).pipe(res));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const newer = await run(join(dir, 'bin/npm'), ['install', `--prefix=${join(dir, 'npm')}`, ...NPM]);
  assert.equal(newer.code, 0, newer.stderr);
  const npm = [join(dir, 'npm/node_modules/npm/bin/npm-cli.js'), ...options.split(' ')];
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/${file}`;
  const { code, stderr } = await run(process.execPath, [...npm, `--prefix=${prefix}`, url]);
  assert.equal(code, 0, stderr);
  assert(existsSync(join(folder, 'libggml-cuda.so')));
});
