/** Starts `voxgate serve` as a process, as an operator does, with real models or over the scripted engine. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../bench/common/processes.ts';
import { program } from '../program.ts';
import { until } from '../until.ts';

const ROOT = new URL('../../', import.meta.url).pathname;

/** The command that serves over the scripted engine (scripted-serve.ts). */
export const SCRIPTED = [...program('test/http/scripted-serve.ts'), 'serve'];
export const SUPERVISED = [...SCRIPTED, '--supervised'];

export interface Served extends AsyncDisposable {
  base: string;
  port: number;
  child: ChildProcess;
  /** Everything that the process has printed so far. */
  log(): string;
  ended: Promise<unknown>;
}

export const answers = (base: string): Promise<boolean> =>
  fetch(`${base}/health`, { headers: { Connection: 'close' } }).then(
    ({ ok }) => ok,
    () => false,
  );

/**
 * Resolves to `voxgate serve` once it answers.
 * @param starter what is started; not Node where the command starts that
 */
export async function serve(
  settings: NodeJS.ProcessEnv = {},
  command: readonly string[] = ['dist/main.js', 'serve'],
  stdio: StdioOptions = 'pipe',
  starter = process.execPath,
): Promise<Served> {
  const port = Number(settings.SVC_PORT ?? (await freePort()));
  const crashes = mkdtempSync(join(tmpdir(), 'voxgate-served-'));
  const own = { SVC_PORT: String(port), SVC_OBS_ACCESS_LOG_ENABLED: '0', SVC_CRASH_DIR: crashes };
  const env = { ...process.env, ...own, ...settings };
  const child = spawn(starter, command, { cwd: ROOT, env, stdio });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => (text += data));
  const ended = once(child, 'close');
  const base = `http://127.0.0.1:${port}`;
  // More polls would slow down what they wait for.
  await until('it answers', () => answers(base), 20_000, 25).catch((error: Error) => {
    child.kill('SIGKILL');
    throw new Error(`${error.message}\n${text}`);
  });
  return {
    ...{ base, port, child, ended, log: () => text },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await ended;
      rmSync(crashes, { recursive: true, force: true });
    },
  };
}

/** The id of the server of a supervisor; 0 while there is none. */
export function childOf(pid: number): number {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0] ?? 0);
  } catch {
    return 0;
  }
}

export async function holdsSlot(base: string): Promise<boolean> {
  const metrics = await fetch(`${base}/admin/api/metrics`, { headers: { Connection: 'close' } });
  return ((await metrics.json()) as { slot: { held: boolean } }).slot.held;
}

export const refusesConnections = (port: number) =>
  until(
    'new connections are refused',
    () =>
      new Promise<boolean>((resolve) => {
        const probe = connect(port, '127.0.0.1');
        probe.once('connect', () => resolve(false)).once('error', () => resolve(true));
        probe.once('connect', () => probe.destroy());
      }),
    20_000,
  );
