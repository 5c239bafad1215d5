/** Compiles one of ggml's backends for GPUs into a library, and puts it beside the addon, which loads it at run time. */
import { copyFileSync, existsSync, mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { compile, configure } from './cmake.mjs';
import { ROOT } from './tools.mjs';

/** ggml's names of the backends that this project builds; `vulkan` is compiled in `build-vulkan/`. */
const BACKENDS = ['cuda', 'vulkan'];

/** The build folder of a backend, which outlives rebuilds of the addon. `kind` is empty but for a library for tests. */
export function gpuBuildFolder(backend, kind = '') {
  const folder = join(ROOT, `build-${backend}${kind}`);
  mkdirSync(folder, { recursive: true });
  return folder;
}

/**
 * @param backend `cuda` or `vulkan`
 * @param definitions what CMake needs beside that, as `-DNAME=VALUE`
 * @param options.whisperSource the folder of whisper.cpp; empty for the one in node_modules
 * @param options.kind a library for tests, which stays in its own build folder
 */
export function buildGpuLibrary(backend, definitions, { title, jobs, whisperSource, kind = '' }) {
  const folder = gpuBuildFolder(backend, kind);
  const all = [
    `-DVOXGATE_${backend.toUpperCase()}=ON`,
    `-DCMAKE_LIBRARY_OUTPUT_DIRECTORY=${join(folder, 'lib')}`,
    ...definitions,
    ...(whisperSource === '' ? [] : [`-DWHISPER_SOURCE_DIR=${resolve(whisperSource)}`]),
  ];
  configure(folder, all);
  compile(folder, { title, target: `ggml-${backend}`, jobs });
  if (kind !== '') return;
  const beside = join(ROOT, 'build/Release');
  if (existsSync(beside)) putGpuLibrariesInto(beside);
  process.stdout.write(
    existsSync(beside)
      ? 'Ready: SVC_DEVICE=auto takes the GPU.\n'
      : 'Compiled. Now the addon: npm run build puts the library beside it.\n',
  );
}

/**
 * Puts the libraries that were compiled into the folder of the addon, which may have been made again since. What they
 * need of others is linked beside them, because they look nowhere else.
 */
export function putGpuLibrariesInto(folder) {
  for (const backend of BACKENDS) {
    const from = join(ROOT, `build-${backend}`, 'lib');
    const library = `libggml-${backend}.so`;
    if (!existsSync(join(from, library))) continue;
    copyFileSync(join(from, library), join(folder, library));
    for (const { name } of readdirSync(from, { withFileTypes: true }).filter((entry) =>
      entry.isSymbolicLink(),
    )) {
      rmSync(join(folder, name), { force: true });
      symlinkSync(readlinkSync(join(from, name)), join(folder, name));
    }
  }
}
