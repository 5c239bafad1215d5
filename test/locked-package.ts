/** Installs the npm packages of a folder of tests that has a lockfile of its own. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const BUILD = fileURLToPath(new URL('../build/', import.meta.url));

/**
 * Installs into another folder and moves it in as a whole, so that a second test file that starts meanwhile, or an
 * install that was cut short, never sees half a folder.
 */
export function installLocked(folder: string): void {
  const modules = join(folder, 'node_modules');
  const lock = readFileSync(join(folder, 'package-lock.json'), 'utf8');
  const stampIn = (parent: string) => join(parent, '.installed-lock.json');
  const isCurrent = () => existsSync(stampIn(modules)) && readFileSync(stampIn(modules), 'utf8') === lock;
  if (isCurrent()) return;
  process.stdout.write(`Installing the packages of ${relative(join(BUILD, '..'), folder)}, once\n`);
  const aside = join(BUILD, `${basename(folder)}-${process.pid}`);
  mkdirSync(aside, { recursive: true });
  try {
    for (const file of ['package.json', 'package-lock.json', '.npmrc'])
      cpSync(join(folder, file), join(aside, file));
    // Below `npm run` the settings of the repository hold here too, and packages may ask for a newer Node.
    const flags = ['--loglevel=error', '--no-engine-strict'];
    execFileSync('npm', ['ci', ...flags], { cwd: aside, stdio: ['ignore', 'ignore', 'inherit'] });
    writeFileSync(stampIn(join(aside, 'node_modules')), lock);
    if (isCurrent()) return;
    rmSync(modules, { recursive: true, force: true });
    renameSync(join(aside, 'node_modules'), modules);
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
}
