/**
 * `npm run check` tests, from a fresh clone, everything that must hold before a change lands. Programs that wait for the
 * network or compute with one thread run beside others.
 */
import { fetchWeights, installTools, WEIGHTS } from './steps.mjs';
import { run, runSideBySide } from './tools.mjs';

const step = (title, command, ...args) => ({ title, command, args });
const script = (title, name, ...args) => step(title, 'npm', 'run', '--silent', name, '--', ...args);
const node = (title, ...args) => step(title, process.execPath, ...args);

installTools();
await runSideBySide([
  step('install', 'npm', 'ci', '--no-audit', '--no-fund'),
  node('clang-tidy', 'scripts/lint-tidy.mjs', '--fetch'),
]);
await runSideBySide([script('lint', 'lint'), script('typecheck', 'typecheck')]);
run('lint of the native code', 'npm', ['run', '--silent', 'lint', '--', 'tidy']);
run('build', 'npm', ['run', '--silent', 'build']);
await runSideBySide([
  node('packages of clients', '--import', 'tsx', 'test/clients/install.ts'),
  script('native tests', 'test:native', '--compile'),
  ...Object.values(WEIGHTS).map((id) => node(`weights of ${id}`, 'dist/main.js', 'models', 'pull', id)),
]);
const env = { ...process.env, ...fetchWeights(), VOXGATE_TEST_WEIGHTS: '1' };
run('native tests under sanitizers', 'npm', ['run', '--silent', 'test:native'], { env });
run('tests', 'npm', ['run', '--silent', 'test'], { env });
