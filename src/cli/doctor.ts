/** `voxgate doctor` looks at everything the gateway needs, and says of each thing that it is right or what to do. */
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { fullMessage } from '../errors.ts';
import { type Check, type CheckInput, checksOf } from './doctor-checks.ts';
import type { Finding } from './folder-checks.ts';
import { examples, table } from './options.ts';

interface Diagnosis extends Finding {
  name: string;
}

const LIMIT_MS = 10_000;
/** Large weights are read from the disk as a whole. */
const VERIFY_LIMIT_MS = 15 * 60_000;

/** The exit code is 0 when there is no problem, 1 when there is one, and 2 when a setting is wrong. */
export function registerDoctorCommand(program: Command, open: () => CheckInput): void {
  program
    .command('doctor')
    .description('check what the gateway needs; exit status 1 when there is a problem')
    .addHelpText('after', examples('voxgate doctor', 'voxgate doctor --verify --json | jq .checks'))
    .option('--json', 'print JSON')
    .option('--verbose', 'also say what was found where all is right')
    .option('--verify', 'read the weights on disk and compare their hashes')
    .action(async ({ json, verbose, verify = false }: { json?: true; verbose?: true; verify?: boolean }) => {
      const { found, late } = await diagnose(checksOf(open(), verify), verify ? VERIFY_LIMIT_MS : LIMIT_MS);
      const code = found.some(({ state }) => state === 'problem') ? 1 : 0;
      process.exitCode = code;
      // A file system that hangs would keep the process alive for as long as it does.
      process.stdout.write(
        json ? `${JSON.stringify({ checks: found }, null, 2)}\n` : verbose ? listed(found) : summary(found),
        () => {
          if (late) process.exit(code);
        },
      );
    });
}

/** Runs all checks side by side. One that fails or does not end in time is a problem. */
export async function diagnose(
  checks: readonly Check[],
  limitMs: number,
): Promise<{ found: Diagnosis[]; late: boolean }> {
  const over = new AbortController();
  setMaxListeners(0, over.signal);
  let late = false;
  const limit = sleep(limitMs, undefined, { signal: over.signal }).then((): Finding => {
    late = true;
    return { state: 'problem', says: `no answer within ${limitMs / 1000} s: what it looks at hangs` };
  });
  limit.catch(() => undefined);
  const run = async ({ name, run: check }: Check): Promise<Diagnosis> => {
    try {
      return { name, ...(await Promise.race([check(over.signal), limit])) };
    } catch (error) {
      return { name, state: 'problem', says: fullMessage(error) };
    }
  };
  try {
    return { found: await Promise.all(checks.map(run)), late };
  } finally {
    over.abort();
  }
}

/** What is not right, and one line for the rest. */
function summary(found: readonly Diagnosis[]): string {
  const right = found.filter(({ state }) => state === 'ok').map(({ name }) => name);
  const wrong = found.filter(({ state }) => state !== 'ok');
  const line = right.length === 0 ? '' : `ok       ${right.join(', ')}\n`;
  return `${line}${wrong.length === 0 ? '' : listed(wrong)}`;
}

const listed = (found: readonly Diagnosis[]) =>
  table(found.map(({ state, name, says }) => [state.padEnd('problem'.length), name, says]));
