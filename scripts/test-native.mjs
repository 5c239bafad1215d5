// Compiles the native code without Node, under AddressSanitizer and UndefinedBehaviorSanitizer, and runs its tests with
// leak detection. Weights are named by VOXGATE_TEST_MODEL and VOXGATE_TEST_VAD; tests without theirs are skipped and
// say so.
import { spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const sanitizers = {
  ASAN_OPTIONS: 'detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1',
  UBSAN_OPTIONS: 'print_stacktrace=1',
};

function run(command, args) {
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, ...sanitizers },
  });
  if (error) console.error(`Cannot run ${command}: ${error.message}`);
  if (error || status !== 0) process.exit(1);
}

const definitions = ['-DVOXGATE_TESTS=ON', '-DVOXGATE_SANITIZE=ON', '-DCMAKE_BUILD_TYPE=Release'];
run('cmake', ['-S', '.', '-B', 'build-asan', ...definitions, '--log-level=WARNING']);
run('cmake', ['--build', 'build-asan', '--parallel', String(availableParallelism())]);
run('build-asan/native/test/voxgate-tests', process.argv.slice(2));
