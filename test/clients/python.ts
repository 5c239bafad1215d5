/** Makes Python environments below build/, each with the packages of one requirements.txt. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { acquireLock } from '../../src/models/lock.ts';

const BUILD = new URL('../../build/', import.meta.url).pathname;
const LIMIT_MS = 5 * 60_000;

/** The folders of test/ that have a requirements.txt; `deep` and `cuda` are large, and only deep tests need them. */
const FOLDERS = {
  clients: 'clients',
  frameworks: 'clients/frameworks',
  deep: 'deep',
  cuda: 'deep/cuda',
};

/** Installs the missing packages; test files that ask at the same time wait for one another. */
export async function pythonBin(of: keyof typeof FOLDERS = 'clients'): Promise<string> {
  const venv = join(BUILD, `python-${of}`);
  const requirements = new URL(`../${FOLDERS[of]}/requirements.txt`, import.meta.url).pathname;
  mkdirSync(BUILD, { recursive: true });
  const lock = await acquireLock(`${venv}.lock`, AbortSignal.timeout(LIMIT_MS));
  try {
    const wanted = readFileSync(requirements, 'utf8');
    const stamp = join(venv, 'installed.txt');
    if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
      const run = promisify(execFile);
      await run('python3', ['-m', 'venv', '--clear', venv]);
      await run(join(venv, 'bin/pip'), ['install', '-q', '-r', requirements]);
      writeFileSync(stamp, wanted);
    }
  } finally {
    await lock.release();
  }
  return join(venv, 'bin');
}
