/** `npm run check:deep` tests what takes longer than a check before each commit should: CI runs it after the check. */
import { readFileSync } from 'node:fs';
import { fetchWeights, installTools } from './steps.mjs';
import { run, VULKAN_TOOLS } from './tools.mjs';

installTools([
  ...VULKAN_TOOLS,
  'lavapipe',
  'qemu',
  'qemu-arm64',
  'arm64-compiler',
  'musl-gcc',
  'debootstrap',
]);
run('install', 'npm', ['ci', '--no-audit', '--no-fund']);
run('build', 'npm', ['run', '--silent', 'build']);
run('Vulkan library', 'npm', ['run', '--silent', 'build:vulkan', '--', '--floats']);
const env = { ...process.env, ...fetchWeights() };
run('deep tests', 'npm', ['run', '--silent', 'test', '--', 'test/deep/'], { env });
run('threads', 'npm', ['run', '--silent', 'test:native', '--', '--threads'], { env });
// These kernels differ most from the machine's own. test/deep/cpu-levels.test.ts compares the tokens of all levels.
const flags =
  readFileSync('/proc/cpuinfo', 'utf8')
    .match(/^flags.*/m)?.[0]
    .split(' ') ?? [];
const hasNewer = flags.includes('avx512f') || flags.includes('avx_vnni');
if (flags.includes('avx2') && hasNewer)
  run('kernels of avx2', 'npm', ['run', '--silent', 'test:native', '--', '--cpu=avx2', 'kernels'], { env });
else
  process.stdout.write(
    '\n== kernels of avx2: skipped, the processor has no newer ones, and the check tests its own\n',
  );
// These files meet most of Node's own code. All files of the addon and of HTTP would take eight minutes; with --spread
// each of them runs on one of the versions.
const onEachNode = [
  'native/model',
  'native/whisper',
  'http/transcriptions',
  'http/streaming',
  'http/realtime.',
];
run('Node versions', 'npm', ['run', '--silent', 'test:node-versions', '--', ...onEachNode], {
  env,
});
run('64-bit ARM', 'npm', ['run', '--silent', 'test:arm64'], { env });
run('fuzzing', 'npm', ['run', '--silent', 'fuzz', '--', '--seconds', '10'], { env });
run('soak', 'npm', ['run', '--silent', 'soak', '--', '--seconds', '60', '--seed', '1'], { env });
