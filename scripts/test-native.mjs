/**
 * `npm run test:native` compiles the native code without Node, under AddressSanitizer and UndefinedBehaviorSanitizer,
 * and runs its tests with leak detection; arguments choose tests by name. VOXGATE_TEST_MODEL and VOXGATE_TEST_VAD
 * name the weights; tests without theirs are skipped and say so.
 */
import { availableParallelism } from 'node:os';
import { run } from './tools.mjs';

const env = {
  ...process.env,
  // More memory than there can be is refused, as it is without the sanitizer.
  ASAN_OPTIONS:
    'allocator_may_return_null=1:detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1',
  UBSAN_OPTIONS: 'print_stacktrace=1',
  OMP_WAIT_POLICY: 'passive', // the tests have more threads than cores, which must not spin
};
const definitions = ['-DVOXGATE_TESTS=ON', '-DVOXGATE_SANITIZE=ON', '-DCMAKE_BUILD_TYPE=Release'];
run('configure', 'cmake', ['-S', '.', '-B', 'build-asan', ...definitions, '--log-level=WARNING'], { env });
run('compile', 'cmake', ['--build', 'build-asan', '--parallel', String(availableParallelism())], { env });
run('native tests', 'build-asan/native/test/voxgate-tests', process.argv.slice(2), { env });
