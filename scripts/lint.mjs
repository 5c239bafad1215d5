/**
 * `npm run lint` looks at every file with Biome, knip, clang-format and shellcheck; `npm run lint -- tidy` at the native
 * code with clang-tidy (lint-tidy.mjs). `npm run format` is the same with --write: Biome and clang-format mend what they
 * can.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { exec, fail, ROOT } from './tools.mjs';

const [word] = process.argv.slice(2);
if (word === 'tidy') {
  await import('./lint-tidy.mjs');
} else if (word === '--write') {
  exec(bin('biome'), ['check', '--write', '.']);
  exec('clang-format', ['-i', ...nativeFiles()]);
} else if (word === undefined) {
  exec(bin('biome'), ['check', '--error-on-warnings', '.']);
  exec(bin('knip'), []);
  exec('clang-format', ['--dry-run', '-Werror', ...nativeFiles()]);
  exec('shellcheck', shellFiles());
} else {
  fail(`There is no part ${word}, only tidy.`);
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
