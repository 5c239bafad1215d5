/**
 * `npm run test:native` compiles the native code without Node, under AddressSanitizer and UndefinedBehaviorSanitizer,
 * and runs its tests with leak detection; arguments choose tests by name. VOXGATE_TEST_MODEL and VOXGATE_TEST_VAD
 * name the weights; tests without theirs are skipped and say so.
 *
 * `npm run test:native -- --threads` compiles it under ThreadSanitizer, ggml included, and runs the tests in which
 * threads meet.
 */
import { availableParallelism } from 'node:os';
import { run } from './tools.mjs';

const [first, ...others] = process.argv.slice(2);
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
build('build-asan', '-DVOXGATE_SANITIZE=ON', env);
run('native tests', 'build-asan/native/test/voxgate-tests', process.argv.slice(2), { env });

function build(folder, sanitizer, env) {
  const definitions = ['-DVOXGATE_TESTS=ON', sanitizer, '-DCMAKE_BUILD_TYPE=Release'];
  run('configure', 'cmake', ['-S', '.', '-B', folder, ...definitions, '--log-level=WARNING'], { env });
  run('compile', 'cmake', ['--build', folder, '--parallel', String(availableParallelism())], { env });
}

/** @param names parts of the names of tests; all tests in which threads meet when empty */
function testThreads(names) {
  const env = { ...process.env, TSAN_OPTIONS: 'halt_on_error=1:second_deadlock_stack=1' };
  build('build-tsan', '-DVOXGATE_SANITIZE_THREADS=ON', env);
  const where = [
    'worker:',
    'thread budget:',
    'whisper: lanes',
    'whisper: a lane',
    'fake:',
    'log:',
    'models:',
  ];
  for (const name of names.length > 0 ? names : where)
    run(`native tests of ${name}`, 'build-tsan/native/test/voxgate-tests', [name], { env });
}
