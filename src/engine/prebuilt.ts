/**
 * The addon that is compiled already. It comes in a package of its own for each platform, which npm installs along with
 * this one where the platform is its own (scripts/pack.mjs).
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);
const NAME = `@voxgate/engine-${process.platform}-${process.arch}`;
/** The same relative paths serve both src/engine and dist/engine. npm publishes no lockfile, so a clone has one. */
const isClone = existsSync(new URL('../../package-lock.json', import.meta.url));
const { version, optionalDependencies } = require('../../package.json') as {
  version: string;
  /** The packages of all platforms; absent in a clone. */
  optionalDependencies?: Record<string, string>;
};

/**
 * The path of the addon; null where its package is not installed.
 * @throws Error when the package is of another version than this one, because the two know one another's functions
 */
export function prebuiltAddon(): string | null {
  let found: { version: string };
  try {
    found = require(`${NAME}/package.json`);
  } catch {
    return null;
  }
  if (found.version !== version)
    throw new Error(
      `${NAME} is of version ${found.version} and voxgate of ${version}: install ${NAME}@${version}`,
    );
  return require.resolve(NAME);
}

/** What to do where the addon cannot be loaded, as an order. */
export function howToGetAddon(): string {
  if (isClone) return 'run npm run build';
  const compile = 'run voxgate build, which needs CMake and a C++ compiler';
  return optionalDependencies?.[NAME] !== undefined
    ? `install ${NAME}@${version} (for systems with the GNU C library), or ${compile}`
    : compile;
}

/** The Debian package of a library that the addon was not loaded for; null for another reason. */
export function missingSystemPackage(reason: string): string | null {
  return /libgomp\.so\.\d+: cannot open/.test(reason) ? 'libgomp1' : null;
}
