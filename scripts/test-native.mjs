/**
 * `npm run test:native` compiles the native code without Node, under AddressSanitizer and UndefinedBehaviorSanitizer,
 * and runs its tests with leak detection; arguments choose tests by name. VOXGATE_TEST_MODEL and VOXGATE_TEST_VAD
 * name the weights; tests without theirs are skipped and say so.
 *
 * `npm run test:native -- --compile` only compiles.
 *
 * `npm run test:native -- --cpu=avx2 kernels` compiles it for that level of instructions, as `SVC_CPU` names them.
 *
 * `npm run test:native -- --threads` compiles it under ThreadSanitizer, ggml included, and runs the tests in which
 * threads meet.
 *
 * `npm run test:native -- --arch=arm64` compiles it for 64-bit ARM with a library for every level of instructions, and
 * runs the tests under QEMU, without sanitizers.
 */
import { compile, configure } from './cmake.mjs';
import { requireTools, run, runSideBySide } from './tools.mjs';

/** More parts than processors, so that none of them waits long for another one at the end. */
const PARTS = Array.from({ length: 8 }, (_, i) => `${i + 1}/8`);

/** Processors of QEMU, with the level that each of them takes by itself. The last one has the others too. */
const ARM_PROCESSORS = [
  { processor: 'cortex-a53', level: 'neon' },
  { processor: 'neoverse-n1', level: 'neon_dotprod' },
  { processor: 'max', level: 'neon_i8mm' },
];

/** What was seen to be quick enough under QEMU, and what it does not do as Linux on a processor does. */
const UNDER_QEMU = [
  'audio:',
  'keywords:',
  'parakeet:',
  'sensevoice',
  'whisper seams: words are aligned',
  'model file:',
  'models:',
  'log:',
];
const NOT_UNDER_QEMU = ['the longest chunk', 'opening ends soon'].map((words) => `-${words}`);

const [first, ...others] = process.argv.slice(2);
if (first === '--arch=arm64') {
  await testArm64(others);
  process.exit();
}
if (first === '--threads') {
  testThreads(others);
  process.exit();
}

const env = {
  ...process.env,
  // More memory than there can be is refused, as it is without the sanitizer.
  ASAN_OPTIONS:
    'allocator_may_return_null=1:detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1',
  UBSAN_OPTIONS: 'print_stacktrace=1',
  OMP_WAIT_POLICY: 'passive', // the tests have more threads than cores, which must not spin
};
const level = /^--cpu=(\w+)$/.exec(first ?? '')?.[1];
const folder = level === undefined ? 'build-asan' : `build-asan-${level}`;
build(folder, ['-DVOXGATE_SANITIZE=ON', `-DVOXGATE_CPU=${level ?? 'native'}`], env);
if (first === '--compile') process.exit();
const names = level === undefined ? process.argv.slice(2) : others;
const program = `${folder}/native/test/voxgate-tests`;
if (names.length > 0) run('native tests', program, names, { env });
else
  await runSideBySide(
    PARTS.map((part) => ({ title: part, command: program, args: [`--part=${part}`], env })),
  );

function build(folder, options, env) {
  configure(folder, ['-DVOXGATE_TESTS=ON', ...options], { env });
  compile(folder, { env });
}

/** @param names parts of the names of tests; all tests in which threads meet when empty */
function testThreads(names) {
  const env = { ...process.env, TSAN_OPTIONS: 'halt_on_error=1:second_deadlock_stack=1' };
  build('build-tsan', ['-DVOXGATE_SANITIZE_THREADS=ON'], env);
  const where = [
    'worker:',
    'thread budget:',
    'whisper: lanes',
    'whisper: a lane',
    'fake:',
    'log:',
    'models:',
  ];
  run('native tests', 'build-tsan/native/test/voxgate-tests', names.length > 0 ? names : where, { env });
}

/** @param names parts of the names of tests; all tests on one processor and those of the kernels on each when empty */
async function testArm64(names) {
  requireTools(['arm64-compiler', 'qemu-arm64']);
  const folder = 'build-arm64';
  const toolchain = '-DCMAKE_TOOLCHAIN_FILE=cmake/aarch64-linux-gnu.cmake';
  build(folder, [toolchain, '-DVOXGATE_CPU=all'], process.env);
  const step = (processor, level, words, settings = {}) => {
    // A test that needs weights would take minutes here.
    const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('VOXGATE_TEST_'));
    const env = {
      ...Object.fromEntries(inherited),
      OMP_WAIT_POLICY: 'passive',
      VOXGATE_TEST_LEVEL: level,
      ...settings,
    };
    const libraries = ['-L', '/usr/aarch64-linux-gnu'];
    const args = ['-cpu', processor, ...libraries, `${folder}/native/test/voxgate-tests`, ...words];
    return { title: `${processor}, ${level}`, command: 'qemu-aarch64', args, env };
  };
  const chosen = names.length > 0 ? names : ['kernels:'];
  const onEach = ARM_PROCESSORS.map(({ processor, level }) => step(processor, level, chosen));
  if (names.length > 0) return runSideBySide(onEach);
  return runSideBySide([
    step('neoverse-n1', 'neon_dotprod', [...UNDER_QEMU, ...NOT_UNDER_QEMU]),
    ...onEach,
    step('max', 'neon', ['kernels: they are those'], { SVC_CPU: 'neon' }),
  ]);
}
