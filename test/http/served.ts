/** Starts `voxgate serve` as a process, as an operator does, with real models or over the scripted engine. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { until } from '../until.ts';

const ROOT = new URL('../../', import.meta.url).pathname;

/** The command that serves over the scripted engine (scripted-serve.ts). */
export const SCRIPTED = ['--import', 'tsx', 'test/http/scripted-serve.ts', 'serve'];

export interface Served extends AsyncDisposable {
  base: string;
  port: number;
  child: ChildProcess;
  /** Everything that the process has printed so far. */
  log(): string;
  ended: Promise<unknown>;
}

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, 'close');
  return port;
}

/** Resolves to `voxgate serve` once it answers. */
export async function serve(
  settings: NodeJS.ProcessEnv = {},
  command: readonly string[] = ['dist/main.js', 'serve'],
  stdio: StdioOptions = 'pipe',
): Promise<Served> {
  const port = await freePort();
  const env = { ...process.env, SVC_PORT: String(port), SVC_OBS_ACCESS_LOG_ENABLED: '0', ...settings };
  const child = spawn(process.execPath, command, { cwd: ROOT, env, stdio });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => (text += data));
  const ended = once(child, 'close');
  const base = `http://127.0.0.1:${port}`;
  const answers = () =>
    fetch(`${base}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until('it answers', answers, 20_000).catch((error: Error) => {
    child.kill('SIGKILL');
    throw new Error(`${error.message}\n${text}`);
  });
  return {
    ...{ base, port, child, ended, log: () => text },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
