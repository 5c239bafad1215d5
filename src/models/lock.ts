/**
 * Lets only one process at a time work on a model. A lock is a file that its owner touches regularly. It is dead when
 * its process no longer runs on this host, or when it was not touched while this process watched it for long enough, as
 * after a crash on another host of a shared disk.
 */
import { open, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { isAlive } from '../process-alive.ts';
import { watchUnchanged } from '../unchanged.ts';

export interface LockTimes {
  /** The time between two touches of the lock file by its owner. */
  touchMs: number;
  /** A lock that was not touched while it was watched for this long is dead. */
  deadMs: number;
  /** The time between two tries to get the lock. */
  pollMs: number;
}

const TIMES: LockTimes = { touchMs: 5000, deadMs: 60_000, pollMs: 300 };

/** Marks of the locks that this process holds. After the restart of a container, a dead lock can have its pid. */
const held = new Set<string>();

export interface Lock {
  /** Removes the lock file, unless another process has taken the lock meanwhile. */
  release(): Promise<void>;
}

/**
 * Waits until the lock file at `path` belongs to this process.
 * @param onWait is called each time that another process was found to hold the lock
 * @throws `signal.reason` after an abort
 */
export async function acquireLock(
  path: string,
  signal: AbortSignal,
  onWait: () => void = () => {},
  times: LockTimes = TIMES,
): Promise<Lock> {
  const mark = JSON.stringify({ pid: process.pid, host: hostname(), nonce: Math.random() });
  const isDead = createWatch(path, times.deadMs);
  for (;;) {
    signal.throwIfAborted();
    held.add(mark); // must come before the file exists, or a call in this process could take the lock for dead
    const created = await create(path, mark).catch((error) => {
      held.delete(mark);
      throw error;
    });
    if (created) return hold(path, mark, times);
    held.delete(mark);
    if (await isDead()) {
      // The dead lock is renamed first: of several processes that found it dead, only one can rename it.
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
    } catch (error) {
      // A file without its owner would hold everyone up until it counts as dead.
      await rm(path, { force: true });
      throw error;
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

/** Returns a function that looks at the lock file again and tells whether its owner is dead. */
function createWatch(path: string, deadMs: number): () => Promise<boolean> {
  const unchangedMs = watchUnchanged();
  return async () => {
    try {
      const [info, text] = await Promise.all([stat(path), readFile(path, 'utf8')]);
      if (unchangedMs(`${info.mtimeMs} ${text}`) > deadMs) return true;
      const owner = parseOwner(text);
      if (owner === null || owner.host !== hostname()) return false;
      return owner.pid === process.pid ? !held.has(text) : !isAlive(owner.pid);
    } catch {
      return false; // the lock was released meanwhile
    }
  };
}

/** The owner in a lock file; null while the owner is still writing it. */
function parseOwner(text: string): { pid: number; host: string } | null {
  try {
    const { pid, host } = JSON.parse(text);
    return typeof pid === 'number' && typeof host === 'string' ? { pid, host } : null;
  } catch {
    return null;
  }
}
