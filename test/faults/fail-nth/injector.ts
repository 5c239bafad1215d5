/** Starts the gateway of `gateway.ts` under the library of `fail-nth.c`, and chooses which calls of the system fail. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readlinkSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { compilePreloadLibrary } from '../../preload-library.ts';
import { program } from '../../program.ts';
import { until } from '../../until.ts';

/** The calls that can fail, by the number that fail-nth.c gives them. */
export const KINDS = { thread: 1, open: 2, write: 4, sync: 8 } as const;
export type Kind = keyof typeof KINDS;

const CONTROL_BYTES = 20;

export interface InjectedGateway extends AsyncDisposable {
  base: string;
  /** Counts the calls of a kind from now on, and fails those from `first` to `last`; 0 fails none. */
  arm(kind: Kind, first: number, last: number): void;
  /** Stops counting. */
  disarm(): { calls: number; failed: number };
  /** How the process ended; null while it runs. */
  end(): string | null;
  /** Everything that the process has printed. */
  printed(): string;
  /** What its open descriptors lead to. */
  descriptors(): string[];
  threads(): number;
}

/** Compiles the library into the folder. Returns the reason where that cannot be done. */
export function compileLibrary(dir: string): string | false {
  if (process.arch !== 'x64') return 'the calls of the system are replaced on x64 only';
  return compilePreloadLibrary(new URL('./fail-nth.c', import.meta.url), dir).skip;
}

/** @param dir the folder with the library and the weights */
export async function startInjectedGateway(dir: string, env: NodeJS.ProcessEnv): Promise<InjectedGateway> {
  const controlPath = join(dir, 'control');
  writeFileSync(controlPath, Buffer.alloc(CONTROL_BYTES));
  const child = spawn(process.execPath, [...program('test/faults/fail-nth/gateway.ts'), dir], {
    env: {
      ...{ ...process.env, ...env },
      ...{ LD_PRELOAD: join(dir, 'fail-nth.so'), VOXGATE_FAIL_NTH: controlPath },
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let printed = '';
  let end: string | null = null;
  let closed = false;
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data) => {
      printed = (printed + data).slice(-20_000);
    });
  const ended = once(child, 'close').then(([code, signal]) => {
    end = String(signal ?? code);
  });
  await until(
    'the gateway listens',
    () => {
      assert.equal(end, null, printed);
      return /listens on \d+/.test(printed);
    },
    60_000,
  );
  const control = openSync(controlPath, 'r+');
  const write = (offset: number, ...values: number[]) => {
    const bytes = Buffer.alloc(4 * values.length);
    values.forEach((value, i) => {
      bytes.writeInt32LE(value, 4 * i);
    });
    writeSync(control, bytes, 0, bytes.length, offset);
  };
  return {
    base: `http://127.0.0.1:${/listens on (\d+)/.exec(printed)?.[1]}`,
    arm(kind, first, last) {
      write(4, first, last, 0, 0);
      write(0, KINDS[kind]);
    },
    disarm() {
      write(0, 0);
      const bytes = Buffer.alloc(CONTROL_BYTES);
      readSync(control, bytes, 0, CONTROL_BYTES, 0);
      return { calls: bytes.readInt32LE(12), failed: bytes.readInt32LE(16) };
    },
    end: () => end,
    printed: () => printed,
    descriptors: () =>
      readdirSync(`/proc/${child.pid}/fd`).flatMap((name) => {
        try {
          return [readlinkSync(`/proc/${child.pid}/fd/${name}`)];
        } catch {
          return []; // it was closed meanwhile
        }
      }),
    threads: () => readdirSync(`/proc/${child.pid}/task`).length,
    async [Symbol.asyncDispose]() {
      if (closed) return;
      closed = true;
      if (end === null) child.kill('SIGKILL');
      await ended;
      closeSync(control);
    },
  };
}
