/** `npm run check` tests, from a fresh clone, everything that must hold before a change lands. */
import { fetchWeights, installTools } from './steps.mjs';
import { run } from './tools.mjs';

installTools();
run('install', 'npm', ['ci', '--no-audit', '--no-fund']);
run('lint', 'npm', ['run', '--silent', 'lint']);
run('lint of the native code', 'npm', ['run', '--silent', 'lint', '--', 'tidy']);
run('typecheck', 'npm', ['run', '--silent', 'typecheck']);
run('build', 'npm', ['run', '--silent', 'build']);
const env = { ...process.env, ...fetchWeights(), VOXGATE_TEST_WEIGHTS: '1' };
run('native tests under sanitizers', 'npm', ['run', '--silent', 'test:native'], { env });
run('tests', 'npm', ['run', '--silent', 'test'], { env });
