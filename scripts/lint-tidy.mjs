/**
 * `npm run lint -- tidy`: clang-tidy over every C++ file of native/ with the checks of .clang-tidy. CMake configures a
 * folder of its own, because clang-tidy needs the compile commands; nothing is compiled. With --fetch it only fetches
 * clang-tidy, which needs none of the packages of npm.
 */
import { existsSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { configure } from './cmake.mjs';
import { ROOT, run } from './tools.mjs';

const DIR = 'build-tidy';
/** From the package index, because the versions of distributions need three times as long. */
const VERSION = '23.1.4';
const venv = join(ROOT, DIR, `clang-tidy-${VERSION}`);
const clangTidy = join(venv, 'bin/clang-tidy');
if (!existsSync(clangTidy)) {
  run('a Python environment', 'python3', ['-m', 'venv', '--clear', venv]);
  run('fetch clang-tidy', join(venv, 'bin/pip'), ['install', '--quiet', `clang-tidy==${VERSION}`]);
}

if (process.argv.includes('--fetch')) process.exit();

configure(DIR, ['-DVOXGATE_TESTS=ON', '-DCMAKE_EXPORT_COMPILE_COMMANDS=ON']);
const native = join(ROOT, 'native/');
const commands = JSON.parse(readFileSync(join(ROOT, DIR, 'compile_commands.json'), 'utf8'));
const files = [...new Set(commands.map(({ file }) => file))].filter((file) => file.startsWith(native)).sort();
if (files.length < 50) throw new Error(`${DIR} compiles only ${files.length} files of native/`);
const tidy = ['-0', '-n1', `-P${availableParallelism()}`, clangTidy, '-p', DIR, '--quiet'];
run(`clang-tidy over ${files.length} files`, 'xargs', tidy, {
  input: files.join('\0'),
  stdio: ['pipe', 'inherit', 'inherit'],
});
