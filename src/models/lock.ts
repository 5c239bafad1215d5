/**
 * One process at a time for one model. A lock is a file that its owner touches; it is dead when its process is gone
 * from this host, or when nobody has touched it for a while (a crash on another host of a shared disk).
 */
import { open, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive } from '../process-alive.ts';

export interface LockTimes {
  touchMs: number;
  deadMs: number;
  pollMs: number;
}

const TIMES: LockTimes = { touchMs: 5000, deadMs: 60_000, pollMs: 300 };

/** Marks this process holds: in a restarted container a dead lock can carry our own process id. */
const held = new Set<string>();

export interface Lock {
  release(): Promise<void>;
}

export async function acquireLock(
  path: string,
  signal: AbortSignal,
  onWait: () => void = () => {},
  times: LockTimes = TIMES,
): Promise<Lock> {
  const mark = JSON.stringify({ pid: process.pid, host: hostname(), nonce: Math.random() });
  for (;;) {
    signal.throwIfAborted();
    held.add(mark); // before the file is there for others in this process to judge
    if (await create(path, mark)) return hold(path, mark, times);
    held.delete(mark);
    if (await isDead(path, times.deadMs)) {
      // Moved aside first: of several that found it dead only one gets it.
      const aside = `${path}.dead.${process.pid}`;
      await rename(path, aside).catch(() => {});
      await rm(aside, { force: true });
      continue;
    }
    onWait();
    await sleep(times.pollMs, undefined, { signal });
  }
}

async function create(path: string, mark: string): Promise<boolean> {
  try {
    const handle = await open(path, 'wx');
    try {
      await handle.writeFile(mark);
    } finally {
      await handle.close();
    }
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function hold(path: string, mark: string, times: LockTimes): Lock {
  const timer = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => {});
  }, times.touchMs);
  timer.unref();
  return {
    async release() {
      clearInterval(timer);
      held.delete(mark);
      if ((await readFile(path, 'utf8').catch(() => '')) === mark) await rm(path, { force: true });
    },
  };
}

async function isDead(path: string, deadMs: number): Promise<boolean> {
  try {
    const [info, text] = await Promise.all([stat(path), readFile(path, 'utf8')]);
    if (Date.now() - info.mtimeMs > deadMs) return true;
    const owner = parseOwner(text);
    if (owner === null || owner.host !== hostname()) return false;
    return owner.pid === process.pid ? !held.has(text) : !isAlive(owner.pid);
  } catch {
    return false; // released meanwhile
  }
}

/** Null while its owner is still writing it. */
function parseOwner(text: string): { pid: number; host: string } | null {
  try {
    const { pid, host } = JSON.parse(text);
    return typeof pid === 'number' && typeof host === 'string' ? { pid, host } : null;
  } catch {
    return null;
  }
}
