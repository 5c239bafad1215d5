/**
 * Compiles the native addon for `npm run build`. cmake-js configures (it knows Node's headers), CMake builds. A second
 * run on an unchanged tree only asks the build tool, which takes a fraction of a second.
 *
 *   node scripts/build-native.mjs [--cpu=native|all|LEVEL] [--whisper-source=FOLDER] [--build-type=Release|Debug]
 *     [--arch=arm64] [--out=FOLDER]
 *
 * --cpu=all compiles a CPU library for every level of instructions, of which SVC_CPU chooses at the start, for packages
 * that run elsewhere; --cpu=avx2 the one of a level. --arch=arm64 compiles for Linux on 64-bit ARM from another
 * processor, with Debian's cross compiler.
 *
 * `voxgate build` runs this in an installed package, which is without the development dependencies. So the build
 * fetches those that it needs.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { putGpuLibrariesInto } from './gpu-library.mjs';
import { fail, ROOT, requireTools, run } from './tools.mjs';

const { values: options } = parseArgs({
  options: {
    cpu: { type: 'string', default: 'native' },
    'whisper-source': { type: 'string', default: '' },
    'build-type': { type: 'string', default: 'Release' },
    arch: { type: 'string', default: process.arch },
    out: { type: 'string', default: 'build' },
  },
});

function works(command) {
  return spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;
}

const isCross = options.arch !== process.arch;
if (isCross && options.arch !== 'arm64') fail(`There is no cross build for ${options.arch}, only for arm64.`);

function checkTools() {
  if (isCross) requireTools(['arm64-compiler']);
  const missing = [];
  if (!works('cmake')) missing.push('cmake (3.22 or newer)');
  if (![process.env.CXX, 'c++', 'g++', 'clang++'].some((name) => name && works(name))) {
    missing.push('a C++20 compiler (g++ 11 or clang 14, or newer)');
  }
  if (!works('ninja') && !works('make')) missing.push('ninja or make');
  if (!works('git') && !works('patch')) missing.push('git or patch');
  if (missing.length > 0) {
    fail(
      `The native addon cannot be built; missing: ${missing.join(', ')}.`,
      'On Debian or Ubuntu: apt-get install -y cmake ninja-build g++ patch',
      'On macOS: xcode-select --install && brew install cmake ninja',
    );
  }
}

const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const PACKAGES = ['cmake-js', 'node-addon-api', 'node-api-headers', 'nodejs-whisper'];
/** npm publishes no lockfile, so a clone has one. */
const isClone = existsSync(join(ROOT, 'package-lock.json'));
const packagesDir = join(ROOT, isClone ? '.' : 'build-packages');
const packagePath = (name) => join(packagesDir, 'node_modules', name);

function checkPackages() {
  const missing = PACKAGES.find((name) => !existsSync(packagePath(name)));
  if (missing === undefined) return;
  if (isClone) fail(`The package ${missing} is not installed. Run: npm ci`);
  mkdirSync(packagesDir, { recursive: true });
  const flags = ['--no-save', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund'];
  const exact = PACKAGES.map((name) => `${name}@${devDependencies[name]}`);
  run('fetch what the build needs', 'npm', ['install', `--prefix=${packagesDir}`, ...flags, ...exact]);
}

const buildDir = join(ROOT, options.out);
const stampFile = join(buildDir, 'voxgate-build.json');
// The stamp holds everything that makes an existing configuration unusable when it changes. CMake itself notices
// changed CMake files and sources.
const stamp = JSON.stringify({
  root: ROOT,
  options,
  packages: PACKAGES.map((name) => devDependencies[name]),
});
/** CMake finds the headers of node-addon-api with `require`. */
const env = { ...process.env, NODE_PATH: join(packagesDir, 'node_modules') };
const configured = existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp;

if (!configured) {
  checkTools();
  checkPackages();
  rmSync(buildDir, { recursive: true, force: true });
  const whisperSource =
    options['whisper-source'] === ''
      ? join(packagePath('nodejs-whisper'), 'cpp/whisper.cpp')
      : resolve(options['whisper-source']);
  const configure = [
    ...[join(packagePath('cmake-js'), 'bin/cmake-js'), 'configure', '--out', options.out],
    ...['--config', options['build-type'], `--CDVOXGATE_CPU=${options.cpu}`],
    `--CDWHISPER_SOURCE_DIR=${whisperSource}`,
    ...(isCross
      ? [`--arch=${options.arch}`, `--CDCMAKE_TOOLCHAIN_FILE=${join(ROOT, 'cmake/aarch64-linux-gnu.cmake')}`]
      : []),
  ];
  run('configure the native addon', process.execPath, configure, { env });
  writeFileSync(stampFile, stamp);
}
const compile = ['--build', options.out, '--config', options['build-type'], '--parallel'];
run('compile the native addon', 'cmake', [...compile, String(availableParallelism())], { env });
if (!isCross) putGpuLibrariesInto(join(buildDir, options['build-type']));
