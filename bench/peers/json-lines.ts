/** Runs a process that answers one line of JSON for each line of JSON it is given. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { cpuSec, peakMegabytes } from '../common/gateway.ts';

export interface JsonLinesProcess extends AsyncDisposable {
  /** The line that the process wrote once it was ready. */
  hello: Record<string, string>;
  /** Sends one request after the other. */
  ask<T>(request: object): Promise<T>;
  cpuSec(): number;
  peakMegabytes(): number;
}

export async function startJsonLines(
  name: string,
  command: string,
  args: string[],
  more: Record<string, string> = {},
): Promise<JsonLinesProcess> {
  const child = spawn(command, args, {
    stdio: 'pipe',
    // Only weights on disk are measured, so nothing may be fetched.
    env: { ...process.env, HF_HUB_OFFLINE: '1', ...more },
  });
  const exited = once(child, 'exit');
  // A write to a process that has ended is noticed by the missing answer.
  child.stdin.on('error', () => undefined);
  // Libraries print much on stderr; only their last lines are of interest.
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    said = (said + chunk).slice(-2000);
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();

  async function answer<T>(): Promise<T> {
    const line = await lines.next();
    if (line.done) {
      await exited;
      throw new Error(`The ${name} process ended: ${said.trim() || 'without a word'}`);
    }
    const message = JSON.parse(line.value);
    if (message.error !== undefined) throw new Error(`${name}: ${message.error}`);
    return message;
  }

  return {
    hello: await answer(),
    ask<T>(request: object) {
      child.stdin.write(`${JSON.stringify(request)}\n`);
      return answer<T>();
    },
    cpuSec: () => cpuSec(child.pid ?? 0),
    peakMegabytes: () => peakMegabytes(child.pid ?? 0),
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await exited;
    },
  };
}
