/**
 * Lets only one process at a time work on a model. A lock is a file that its owner touches regularly. It is stale when
 * its process no longer runs on this host, or when it was not touched while this process watched it for long enough, as
 * after a crash on another host of a shared disk.
 */
import { randomUUID } from 'node:crypto';
import { link, open, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parsedJson } from '../parsed-json.ts';
import { isAlive } from '../process-alive.ts';
import { watchUnchanged } from '../unchanged.ts';

interface LockTimes {
  /** The time between two touches of the lock file by its owner. */
  touchMs: number;
  /** A lock that was not touched while it was watched for this long is stale. */
  staleMs: number;
  /** The time between two tries to get the lock. */
  pollMs: number;
}

const TIMES: LockTimes = { touchMs: 5000, staleMs: 60_000, pollMs: 300 };

/** Marks of the locks that this process holds. After the restart of a container, a stale lock can have its pid. */
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
  const findStale = createWatch(path, times.staleMs);
  for (;;) {
    signal.throwIfAborted();
    held.add(mark); // must come before the file exists, or a call in this process could take the lock for stale
    const created = await create(path, mark).catch((error) => {
      held.delete(mark);
      throw error;
    });
    if (created) return hold(path, mark, times);
    held.delete(mark);
    const stale = await findStale();
    if (stale !== null) {
      await removeStale(path, stale);
      continue;
    }
    onWait();
    await sleep(times.pollMs, undefined, { signal });
  }
}

async function create(path: string, mark: string): Promise<boolean> {
  try {
    await using handle = await open(path, 'wx');
    await handle.writeFile(mark).catch(async (error) => {
      // A file without its owner would hold everyone up until it counts as stale.
      await rm(path, { force: true });
      throw error;
    });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

/**
 * Removes the lock that was found stale, and no other one: the lock is renamed first, so that only one process has it. It
 * may be that of a process which was faster, and is then put back, unless a third one has made its own meanwhile.
 */
async function removeStale(path: string, stale: string): Promise<void> {
  const aside = `${path}.stale.${randomUUID()}`;
  try {
    await rename(path, aside);
    if ((await stateOf(aside)).shows !== stale) await link(aside, path);
  } catch {
    // Another process was faster again. The next try to create the lock shows who holds it.
  } finally {
    await rm(aside, { force: true });
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

/** The content of a lock file, and a text that differs for another lock and after each touch. */
async function stateOf(path: string): Promise<{ text: string; shows: string }> {
  const [{ ino, mtimeMs }, text] = await Promise.all([stat(path), readFile(path, 'utf8')]);
  return { text, shows: `${ino} ${mtimeMs} ${text}` };
}

/** Returns a function that checks the lock file again. It gives the state of a stale lock, else null. */
function createWatch(path: string, staleMs: number): () => Promise<string | null> {
  const unchangedMs = watchUnchanged();
  return async () => {
    try {
      const { text, shows } = await stateOf(path);
      if (unchangedMs(shows) > staleMs) return shows;
      const owner = parseOwner(text);
      if (owner === null || owner.host !== hostname()) return null;
      const isHeld = owner.pid === process.pid ? held.has(text) : isAlive(owner.pid);
      return isHeld ? null : shows;
    } catch {
      return null; // the lock was released meanwhile
    }
  };
}

/** The owner in a lock file; null while the owner is still writing it. */
function parseOwner(text: string): { pid: number; host: string } | null {
  const { pid, host } = Object(parsedJson(text));
  return typeof pid === 'number' && typeof host === 'string' ? { pid, host } : null;
}
