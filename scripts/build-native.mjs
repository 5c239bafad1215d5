/**
 * `npm run build:native`: compiles the native addon. cmake-js configures (it knows Node's headers), CMake builds. A
 * second run on an unchanged tree only asks the build tool, which takes a fraction of a second.
 *
 *   node scripts/build-native.mjs [--cpu=native|all] [--whisper-source=FOLDER] [--build-type=Release|Debug]
 *
 * --cpu=all compiles a CPU library for every generation of processors, for packages that run elsewhere.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT, run } from './tools.mjs';

const require = createRequire(join(ROOT, 'package.json'));

const { values: options } = parseArgs({
  options: {
    cpu: { type: 'string', default: 'native' },
    'whisper-source': { type: 'string', default: '' },
    'build-type': { type: 'string', default: 'Release' },
  },
});

function fail(...lines) {
  console.error(lines.join('\n'));
  process.exit(1);
}

function works(command) {
  return spawnSync(command, ['--version'], { stdio: 'ignore' }).status === 0;
}

function checkTools() {
  const missing = [];
  if (!works('cmake')) missing.push('cmake (3.22 or newer)');
  if (![process.env.CXX, 'c++', 'g++', 'clang++'].some((name) => name && works(name))) {
    missing.push('a C++20 compiler (g++ 11 or clang 14, or newer)');
  }
  if (!works('ninja') && !works('make')) missing.push('ninja or make');
  if (missing.length > 0) {
    fail(
      `The native addon cannot be built; missing: ${missing.join(', ')}.`,
      'On Debian or Ubuntu: apt-get install -y cmake ninja-build g++',
      'On macOS: xcode-select --install && brew install cmake ninja',
    );
  }
}

function packageVersion(name) {
  try {
    return JSON.parse(readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8')).version;
  } catch {
    fail(`The package ${name} is not installed. Run: npm ci`);
  }
}

const buildDir = join(ROOT, 'build');
const stampFile = join(buildDir, 'voxgate-build.json');
// The stamp holds everything that makes an existing configuration unusable when it changes. CMake itself notices
// changed CMake files and sources.
const stamp = JSON.stringify({
  root: ROOT,
  options,
  arch: process.arch,
  packages: ['cmake-js', 'node-addon-api', 'node-api-headers', 'nodejs-whisper'].map(packageVersion),
});
const configured = existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp;

if (!configured) {
  checkTools();
  rmSync(buildDir, { recursive: true, force: true });
  const cmakeJs = join(dirname(require.resolve('cmake-js/package.json')), 'bin', 'cmake-js');
  const definitions = [`--CDVOXGATE_CPU=${options.cpu}`];
  if (options['whisper-source']) {
    definitions.push(`--CDWHISPER_SOURCE_DIR=${resolve(options['whisper-source'])}`);
  }
  run('configure the native addon', process.execPath, [
    cmakeJs,
    'configure',
    '--out',
    'build',
    '--config',
    options['build-type'],
    ...definitions,
  ]);
  writeFileSync(stampFile, stamp);
}
run('compile the native addon', 'cmake', [
  '--build',
  'build',
  '--config',
  options['build-type'],
  '--parallel',
  String(availableParallelism()),
]);
// `npm run build:cuda` may have made this library before the build folder was made again.
const cuda = join(ROOT, 'build-cuda/lib/libggml-cuda.so');
if (existsSync(cuda)) copyFileSync(cuda, join(buildDir, options['build-type'], 'libggml-cuda.so'));
