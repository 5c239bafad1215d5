/**
 * The addon that is compiled already, and the libraries for GPUs (scripts/pack.mjs). The addon comes in a package of its
 * own for each platform, which npm installs along with this one where the platform is its own. A library for a GPU
 * is a package that operators with such a GPU install beside voxgate.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import type { GpuLibrary } from './types.ts';

const require = createRequire(import.meta.url);
const NAME = `@voxgate/engine-${process.platform}-${process.arch}`;
/** The same relative paths serve both src/engine and dist/engine. npm publishes no lockfile, so a clone has one. */
const isClone = existsSync(new URL('../../package-lock.json', import.meta.url));
const { version, repository, optionalDependencies } = require('../../package.json') as {
  version: string;
  repository: { url: string };
  /** The packages of all platforms; absent in a clone. */
  optionalDependencies?: Record<string, string>;
};

/**
 * The path of the addon; null where its package is not installed.
 * @throws Error when the package is of another version than this one, because the two know one another's functions
 */
export function prebuiltAddon(): string | null {
  const found = installedVersion(NAME);
  if (found === null) return null;
  if (found !== version)
    throw new Error(`${NAME} is of version ${found} and voxgate of ${version}: install ${NAME}@${version}`);
  return require.resolve(NAME);
}

const gpuPackage = (library: GpuLibrary) => `${NAME}-${library}`;

/** The folder of a library for GPUs that has a package of its own; null where it is not installed in this version. */
export function prebuiltGpuFolder(library: GpuLibrary): string | null {
  const name = gpuPackage(library);
  return installedVersion(name) === version ? dirname(require.resolve(`${name}/package.json`)) : null;
}

function installedVersion(name: string): string | null {
  try {
    return (require(`${name}/package.json`) as { version: string }).version;
  } catch {
    return null;
  }
}

/** What to do where the addon cannot be loaded, as an order. */
export function howToGetAddon(): string {
  if (isClone) return 'run npm run build';
  const compile = 'run voxgate build, which needs CMake and a C++ compiler';
  return optionalDependencies?.[NAME] !== undefined
    ? `install ${NAME}@${version} (for systems with the GNU C library), or ${compile}`
    : compile;
}

/**
 * What to do where the library for a kind of GPU is not installed, as an order. The package for CUDA is with the release
 * on GitHub, because npm takes none as large (docs/gpu.md). Since version 12 npm fetches a URL only where that is allowed,
 * and earlier versions do not mind the option.
 */
export function howToGetGpuLibrary(library: GpuLibrary): string {
  if (isClone) return `run npm run build -- ${library}`;
  const name = gpuPackage(library);
  if (library !== 'cuda') return `install ${name}@${version}`;
  const home = repository.url.replace(/^git\+|\.git$/g, '');
  return `run npm install -g --allow-remote=root ${home}/releases/download/v${version}/${name.slice(1).replace('/', '-')}-${version}.tgz`;
}

/** The Debian package of a library that the addon was not loaded for; null for another reason. */
export function missingSystemPackage(reason: string): string | null {
  return /libgomp\.so\.\d+: cannot open/.test(reason) ? 'libgomp1' : null;
}
