/** Installs Node packages that only the benches use, in a folder of their own. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageVersion, ROOT } from './peer.ts';

const FOLDER = join(ROOT, 'build/bench-node');

/** Installs this very version unless it is there. Returns the package's folder. */
export function ensureNodePackage(name: string, version: string): string {
  const folder = join(FOLDER, 'node_modules', name);
  if (existsSync(join(folder, 'package.json')) && packageVersion(folder) === version) return folder;
  process.stderr.write(`Installing ${name}@${version} in ${FOLDER}\n`);
  mkdirSync(FOLDER, { recursive: true });
  // Without a manifest of its own npm would take the one above, which is ours.
  const manifest = join(FOLDER, 'package.json');
  if (!existsSync(manifest)) writeFileSync(manifest, '{ "private": true }\n');
  const args = ['install', '--prefix', FOLDER, '--no-audit', '--no-fund', '--save-exact', '--ignore-scripts'];
  execFileSync('npm', [...args, `${name}@${version}`], {
    cwd: FOLDER,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return folder;
}
