/** Makes Python environments below build/, each with the packages of one file of requirements. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { acquireLock } from '../../src/models/lock.ts';

const BUILD = new URL('../../build/', import.meta.url).pathname;
const LIMIT_MS = 5 * 60_000;

/**
 * Installs the missing packages; test files that ask at the same time wait for one another.
 * @param requirements the packages, in test/; those of deep tests are large, and some do not go together
 */
export async function pythonBin(requirements = 'clients/requirements.txt'): Promise<string> {
  const venv = join(BUILD, `python-${requirements.replace(/\W+/g, '-')}`);
  const path = new URL(`../${requirements}`, import.meta.url).pathname;
  mkdirSync(BUILD, { recursive: true });
  const lock = await acquireLock(`${venv}.lock`, AbortSignal.timeout(LIMIT_MS));
  try {
    const wanted = readFileSync(path, 'utf8');
    const stamp = join(venv, 'installed.txt');
    if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
      const run = promisify(execFile);
      await run('python3', ['-m', 'venv', '--clear', venv]);
      await run(join(venv, 'bin/pip'), ['install', '-q', '-r', path]);
      writeFileSync(stamp, wanted);
    }
  } finally {
    await lock.release();
  }
  return join(venv, 'bin');
}
