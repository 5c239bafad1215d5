/** Files of Debian packages, which are unpacked below build/ and need not be installed. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../common/machine.ts';

const FOLDER = join(ROOT, 'build/bench-clips');

/**
 * The path of a file or folder of a package: the installed one, or one that is unpacked once. Where neither is
 * possible it is null, and the reason is printed.
 * @param path without the leading slash
 */
export function debianPackagePath(name: string, path: string): string | null {
  const unpacked = join(FOLDER, name);
  for (const root of ['/', unpacked]) {
    if (existsSync(join(root, path))) return join(root, path);
  }
  try {
    mkdirSync(FOLDER, { recursive: true });
    const run = (command: string, args: string[]) =>
      execFileSync(command, args, { cwd: FOLDER, stdio: ['ignore', 'ignore', 'pipe'] });
    run('apt-get', ['download', name]);
    const archive = readdirSync(FOLDER).find((file) => file.startsWith(`${name}_`));
    run('dpkg', ['-x', archive ?? '', unpacked]);
    return join(unpacked, path);
  } catch (error) {
    const reason = error instanceof Error ? error.message.trim() : String(error);
    process.stderr.write(`Without the clips of ${name}, which has to come from Debian: ${reason}\n`);
    return null;
  }
}
