/**
 * `npm run package` makes the packages of npm, in build/packages/:
 *
 *   node scripts/pack.mjs [--build=FOLDER ...] [--gpu=FOLDER ...] [--any-cpu] [--out=FOLDER]
 *
 * `voxgate` holds the compiled TypeScript, the pages, and the sources of the addon for `voxgate build`.
 * `@voxgate/engine-linux-x64` holds the addon of a build folder, `build` unless another one is named. Each --build makes
 * one such package, for the processor that its addon is compiled for, so that of a cross build is named like any other.
 * The addon must have the CPU libraries of all levels (`npm run build -- --cpu=all`), unless --any-cpu is given.
 *
 * Each --gpu, such as `build-cuda`, makes a package of that library for GPUs, `@voxgate/engine-linux-x64-cuda`, with what
 * it needs of CUDA besides the driver. It is installed beside `voxgate`, which names it as an optional peer: pnpm lets a
 * package find only those that it names.
 *
 * The packages of the platforms become optional dependencies of `voxgate` only here. They come out of this tree, so in
 * the repository the lockfile would have to know their content before it exists, and `npm ci` would look for packages
 * that are not published yet.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { fail, ROOT, run } from './tools.mjs';

const { values: options } = parseArgs({
  options: {
    build: { type: 'string', multiple: true, default: ['build'] },
    gpu: { type: 'string', multiple: true, default: [] },
    'any-cpu': { type: 'boolean', default: false },
    out: { type: 'string', default: 'build/packages' },
  },
});
const out = resolve(ROOT, options.out);
const manifest = readJson(join(ROOT, 'package.json'));
const { version, license, repository } = manifest;

/** `process.arch` by the machine in the header of an ELF file. */
const PROCESSORS = { 62: 'x64', 183: 'arm64' };
const LIBRARIES = /^(voxgate\.node|libvoxgate-ggml(-base)?\.so|libggml-cpu.*\.so)$/;
const engineName = (processor) => `@voxgate/engine-linux-${processor}`;

for (const folder of options.build) packEngine(resolve(ROOT, folder));
for (const folder of options.gpu) packGpuLibrary(resolve(ROOT, folder, 'lib'));
packGateway();

function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}

function packEngine(build) {
  const stamp = join(build, 'voxgate-build.json');
  const cpu = existsSync(stamp) ? readJson(stamp).options.cpu : 'unknown';
  if (cpu !== 'all' && !options['any-cpu'])
    fail(`The build in ${build} is for one processor (--cpu=${cpu}). Run: npm run build -- --cpu=all`);
  const release = join(build, 'Release');
  const files = readdirSync(release).filter((name) => LIBRARIES.test(name));
  const processor = processorOf(join(release, 'voxgate.node'));
  packLibraries(engineName(processor), {
    processor,
    paths: files.map((file) => join(release, file)),
    what: 'The native engine of voxgate',
    how: 'npm installs it along with voxgate.',
    main: 'voxgate.node',
  });
}

/** @param folder of the library, and of nothing else that is packed */
function packGpuLibrary(folder) {
  const [, library] =
    readdirSync(folder)
      .join(' ')
      .match(/libggml-(cuda|vulkan)\.so/) ?? [];
  if (library === undefined) fail(`There is no library for GPUs in ${folder}`);
  const path = join(folder, `libggml-${library}.so`);
  const processor = processorOf(path);
  const cuda = ofCuda(path);
  packLibraries(`${engineName(processor)}-${library}`, {
    processor,
    paths: [path],
    also: cuda,
    notice: cuda.length === 0 ? null : licenseOfCuda(cuda),
    what: `What voxgate needs for GPUs with ${library === 'cuda' ? 'CUDA' : 'Vulkan'}, beside the driver`,
    how: 'Install it where voxgate is: `npm install -g voxgate` and then this one.',
    main: basename(path),
  });
}

/** The libraries of CUDA that another one needs, but for libcuda, which is a part of the driver. */
function ofCuda(path) {
  const { stdout } = spawnSync('ldd', [path], { encoding: 'utf8' });
  return [...stdout.matchAll(/^\s*(libcu(?:dart|blas|blasLt)\.so\.\d+) => (.+?)(?: \(0x.*)?$/gm)].map(
    ([, name, found]) =>
      existsSync(found)
        ? found
        : fail(`${name}, which ${path} needs, was not found: npm run build -- cuda links it`),
  );
}

/** NVIDIA's license, which lies with a toolkit, or with cuBLAS of the Python package index. */
function licenseOfCuda(paths) {
  for (const path of paths)
    for (let folder = dirname(realpathSync(path)); folder !== dirname(folder); folder = dirname(folder)) {
      const wheels = readdirSync(folder).filter((name) => /^nvidia_cublas.*\.dist-info$/.test(name));
      const names = [
        'EULA.txt',
        ...wheels.flatMap((name) => [`${name}/licenses/License.txt`, `${name}/License.txt`]),
      ];
      const found = names.map((name) => join(folder, name)).find(existsSync);
      if (found !== undefined) return found;
    }
  return fail(`NVIDIA's license was not found above ${paths.join(', ')}: EULA.txt, or that of nvidia-cublas`);
}

/**
 * @param also libraries of others, which need an older C library than ours
 * @param notice the license of those, where there is one
 */
function packLibraries(name, { processor, paths, also = [], notice = null, what, how, main }) {
  const stage = emptyStage(basename(name));
  for (const path of [...paths, ...also]) cpSync(path, join(stage, basename(path)), { dereference: true });
  cpSync(join(ROOT, 'LICENSE'), join(stage, 'LICENSE'));
  for (const [from, path] of [
    ['whisper.cpp', 'nodejs-whisper/cpp/whisper.cpp/LICENSE'],
    ['node-addon-api', 'node-addon-api/LICENSE.md'],
  ])
    cpSync(join(ROOT, 'node_modules', path), join(stage, `LICENSE-${from}`));
  if (notice !== null) cpSync(notice, join(stage, 'LICENSE-nvidia'), { dereference: true });
  const names = also.map((path) => basename(path)).join(', ');
  const theirs = notice === null ? '' : `\nNVIDIA's license in LICENSE-nvidia is that of ${names}.\n`;
  const description = `${what}, for Linux on ${processor}, with glibc ${glibcOf(paths)} or newer`;
  writeFileSync(join(stage, 'README.md'), `# ${name}\n\n${description}. ${how}\n${theirs}`);
  pack(stage, {
    name,
    version,
    description,
    license: notice === null ? license : 'SEE LICENSE IN README.md',
    repository,
    engines: manifest.engines,
    os: ['linux'],
    cpu: [processor],
    libc: ['glibc'],
    main,
    preferUnplugged: true, // a library cannot be loaded out of an archive
    publishConfig: { access: 'public' },
  });
}

function processorOf(addon) {
  const header = readFileSync(addon).subarray(0, 20);
  const processor = PROCESSORS[header.readUInt16LE(18)];
  if (header.toString('latin1', 1, 4) !== 'ELF' || processor === undefined)
    fail(`${addon} is for no platform that has a package: ${Object.values(PROCESSORS).join(', ')} on Linux`);
  return processor;
}

/** The oldest version of the GNU C library that has all that the files name. */
function glibcOf(paths) {
  const minors = paths.flatMap((path) =>
    [...readFileSync(path, 'latin1').matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor)),
  );
  return `2.${Math.max(...minors)}`;
}

function packGateway() {
  const stage = emptyStage('voxgate');
  const listed = manifest.files.filter((path) => !path.startsWith('!') && path !== 'dist');
  for (const path of [...listed, 'README.md', 'LICENSE'])
    cpSync(join(ROOT, path), join(stage, path), { recursive: true });
  // What an earlier source has left in dist/ must not get in.
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const compile = [tsc, '-p', 'tsconfig.build.json', '--outDir', join(stage, 'dist')];
  run('compile', process.execPath, [...compile, '--sourceMap', 'false']);
  chmodSync(join(stage, 'dist/main.js'), 0o755);
  bundleSwagger(stage);
  const engines = Object.values(PROCESSORS).map(engineName);
  // Of any version, so that no update is refused: voxgate leaves one of another version aside, and says so.
  const libraries = engines.flatMap((name) => [`${name}-cuda`, `${name}-vulkan`]);
  pack(stage, {
    ...manifest,
    optionalDependencies: Object.fromEntries(engines.map((name) => [name, version])),
    peerDependencies: Object.fromEntries(libraries.map((name) => [name, '*'])),
    peerDependenciesMeta: Object.fromEntries(libraries.map((name) => [name, { optional: true }])),
    bundleDependencies: ['swagger-ui-express'],
  });
}

/**
 * The page of the API goes into the package. Its own package depends on one that tells its makers of each installation,
 * and four fifths of it are not served.
 */
function bundleSwagger(stage) {
  const unused = /\.map$|^log\.|es-bundle|^swagger-ui\.js/;
  const bundle = (name, left) => {
    const to = join(stage, 'node_modules', name);
    const filter = (path) => !unused.test(basename(path));
    cpSync(join(ROOT, 'node_modules', name), to, { recursive: true, filter });
    const { [left]: _, ...rest } = readJson(join(to, 'package.json'));
    writeFileSync(join(to, 'package.json'), JSON.stringify(rest));
  };
  // npm would take Express, which it asks for, for a part of the bundle, and not install it.
  bundle('swagger-ui-express', 'peerDependencies');
  bundle('swagger-ui-dist', 'dependencies');
}

function emptyStage(name) {
  const stage = join(out, name);
  rmSync(stage, { recursive: true, force: true });
  mkdirSync(stage, { recursive: true });
  return stage;
}

function pack(stage, content) {
  writeFileSync(join(stage, 'package.json'), `${JSON.stringify(content, null, 2)}\n`);
  const args = ['pack', '--json', '--ignore-scripts', `--pack-destination=${out}`];
  const { status, stdout, stderr } = spawnSync('npm', args, {
    cwd: stage,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  if (status !== 0) fail(`npm pack failed: ${stderr}`);
  const [{ filename, size, unpackedSize, entryCount }] = Object.values(JSON.parse(stdout));
  rmSync(stage, { recursive: true });
  const megabytes = (bytes) => `${(bytes / 1e6).toFixed(1)} MB`;
  const path = relative(ROOT, join(out, filename));
  process.stdout.write(`${path}: ${megabytes(size)}, ${entryCount} files of ${megabytes(unpackedSize)}\n`);
}
