/** The scripts that compile with CMake share this. */
import { availableParallelism } from 'node:os';
import { missingTools, run } from './tools.mjs';

/**
 * Ninja compiles everything in one folder, so that ccache finds what another build has compiled. Make has a folder for
 * each target. A folder that is configured already keeps what it has.
 */
const generator = missingTools(['ninja']).length === 0 ? { CMAKE_GENERATOR: 'Ninja' } : {};

/** @param definitions what CMake is told, as `-DNAME=VALUE` */
export function configure(folder, definitions, { title = 'configure', env = process.env } = {}) {
  const args = ['-S', '.', '-B', folder, '-DCMAKE_BUILD_TYPE=Release', ...definitions, '--log-level=WARNING'];
  run(title, 'cmake', args, { env: { ...generator, ...env } });
}

export function compile(
  folder,
  { title = 'compile', target = 'all', jobs = String(availableParallelism()), env = process.env } = {},
) {
  run(title, 'cmake', ['--build', folder, '--target', target, '--parallel', jobs], { env });
}
