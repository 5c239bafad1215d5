/** Libraries that stand for those of CUDA and of its driver (cuda-stub.c). */
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
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

/**
 * A folder as the build of the CUDA library makes one, whose libraries of CUDA lie in a toolkit, with NVIDIA's license
 * above them.
 */
export function stubBuild(dir: string): string {
  const toolkit = join(dir, 'toolkit');
  const lib = join(toolkit, 'lib');
  const build = join(dir, 'stub-build');
  mkdirSync(lib, { recursive: true });
  writeFileSync(join(toolkit, 'EULA.txt'), 'You may distribute libcudart.so and libcublas.so.\n');
  // As in a toolkit, where the file of a library has its whole version, and a link the name that others need.
  const names = ['libcudart.so.13', 'libcublasLt.so.13', 'libcublas.so.13'];
  const [cudart = '', cublasLt = '', cublas = ''] = names.map((name) => join(lib, name));
  for (const name of names) symlinkSync(`${name}.0.2`, join(lib, name));
  compile('RUNTIME', cudart);
  compile('CUBLASLT', cublasLt);
  compile('CUBLAS', cublas, cublasLt, '-Wl,-rpath,$ORIGIN');
  const configure = [
    ...['-S', new URL('./cuda', import.meta.url).pathname, '-B', build],
    `-DCMAKE_LIBRARY_OUTPUT_DIRECTORY=${join(build, 'lib')}`,
    `-DTOOLKIT_LIBRARIES=${[cudart, cublas, cublasLt].join(';')}`,
    `-DGGML_BASE=${join(ROOT, 'build/Release/libvoxgate-ggml-base.so')}`,
  ];
  for (const args of [configure, ['--build', build]]) execFileSync('cmake', args, { stdio: 'pipe' });
  return build;
}

/** @returns the folder of a driver that sees no GPU */
export function stubDriver(dir: string): string {
  const driver = join(dir, 'driver');
  mkdirSync(driver, { recursive: true });
  compile('DRIVER', join(driver, 'libcuda.so.1'));
  return driver;
}
