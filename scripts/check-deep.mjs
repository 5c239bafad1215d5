/**
 * `npm run check:deep` tests what takes longer than a check before each commit should: CI runs it after the check.
 *
 * With VOXGATE_CHECK_UNTIL, a Unix time, nothing is begun after that time, and what is left out is named. The parts are
 * begun in an order that differs from commit to commit then, so that a slow machine leaves out others the next time.
 */
import { readFileSync } from 'node:fs';
import { fetchWeights, installTools } from './steps.mjs';
import { isLate, run, turned, VULKAN_TOOLS } from './tools.mjs';

installTools([
  ...VULKAN_TOOLS,
  'lavapipe',
  'qemu',
  'qemu-arm64',
  'arm64-compiler',
  'musl-gcc',
  'debootstrap',
  'buildah',
]);
run('install', 'npm', ['ci', '--no-audit', '--no-fund']);
run('build', 'npm', ['run', '--silent', 'build']);
const env = { ...process.env, ...fetchWeights() };
const npm = (title, script, ...args) =>
  run(title, 'npm', ['run', '--silent', script, '--', ...args], { env });

// These files meet most of Node's own code. All files of the addon and of HTTP would take eight minutes; with --spread
// each of them runs on one of the versions.
const ON_EACH_NODE = [
  'native/model',
  'native/whisper',
  'http/transcriptions',
  'http/streaming',
  'http/realtime.',
];
const PARTS = {
  'deep tests': (title) => {
    npm('Vulkan library', 'build', 'vulkan', '--floats');
    npm(title, 'test', 'test/deep/');
  },
  threads: (title) => npm(title, 'test:native', '--threads'),
  'kernels of avx2': testOlderKernels,
  'Node versions': (title) =>
    run(title, process.execPath, ['scripts/test-node-versions.mjs', ...ON_EACH_NODE], { env }),
  '64-bit ARM': (title) => npm(title, 'test:native', '--arch=arm64'),
  fuzzing: (title) => npm(title, 'fuzz'),
  soak: (title) => npm(title, 'soak', '--seconds', '60', '--seed', '1'),
};
for (const [title, test] of turned(Object.entries(PARTS))) if (!isLate(title)) test(title);

/** These kernels differ most from the machine's own. test/deep/cpu-levels.test.ts compares the tokens of all levels. */
function testOlderKernels(title) {
  const [flags = ''] = readFileSync('/proc/cpuinfo', 'utf8').match(/^flags.*/m) ?? [];
  if (/ avx2\b/.test(flags) && / (avx512f|avx_vnni)\b/.test(flags))
    npm(title, 'test:native', '--cpu=avx2', 'kernels');
  else
    process.stdout.write(
      `\n== ${title}: skipped, the processor has no newer ones, and the check tests its own\n`,
    );
}
