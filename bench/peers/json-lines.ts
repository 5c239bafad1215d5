/** Runs a process that answers one line of JSON for each line of JSON it is given. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ROOT } from '../common/machine.ts';
import { endOf, type MeasuredProcess, measured } from '../common/processes.ts';

export interface JsonLinesProcess extends MeasuredProcess {
  /** The line that the process wrote once it was ready. */
  hello: Record<string, string>;
  /** Sends one request after the other. */
  ask<T>(request: object): Promise<T>;
}

/** @param script path in bench/ */
export async function startJsonLines(
  name: string,
  command: string,
  [script, ...args]: [script: string, ...args: (string | number)[]],
  settings: Record<string, string> = {},
): Promise<JsonLinesProcess> {
  const child = spawn(command, [join(ROOT, 'bench', script), ...args.map(String)], {
    stdio: 'pipe',
    // Only weights on disk are measured, so nothing may be fetched.
    env: { ...process.env, HF_HUB_OFFLINE: '1', PYTHONPATH: join(ROOT, 'bench/peers'), ...settings },
  });
  const exited = once(child, 'exit');
  // A write to a process that has ended is noticed by the missing answer.
  child.stdin.on('error', () => undefined);
  const said = endOf(child.stderr);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();

  async function answer<T>(): Promise<T> {
    const line = await lines.next();
    if (line.done) {
      await exited;
      throw new Error(`The ${name} process ended: ${said() || 'without a word'}`);
    }
    const message = JSON.parse(line.value);
    if (message.error !== undefined) throw new Error(`${name}: ${message.error}`);
    return message;
  }

  return {
    ...measured(child),
    hello: await answer(),
    ask<T>(request: object) {
      child.stdin.write(`${JSON.stringify(request)}\n`);
      return answer<T>();
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await exited;
    },
  };
}
