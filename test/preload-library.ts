/** Compiles a library that a test preloads into a process, where it stands between the process and the system. */
import { spawnSync } from 'node:child_process';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Compiles one C file into a library of the same name in the folder.
 * @returns the path for LD_PRELOAD, and the reason to skip the test where there is no such library
 */
export function compilePreloadLibrary(source: URL, dir: string): { path: string; skip: string | false } {
  const file = fileURLToPath(source);
  const path = join(dir, `${basename(file, '.c')}.so`);
  if (process.platform !== 'linux') return { path, skip: 'libraries are preloaded on Linux only' };
  // C++ code of the addon may throw through functions of the library.
  const flags = ['-std=gnu11', '-shared', '-fPIC', '-O1', '-fexceptions'];
  const { status, error, stderr } = spawnSync('cc', [...flags, '-o', path, file, '-ldl'], {
    encoding: 'utf8',
  });
  return { path, skip: status !== 0 && `no C compiler: ${error?.message ?? stderr}` };
}
