/**
 * The packages of npm, installed in an empty prefix by a user with an empty home, where no compiler, CMake or Python is
 * on PATH: they transcribe within a minute, and say what to do where the engine is left out.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { serve } from '../http/served.ts';
import { JFK, JFK_TEXT, MODEL, needsWeights, plain } from '../model/gateway.ts';
import { bareMachine } from './bare-machine.ts';
import { LIBRARY, softwareDevice } from './vulkan-world.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const SCRIPTS = join(ROOT, 'scripts');
const FIRST_TRANSCRIPT_SEC = 60;
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const ENGINE = `@voxgate/engine-${process.platform}-${process.arch}`;

const { dir, settings, run, install, remove } = bareMachine();
after(remove);
const packages = join(dir, 'packages');
const whole = join(dir, 'whole');
const bare = join(dir, 'bare');

before(() => {
  const node = (script: string, ...args: string[]) =>
    execFileSync(process.execPath, [join(SCRIPTS, script), ...args], { stdio: 'inherit' });
  node('build-native.mjs', '--cpu=all', '--out=build-all-levels');
  node('pack.mjs', '--build=build-all-levels', `--out=${packages}`);
});

test('without a compiler, the first transcript is there within a minute of the installation', async (t) => {
  if (!needsWeights(t)) return;
  const startedAt = performance.now();
  await install(whole, ...readdirSync(packages).map((name) => join(packages, name)));
  const installedAt = performance.now();
  await using served = await serve(settings, [join(whole, 'bin/voxgate'), 'serve']);
  const form = new FormData();
  form.set('file', new Blob([readFileSync(JFK)]), 'jfk.mp3');
  form.set('model', MODEL);
  const response = await fetch(`${served.base}/v1/audio/transcriptions`, { method: 'POST', body: form });
  const tookSec = (performance.now() - startedAt) / 1000;
  assert.equal(response.status, 200, served.log());
  assert.equal(plain(((await response.json()) as { text: string }).text), plain(JFK_TEXT));
  const installSec = (installedAt - startedAt) / 1000;
  t.diagnostic(
    `first transcript after ${tookSec.toFixed(1)} s, of them ${installSec.toFixed(1)} s to install`,
  );
  assert.ok(tookSec < FIRST_TRANSCRIPT_SEC, `${tookSec} s`);
  for (const page of ['/docs', '/docs/swagger-ui-bundle.js', '/playground', '/assets/vendor/htmx.min.js'])
    assert.equal((await fetch(served.base + page)).status, 200, page);
});

test('voxgate doctor finds the engine of the package, with the level of this processor', async (t) => {
  if (!needsWeights(t)) return;
  const { stdout, stderr } = await run(join(whole, 'bin/voxgate'), ['doctor', '--json'], settings);
  const checks: { name: string; state: string; says: string }[] = JSON.parse(stdout || stderr).checks;
  const found = Object.fromEntries(checks.map(({ name, state, says }) => [name, `${state}: ${says}`]));
  assert.match(found.engine ?? '', /^ok: whisper\.cpp [\d.]+, .*whisper/);
  assert.match(found.CPU ?? '', /^(ok|warning): \w+: \w+/);
});

test('a library for GPUs is installed beside it, without a compiler, and finds the device', async (t) => {
  const device = softwareDevice();
  if (!existsSync(LIBRARY) || device === null)
    return t.skip('there is no library for tests or no software device: npm run build -- vulkan --floats');
  const out = join(dir, 'gpu-packages');
  const pack = [join(SCRIPTS, 'pack.mjs'), '--build=build-all-levels', '--gpu=build-vulkan-floats'];
  execFileSync(process.execPath, [...pack, `--out=${out}`], { stdio: 'inherit' });
  const name = `${ENGINE}-vulkan`;
  await install(whole, join(out, `${name.replace('@', '').replace('/', '-')}-${version}.tgz`));
  const own = { ...settings, ...device };
  const voxgate = join(whole, 'bin/voxgate');
  const { stdout } = await run(voxgate, ['doctor', '--verbose'], own);
  assert.match(stdout, /^ok +GPU +vulkan:0: .*llvmpipe|^ok +GPU +vulkan:0: Vulkan0/m);
  await using served = await serve(own, [voxgate, 'serve']);
  assert.match(served.log(), /device=vulkan:0/);

  const manifest = join(whole, 'lib/node_modules', name, 'package.json');
  writeFileSync(
    manifest,
    JSON.stringify({ ...JSON.parse(readFileSync(manifest, 'utf8')), version: '9.9.9' }),
  );
  const asked = { ...own, SVC_DEVICE: 'vulkan' };
  const other = await run(voxgate, ['doctor', '--verbose'], asked);
  assert.match(
    other.stdout,
    new RegExp(`^warning +GPU .*Vulkan library is not installed: install ${name}@${version}`, 'm'),
  );
});

test('the package holds what runs and what compiles, and no package in it runs a script', async () => {
  const own = join(whole, 'lib/node_modules/voxgate');
  assert.deepEqual(
    readdirSync(own)
      .filter((name) => name !== 'node_modules')
      .sort(),
    [
      ...[
        'CHANGELOG.md',
        'CMakeLists.txt',
        'LICENSE',
        'README.md',
        'THIRD-PARTY.md',
        'assets',
        'binding.gyp',
      ],
      ...['cmake', 'deploy', 'dist', 'man', 'native', 'package.json', 'scripts'],
    ],
  );
  for (const path of [
    'native/test',
    'native/fuzz',
    'dist/main.js.map',
    'node_modules/@scarf',
    'node_modules/typescript',
  ])
    assert.ok(!existsSync(join(own, path)), path);
  const manifests = readdirSync(own, { recursive: true })
    .map(String)
    .filter((path) => /node_modules\/(@[^/]+\/)?[^/]+\/package\.json$/.test(path));
  assert.ok(manifests.length > 50, `${manifests.length} packages`);
  for (const path of manifests) {
    const { scripts = {} } = JSON.parse(readFileSync(join(own, path), 'utf8'));
    for (const event of ['preinstall', 'install', 'postinstall'])
      assert.equal(scripts[event], undefined, path);
  }
});

test('the example of docs/node.md runs against the installed package, and its types are those of the API', async (t) => {
  if (!needsWeights(t)) return;
  const program = join(dir, 'program');
  mkdirSync(join(program, 'node_modules'), { recursive: true });
  symlinkSync(join(whole, 'lib/node_modules/voxgate'), join(program, 'node_modules/voxgate'));
  copyFileSync(JFK, join(dir, 'speech.mp3'));
  const [, example = ''] =
    /```js\n([\s\S]*?)```/.exec(readFileSync(join(ROOT, 'docs/node.md'), 'utf8')) ?? [];
  writeFileSync(join(program, 'example.mjs'), example);
  const { code, stdout, stderr } = await run(process.execPath, [join(program, 'example.mjs')], settings);
  assert.equal(code, 0, stderr);
  const [text = '', ...lines] = stdout.trim().split('\n');
  assert.equal(plain(text), plain(JFK_TEXT));
  assert.ok(
    lines.some((line) => /^[\d.]+ [\d.]+ country/.test(line)),
    stdout,
  );
  assert.ok(lines.at(-1)?.split(' ').includes(MODEL), stdout);

  writeFileSync(
    join(program, 'types.mts'),
    `
import { createGateway, transcribe } from 'voxgate';
await using gateway = await createGateway({ SVC_PORT: 0 });
const { words } = await gateway.transcribe('a', { response_format: 'verbose_json' });
export const start: number | undefined = words?.[0]?.start;
export const subtitles: string = await transcribe(new Uint8Array(1), { response_format: 'srt', diarize: true });
for (const audio of [new URL('file:///a.wav'), new Blob([]), new ArrayBuffer(1), new SharedArrayBuffer(1)])
  await gateway.transcribe(audio, { diarize: true }, { signal: AbortSignal.timeout(1000) });
// @ts-expect-error: a number is no audio
await transcribe(5);
// @ts-expect-error: the answer comes as a whole
await transcribe('a', { stream: true });
// @ts-expect-error: a text is no number
export const wrong: number = (await transcribe('a')).text;
// @ts-expect-error: there is no such format
await transcribe('a', { response_format: 'xml' });
// @ts-expect-error: there is no such setting
await createGateway({ SVC_PROT: 1 });
`,
  );
  const flags = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'nodenext', '--types', 'node'];
  const types = ['--typeRoots', join(ROOT, 'node_modules/@types'), join(program, 'types.mts')];
  const tsc = [join(ROOT, 'node_modules/typescript/bin/tsc'), ...flags, ...types];
  const checked = await run(process.execPath, tsc);
  assert.equal(checked.stdout, '');
  assert.equal(checked.code, 0);
});

test('without its engine, voxgate says which package to install and what to compile it with', async () => {
  await install(bare, '--omit=optional', join(packages, `voxgate-${version}.tgz`));
  const voxgate = join(bare, 'bin/voxgate');
  const { code, stdout, stderr } = await run(voxgate, ['doctor', '--verbose'], settings);
  assert.equal(code, 1);
  assert.match(stderr, /The native addon cannot be loaded on \w+-\w+ with Node/);
  for (const said of [stdout, stderr])
    assert.ok(said.includes(`install ${ENGINE}@${version} (`) && said.includes('run voxgate build'), said);
  const build = await run(voxgate, ['build']);
  assert.equal(build.code, 1);
  assert.match(build.stderr, /cannot be built; missing: cmake .*compiler.*\n.*apt-get install/);
});

test('an engine of another version is refused by name, and one without its system library names that', async () => {
  const engine = join(bare, 'lib/node_modules', ENGINE);
  mkdirSync(engine, { recursive: true });
  writeFileSync(join(engine, 'package.json'), '{"version":"9.9.9"}');
  const other = await run(join(bare, 'bin/voxgate'), ['doctor', '--verbose'], settings);
  assert.match(
    other.stderr,
    new RegExp(`${ENGINE} is of version 9\\.9\\.9 and voxgate of ${version}: install`),
  );

  cpSync(join(whole, 'lib/node_modules', ENGINE), engine, { recursive: true });
  const addon = join(engine, 'voxgate.node');
  const needs = readFileSync(addon, 'latin1').replaceAll('libgomp.so.1', 'libgomp.so.9');
  writeFileSync(addon, needs, 'latin1');
  const { stderr } = await run(join(bare, 'bin/voxgate'), ['doctor', '--verbose'], settings);
  assert.match(stderr, /Reason: libgomp\.so\.9: cannot open .*\n {4}What to do: install libgomp1 /);
});

test('voxgate build compiles the engine in the installed package, which then goes first', async (t) => {
  // ccache, which is in the user's folder, knows the sources.
  const { PATH, HOME, XDG_CACHE_HOME } = process.env;
  const tools = { PATH, HOME, XDG_CACHE_HOME };
  const startedAt = performance.now();
  const { code, stdout, stderr } = await run(join(bare, 'bin/voxgate'), ['build'], tools);
  assert.equal(code, 0, `${stdout.slice(-2000)}\n${stderr}`);
  t.diagnostic(`${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
  const doctor = await run(join(bare, 'bin/voxgate'), ['doctor', '--verbose'], settings);
  assert.match(doctor.stdout, /^ok +engine .*whisper/m);
});
