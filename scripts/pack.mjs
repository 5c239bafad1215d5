/**
 * `npm run package` makes the packages of npm, in build/packages/:
 *
 *   node scripts/pack.mjs [--build=FOLDER ...] [--any-cpu] [--out=FOLDER]
 *
 * `voxgate` holds the compiled TypeScript, the pages, and the sources of the addon for `voxgate build`.
 * `@voxgate/engine-linux-x64` holds the addon of a build folder, `build` unless another one is named. Each --build makes
 * one such package, for the processor that its addon is compiled for, so that of a cross build is named like any other.
 * The addon must have the CPU libraries of all levels (`npm run build -- --cpu=all`), unless --any-cpu is given.
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
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT, run } from './tools.mjs';

const { values: options } = parseArgs({
  options: {
    build: { type: 'string', multiple: true, default: ['build'] },
    'any-cpu': { type: 'boolean', default: false },
    out: { type: 'string', default: 'build/packages' },
  },
});
const out = resolve(ROOT, options.out);
const manifest = readJson(join(ROOT, 'package.json'));
const { version, license, repository, engines } = manifest;

/** `process.arch` by the machine in the header of an ELF file. */
const PROCESSORS = { 62: 'x64', 183: 'arm64' };
const LIBRARIES = /^(voxgate\.node|libvoxgate-ggml(-base)?\.so|libggml-cpu.*\.so)$/;
const engineName = (processor) => `@voxgate/engine-linux-${processor}`;

for (const folder of options.build) packEngine(resolve(ROOT, folder));
packGateway();

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

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
  const name = engineName(processor);
  const stage = emptyStage(basename(name));
  for (const file of files) cpSync(join(release, file), join(stage, file));
  cpSync(join(ROOT, 'LICENSE'), join(stage, 'LICENSE'));
  for (const [from, path] of [
    ['whisper.cpp', 'nodejs-whisper/cpp/whisper.cpp/LICENSE'],
    ['node-addon-api', 'node-addon-api/LICENSE.md'],
  ])
    cpSync(join(ROOT, 'node_modules', path), join(stage, `LICENSE-${from}`));
  const description = `The native engine of voxgate for Linux on ${processor}, with glibc ${glibcOf(release, files)} or newer`;
  writeFileSync(
    join(stage, 'README.md'),
    `# ${name}\n\n${description}. npm installs it along with voxgate.\n`,
  );
  pack(stage, {
    name,
    version,
    description,
    license,
    repository,
    engines,
    os: ['linux'],
    cpu: [processor],
    libc: ['glibc'],
    main: 'voxgate.node',
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
function glibcOf(folder, files) {
  const minors = files.flatMap((file) =>
    [...readFileSync(join(folder, file), 'latin1').matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) =>
      Number(minor),
    ),
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
  const engineVersions = Object.values(PROCESSORS).map((processor) => [engineName(processor), version]);
  pack(stage, {
    ...manifest,
    optionalDependencies: Object.fromEntries(engineVersions),
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
