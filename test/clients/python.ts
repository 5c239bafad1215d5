/** Makes the Python environment of the clients, below build/, with the packages of requirements.txt. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { acquireLock } from '../../src/models/lock.ts';

const VENV = new URL('../../build/python-clients', import.meta.url).pathname;
const REQUIREMENTS = new URL('requirements.txt', import.meta.url).pathname;
const LIMIT_MS = 5 * 60_000;

/** Installs the missing packages; test files that ask at the same time wait for one another. */
export async function pythonBin(): Promise<string> {
  mkdirSync(dirname(VENV), { recursive: true });
  const lock = await acquireLock(`${VENV}.lock`, AbortSignal.timeout(LIMIT_MS));
  try {
    const wanted = readFileSync(REQUIREMENTS, 'utf8');
    const stamp = join(VENV, 'installed.txt');
    if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
      const run = promisify(execFile);
      await run('python3', ['-m', 'venv', '--clear', VENV]);
      await run(join(VENV, 'bin/pip'), ['install', '-q', '-r', REQUIREMENTS]);
      writeFileSync(stamp, wanted);
    }
  } finally {
    await lock.release();
  }
  return join(VENV, 'bin');
}
