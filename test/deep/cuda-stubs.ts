/** Libraries that stand for those of CUDA and of its driver (cuda-stub.c). */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = new URL('../../', import.meta.url).pathname;

function compile(what: string, library: string, ...options: string[]): void {
  const source = new URL('./cuda-stub.c', import.meta.url).pathname;
  const soname = `-Wl,-soname,${library.split('/').at(-1)}`;
  execFileSync('cc', [
    '-shared',
    '-fPIC',
    '-w',
    `-D${what}`,
    '-o',
    library,
    soname,
    source,
    ...options,
    '-ldl',
  ]);
}

/** A folder as the build of the CUDA library makes one, with NVIDIA's license where its toolkit has it. */
export function stubBuild(dir: string): string {
  const toolkit = join(dir, 'toolkit');
  const lib = join(toolkit, 'lib');
  const own = join(dir, 'stub-build/lib');
  for (const folder of [lib, own]) mkdirSync(folder, { recursive: true });
  writeFileSync(join(toolkit, 'EULA.txt'), 'You may distribute libcudart.so and libcublas.so.\n');
  compile('RUNTIME', join(lib, 'libcudart.so.13'));
  compile('CUBLASLT', join(lib, 'libcublasLt.so.13'));
  compile('CUBLAS', join(lib, 'libcublas.so.13'), join(lib, 'libcublasLt.so.13'), '-Wl,-rpath,$ORIGIN');
  const needed = ['libcudart.so.13', 'libcublas.so.13'].map((name) => join(lib, name));
  const ggml = join(ROOT, 'build/Release/libvoxgate-ggml-base.so');
  compile(
    'GGML',
    join(own, 'libggml-cuda.so'),
    ...needed,
    ggml,
    `-Wl,-rpath,$ORIGIN:${lib}`,
    `-Wl,-rpath-link,${lib}`,
  );
  return join(dir, 'stub-build');
}

/** @returns the folder of a driver that sees no GPU */
export function stubDriver(dir: string): string {
  const driver = join(dir, 'driver');
  mkdirSync(driver, { recursive: true });
  compile('DRIVER', join(driver, 'libcuda.so.1'));
  return driver;
}
