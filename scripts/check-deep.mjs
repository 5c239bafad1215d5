/** `npm run check:deep` tests what takes longer than a check before each commit should: CI runs it after the check. */
import { fetchWeights, installTools } from './steps.mjs';
import { run } from './tools.mjs';

installTools(['cmake', 'compiler', 'make', 'python', 'pip', 'venv', 'ffmpeg', 'curl', 'haproxy']);
run('install', 'npm', ['ci', '--no-audit', '--no-fund']);
run('build', 'npm', ['run', '--silent', 'build']);
const env = { ...process.env, ...fetchWeights() };
run('deep tests', 'npm', ['run', '--silent', 'test', '--', 'test/deep/'], { env });
