/** The built gateway as a process of its own, as operators run it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { until } from './until.ts';

export const ROOT = new URL('../', import.meta.url).pathname;

export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, 'close');
  return port;
}

export interface Served extends AsyncDisposable {
  base: string;
  child: ChildProcess;
  /** Everything that the process has printed so far. */
  log(): string;
  ended: Promise<unknown>;
}

/** Resolves to `voxgate serve` once it answers. */
export async function serve(settings: NodeJS.ProcessEnv = {}): Promise<Served> {
  const port = await freePort();
  const env = { ...process.env, SVC_PORT: String(port), SVC_OBS_ACCESS_LOG_ENABLED: '0', ...settings };
  const child = spawn(process.execPath, ['dist/main.js', 'serve'], { cwd: ROOT, env });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data) => (text += data));
  const ended = once(child, 'close');
  const base = `http://127.0.0.1:${port}`;
  const answers = () =>
    fetch(`${base}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until('it answers', answers, 20_000);
  return {
    ...{ base, child, ended, log: () => text },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
