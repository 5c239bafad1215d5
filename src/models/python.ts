/** Runs the Python of this machine, and pip. */
import { spawn } from 'node:child_process';

/**
 * Isolated mode: without it `-m` runs a module of the working folder before the installed one, and PYTHONPATH and the
 * site folder of the user add others (https://docs.python.org/3/using/cmdline.html#cmdoption-I). The program `pip3`
 * still finds a pip in the user's site folder.
 */
export const [PYTHON3, PYTHON] = [
  ['python3', '-I'],
  ['python', '-I'],
] as const;

class MissingProgram extends Error {}

/** Runs the first of the programs that exists on this machine. */
export async function runFirst(
  programs: readonly (readonly string[])[],
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<void> {
  for (const [program = '', ...prefix] of programs) {
    try {
      await run(program, [...prefix, ...args], env, signal);
      return;
    } catch (error) {
      if (!(error instanceof MissingProgram)) throw error;
    }
  }
  throw new Error(`none of ${programs.map((words) => words.join(' ')).join(', ')} is on this machine`);
}

function run(
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((resolve, reject) => {
    // The working folder is one in which no user leaves files: tools read settings and modules from where they run.
    const child = spawn(program, args, { cwd: '/', env, signal, stdio: ['ignore', 'ignore', 'pipe'] });
    let complaint = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      complaint = (complaint + text).slice(-4000);
    });
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (signal.aborted) reject(signal.reason);
      else reject(error.code === 'ENOENT' ? new MissingProgram(program) : error);
    });
    child.once('close', (code) => {
      if (code === 0) resolve();
      else if (/No module named pip\b/.test(complaint)) reject(new MissingProgram(program));
      else reject(new Error(`${program} failed (${code}): ${lastLines(complaint)}`));
    });
  });
}

function lastLines(text: string): string {
  return text.trim().split('\n').slice(-2).join(' ').slice(-500) || 'it printed nothing';
}
