/**
 * `npm run lint` looks at every file with Biome, knip, clang-format and shellcheck; `npm run lint -- tidy` at the native
 * code with clang-tidy (lint-tidy.mjs). `npm run format` is the same with --write: Biome and clang-format mend what they
 * can.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './tools.mjs';

const [word] = process.argv.slice(2);
if (word === 'tidy') {
  await import('./lint-tidy.mjs');
} else if (word === '--write') {
  step(bin('biome'), ['check', '--write', '.']);
  step('clang-format', ['-i', ...nativeFiles()]);
} else if (word === undefined) {
  step(bin('biome'), ['check', '--error-on-warnings', '.']);
  step(bin('knip'), []);
  step('clang-format', ['--dry-run', '-Werror', ...nativeFiles()]);
  step('shellcheck', shellFiles());
} else {
  process.stderr.write(`There is no part ${word}, only tidy.\n`);
  process.exit(1);
}

function step(command, args) {
  const { status, error } = spawnSync(command, args, { cwd: ROOT, stdio: 'inherit' });
  if (error) process.stderr.write(`${command}: ${error.message}\n`);
  if (status !== 0) process.exit(status ?? 1);
}

function bin(name) {
  return join(ROOT, 'node_modules/.bin', name);
}

function nativeFiles() {
  return readdirSync(join(ROOT, 'native'), { recursive: true })
    .filter((path) => /\.(cpp|h)$/.test(path))
    .map((path) => join('native', path));
}

function shellFiles() {
  const { stdout } = spawnSync('git', ['ls-files', '.ci/run', '*.sh'], { cwd: ROOT, encoding: 'utf8' });
  return stdout.trim().split('\n');
}
