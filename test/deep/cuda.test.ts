/**
 * What can be seen of CUDA without a GPU: its library is configured and begins to compile, with the compiler of the
 * package index, and the report for people with a GPU says what it needs. The whole library takes half an hour.
 */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pythonBin } from '../clients/python.ts';
import { createWorkingCopy } from '../recipes/working-copy.ts';

/** So many begin, in the order of the alphabet, that four have ended: each core compiles one. The first are small. */
const FILES = availableParallelism() + 4;

test('npm run build -- cuda compiles kernels, and npm run bench -- gpu says what it needs', {
  timeout: 600_000,
}, async () => {
  const toolkit = toolkitIn(join(await pythonBin('cuda'), '..'));
  await using copy = createWorkingCopy({ ownBuild: false });
  // When grep has seen enough it closes the pipe, which ends the compilation.
  const build = `PATH=${toolkit}/bin:$PATH npm run build -- cuda --architectures=90 2>&1`;
  const { stdout } = await copy.run(
    `${build} | tee build.log | grep --max-count=${FILES} 'Building CUDA object'`,
  );
  const said = readFileSync(join(copy.dir, 'build.log'), 'utf8');
  assert.equal(stdout.trim().split('\n').length, FILES, said);
  assert.doesNotMatch(said, /error/i);
  const compiled = [...stdout.matchAll(/Building CUDA object (\S+)/g)]
    .map(([, path = '']) => join(copy.dir, 'build-cuda', path))
    .filter((path) => existsSync(path) && readFileSync(path, 'latin1').includes('.nv_fatbin'));
  assert(compiled.length >= 4, `${compiled.length} have code for a GPU`);

  const { code, output } = await copy.run('npm run bench -- gpu');
  if (existsSync('/dev/nvidia0')) return;
  assert.equal(code, 1);
  assert.match(output, /No NVIDIA GPU answers here .*not installed.*\n.*install NVIDIA's driver/);
});

/** Where the packages lay down CUDA: CMake looks for names that the packages of a distribution add. */
function toolkitIn(venv: string): string {
  const python = readdirSync(join(venv, 'lib'))[0] ?? '';
  const toolkit = join(venv, 'lib', python, 'site-packages/nvidia/cu13');
  for (const [target, link] of [
    ['lib', 'lib64'],
    ['libcudart.so.13', 'lib/libcudart.so'],
  ] as const)
    if (!existsSync(join(toolkit, link))) symlinkSync(target, join(toolkit, link));
  return toolkit;
}
