/**
 * Runs the upstreams as processes of their own, on 127.0.0.1. Their npm packages are installed on first use, from
 * this folder's lockfile. The processes end with the one that started them.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { installLocked } from '../locked-package.ts';

const HERE = dirname(fileURLToPath(import.meta.url));
const READY_LIMIT_MS = 20_000;
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

/** @param port 0 for a free one */
export async function startSpeech(port = 0): Promise<Upstream> {
  const lacks = speechLacks();
  if (lacks !== null) throw new Error(lacks);
  return await start('speech.mjs', port);
}

/** @param port 0 for a free one */
export async function startChat(port = 0): Promise<Upstream> {
  const lacks = chatLacks();
  if (lacks !== null) throw new Error(lacks);
  installUpstreams();
  return await start('chat.mjs', port);
}

export function installUpstreams(): void {
  installLocked(HERE);
}

/** The channel to the child exists for its end only: when this process dies, it closes, and the child leaves. */
async function start(script: string, port: number): Promise<Upstream> {
  const child = spawn(process.execPath, [join(HERE, script), String(port)], {
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
