/** `npm run check:deep` tests what takes longer than a check before each commit should: CI runs it after the check. */
import { fetchWeights, installTools } from './steps.mjs';
import { run } from './tools.mjs';

installTools();
run('install', 'npm', ['ci', '--no-audit', '--no-fund']);
run('build', 'npm', ['run', '--silent', 'build']);
const env = { ...process.env, ...fetchWeights() };
run('deep tests', 'npm', ['run', '--silent', 'test', '--', 'test/deep/'], { env });
run('threads', 'npm', ['run', '--silent', 'test:native', '--', '--threads'], { env });
run('fuzzing', 'npm', ['run', '--silent', 'fuzz', '--', '--seconds', '60'], { env });
run('soak', 'npm', ['run', '--silent', 'soak', '--', '--seconds', '180', '--seed', '1'], { env });
