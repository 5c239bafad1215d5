/** A folder for PATH and an empty home, as on a machine where no compiler, CMake or Python is installed. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { readConfig } from '../../src/config/config.ts';

const LIMIT_MS = 20 * 60_000;

export interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

export interface BareMachine {
  /** Of everything, and where programs run. */
  dir: string;
  /** The environment of a gateway there, with the weights of this machine. */
  settings: NodeJS.ProcessEnv;
  run(command: string, args: string[], settings?: NodeJS.ProcessEnv): Promise<Outcome>;
  /** Installs packages as npm does for everybody, below a prefix. */
  install(prefix: string, ...args: string[]): Promise<void>;
  remove(): void;
}

/** @returns a machine whose PATH has what Node and npm need, and nothing that compiles */
export function bareMachine(): BareMachine {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-package-'));
  const bin = join(dir, 'bin');
  const own = { PATH: bin, HOME: join(dir, 'home'), XDG_CACHE_HOME: '' };
  mkdirSync(bin);
  mkdirSync(own.HOME);
  for (const name of ['npm', 'sh', 'env']) symlinkSync(programOnPath(name), join(bin, name));
  symlinkSync(process.execPath, join(bin, 'node'));
  assert.deepEqual(readdirSync(bin).sort(), ['env', 'node', 'npm', 'sh']);

  const run: BareMachine['run'] = (command, args, settings = {}) => {
    const options = { cwd: dir, env: { ...process.env, ...own, ...settings }, timeout: LIMIT_MS };
    return new Promise((resolve) => {
      const child = execFile(command, args, options, (_error, stdout, stderr) =>
        resolve({ code: child.exitCode ?? -1, stdout, stderr }),
      );
    });
  };
  return {
    dir,
    settings: {
      ...own,
      ...{ SVC_MODEL_DIR: readConfig().config.modelDir, SVC_MODEL_DOWNLOAD: 'off' },
      ...{ SVC_OBS_ACCESS_LOG_ENABLED: 'off' },
    },
    run,
    async install(prefix, ...args) {
      const { code, stderr } = await run(join(bin, 'npm'), ['install', '-g', `--prefix=${prefix}`, ...args]);
      assert.equal(code, 0, stderr);
    },
    remove: () => rmSync(dir, { recursive: true, force: true }),
  };
}

/** The file behind the first program of this name on PATH. @throws Error where there is none */
function programOnPath(name: string): string {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return realpathSync(folders.map((folder) => join(folder, name)).find(existsSync) ?? name);
}
