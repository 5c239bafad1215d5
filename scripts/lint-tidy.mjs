/**
 * `npm run lint:tidy`: clang-tidy over every C++ file of native/ with the checks of .clang-tidy. CMake configures a
 * folder of its own, because clang-tidy needs the compile commands; nothing is compiled.
 */
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { ROOT, run } from './tools.mjs';

const DIR = 'build-tidy';
const definitions = [
  '-DVOXGATE_TESTS=ON',
  '-DCMAKE_EXPORT_COMPILE_COMMANDS=ON',
  '-DCMAKE_BUILD_TYPE=Release',
];
run('configure', 'cmake', ['-S', '.', '-B', DIR, ...definitions, '--log-level=WARNING']);

const native = join(ROOT, 'native/');
const commands = JSON.parse(readFileSync(join(ROOT, DIR, 'compile_commands.json'), 'utf8'));
const files = [...new Set(commands.map(({ file }) => file))].filter((file) => file.startsWith(native)).sort();
if (files.length < 50) throw new Error(`${DIR} compiles only ${files.length} files of native/`);
const tidy = ['xargs', '-0', '-n1', `-P${availableParallelism()}`, 'clang-tidy', '-p', DIR, '--quiet'];
run(
  `clang-tidy over ${files.length} files`,
  'bash',
  ['-c', `"$@" 2> >(grep -v " warnings\\? generated" >&2)`, 'tidy', ...tidy],
  {
    input: files.join('\0'),
    stdio: ['pipe', 'inherit', 'inherit'],
  },
);
