/**
 * Copies this tree into the system's temp folder, to change and to build it there without touching the tree itself.
 * The packages are those of the tree; so is the addon, unless the copy is to compile its own.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { readConfig } from '../../src/config/config.ts';
import { VOICE_ACTIVITY } from '../../src/models/catalogue.ts';
import { localFile } from '../../src/models/weights.ts';

const ROOT = new URL('../../', import.meta.url).pathname;
/** Compiling the addon without a compiler cache takes most of this time. */
const COMMAND_LIMIT_MS = 20 * 60_000;
const START_LIMIT_MS = 30_000;
const STOP_LIMIT_MS = 15_000;

export interface WorkingCopy extends AsyncDisposable {
  dir: string;
  /** Runs a command of the shell in the copy's root. */
  run(command: string): Promise<{ code: number | null; stdout: string; output: string }>;
  /** Starts a gateway with a command of the shell and gives its address; the one before is stopped. */
  serve(command: string): Promise<string>;
}

export interface CopyOptions {
  /** The copy compiles the addon itself; else it has the one of this tree. */
  ownBuild: boolean;
  /** The copy reads the weights of the user; else it has a folder of its own with voice activity only. */
  usersModels?: boolean;
}

export function createWorkingCopy({ ownBuild, usersModels = false }: CopyOptions): WorkingCopy {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-recipe-test-'));
  cpSync(ROOT, dir, { recursive: true, filter: isSource });
  for (const name of ['node_modules', ...(ownBuild ? [] : ['build'])]) {
    symlinkSync(join(ROOT, name), join(dir, name));
  }
  const modelDir = usersModels ? readConfig().config.modelDir : ownModels(dir);
  // The test runner tells its children to report to it in its own format; a test run inside the copy is no child.
  const { NODE_TEST_CONTEXT: _, ...inherited } = process.env;
  const env = { ...inherited, SVC_PORT: '0', SVC_MODEL_DIR: modelDir };
  const start = (command: string) =>
    spawn('sh', ['-ec', command], { cwd: dir, env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  let serving: ChildProcess | null = null;
  const stopServing = async () => {
    if (serving !== null) await stop(serving);
    serving = null;
  };
  return {
    dir,
    async run(command) {
      const child = start(command);
      const limit = setTimeout(() => signalGroup(child, 'SIGKILL'), COMMAND_LIMIT_MS);
      let stdout = '';
      let output = '';
      child.stdout.on('data', (data) => {
        stdout += data;
        output += data;
      });
      child.stderr.on('data', (data) => {
        output += data;
      });
      const [code] = await once(child, 'close');
      clearTimeout(limit);
      return { code, stdout, output };
    },
    async serve(command) {
      await stopServing();
      serving = start(command);
      return await addressOf(serving, command);
    },
    async [Symbol.asyncDispose]() {
      await stopServing();
      // A command that was stopped may leave a compiler that still writes.
      rmSync(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
    },
  };
}

/**
 * Makes a models folder, so that a recipe adds nothing to the user's. It holds the voice activity model, without which
 * no other model serves, if this machine has it.
 */
function ownModels(dir: string): string {
  const modelDir = join(dir, 'models');
  const voiceActivity = localFile(VOICE_ACTIVITY, 'f16') ?? '';
  mkdirSync(modelDir);
  symlinkSync(join(readConfig().config.modelDir, voiceActivity), join(modelDir, voiceActivity));
  return modelDir;
}

/** Copies what a fresh clone has: nothing that was installed, built or logged. */
function isSource(path: string): boolean {
  const name = basename(path);
  if (['.git', 'node_modules', '__pycache__'].includes(name)) return false;
  return join(dirname(path), '/') !== ROOT || !/^(build.*|dist|logs|payloads)$/.test(name);
}

/** Reads the address from the line that the gateway logs when it listens. */
async function addressOf(child: ChildProcess, command: string): Promise<string> {
  const limit = setTimeout(() => signalGroup(child, 'SIGKILL'), START_LIMIT_MS);
  let output = '';
  try {
    return await new Promise((resolve, reject) => {
      const read = (data: Buffer) => {
        output += data;
        const address = /listens on (http:\/\/127\.0\.0\.1:\d+)/.exec(output)?.[1];
        if (address !== undefined) resolve(address);
      };
      child.stdout?.on('data', read);
      child.stderr?.on('data', read);
      child.once('close', () => reject(new Error(`${command} never listened:\n${output}`)));
    });
  } finally {
    clearTimeout(limit);
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = once(child, 'close');
  const limit = setTimeout(() => signalGroup(child, 'SIGKILL'), STOP_LIMIT_MS);
  signalGroup(child, 'SIGTERM');
  await closed;
  clearTimeout(limit);
}

/** The shell, npm and the gateway are one process group, because npm does not pass every signal on. */
function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals): void {
  if (pid !== undefined) process.kill(-pid, signal);
}
