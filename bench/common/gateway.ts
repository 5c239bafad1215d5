/** The benches run the built gateway as a process of its own, as operators do. */
import { spawn } from 'node:child_process';
import { ROOT } from './machine.ts';
import { answers, freePort, type MeasuredProcess, measured } from './processes.ts';

export interface GatewayProcess extends MeasuredProcess {
  base: string;
  pid: number;
  /** Time from the start of the process to the first answer of `/health`. */
  startedInMs: number;
}

/** A gateway that does not unload its models, because the turns of others may take longer than idle ones stay. */
export const KEEPS_MODELS = { SVC_MODEL_KEEP_ALIVE_SEC: '-1' };

export async function startGatewayProcess(settings: Record<string, string> = {}): Promise<GatewayProcess> {
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  const startedAt = performance.now();
  const child = spawn(process.execPath, ['dist/main.js', 'serve'], {
    cwd: ROOT,
    env: { ...process.env, SVC_PORT: String(port), SVC_LOG_LEVEL: 'error', ...settings },
    stdio: 'inherit',
  });
  const figures = measured(child);
  await answers(`${base}/health`, child);
  return { ...figures, base, startedInMs: performance.now() - startedAt };
}
