/**
 * The folder that the uploads of this process go to, and the removal of those that dead processes left behind. Its
 * owner touches a folder regularly. Process ids say nothing across containers that share a temp folder, and clocks may
 * jump, so a folder of unknown origin counts as abandoned only when this process has seen no touch for a while.
 */
import { createHash } from 'node:crypto';
import { lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { lstat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { makeFolder } from '../../make-folder.ts';
import { isAlive } from '../../process-alive.ts';
import { watchUnchanged } from '../../unchanged.ts';

export interface SpoolFolderOptions {
  tmpDir: string;
  log: { warn(message: string, details: object): void };
  times?: typeof TIMES;
}

const TIMES = {
  /** The time between two touches by the owner. */
  touchMs: 10_000,
  /** A folder that was not touched while it was watched for this long is abandoned. */
  staleMs: 120_000,
  sweepMs: 30_000,
};

/** The folders of this process. After the restart of a container, an abandoned folder can have its process id. */
const own = new Set<string>();

export function createSpoolFolder({ tmpDir, log, times = TIMES }: SpoolFolderOptions) {
  const sweep = createSweep(tmpDir, log, times.staleMs);
  let dir: string | null = null;
  let closed = false;

  function make(): string {
    makeFolder(tmpDir);
    if (dir !== null) own.delete(dir);
    dir = mkdtempSync(join(tmpDir, `voxgate-${PLACE}-${process.pid}-`));
    own.add(dir);
    return dir;
  }

  sweep();
  try {
    make();
  } catch (error) {
    // The next upload tries again. Everything but uploads works without the folder.
    log.warn('Cannot make the folder of the uploads', { dir: tmpDir, error: String(error) });
  }
  const timers = [
    setInterval(sweep, times.sweepMs),
    setInterval(() => {
      const now = new Date();
      if (dir !== null) utimes(dir, now, now).catch(() => undefined);
    }, times.touchMs),
  ];
  for (const timer of timers) timer.unref();

  return {
    /** The path of the folder. It is made again when something has removed it. */
    async ready(): Promise<string> {
      if (closed) throw new Error('The folder of the uploads is closed');
      const before = dir;
      if (before !== null && (await isOwn(before))) return before;
      // Another upload may have made it during the check.
      return dir !== null && dir !== before ? dir : make();
    },
    /** Removes the folder. */
    close(): void {
      closed = true;
      for (const timer of timers) clearInterval(timer);
      if (dir === null) return;
      rmSync(dir, { recursive: true, force: true });
      own.delete(dir);
    },
  };
}

/** True when the folder is there and belongs to this user, who may not be the one to make it again in a shared place. */
async function isOwn(dir: string): Promise<boolean> {
  try {
    const found = await lstat(dir);
    return found.isDirectory() && isOwnUser(found.uid);
  } catch {
    return false;
  }
}

const isOwnUser = (uid: number) => process.geteuid === undefined || uid === process.geteuid();

/**
 * Processes with the same value see each other's process ids: they share a kernel and a process namespace. Systems
 * without /proc have one namespace.
 */
const PLACE = createHash('sha256')
  .update(`${read(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')) ?? hostname()}`)
  .update(read(() => readlinkSync('/proc/self/ns/pid')) ?? '')
  .digest('hex')
  .slice(0, 8);

function read<T>(value: () => T): T | null {
  try {
    return value();
  } catch {
    return null;
  }
}

/** Returns a function that removes the abandoned folders that it can tell from those in use. It never throws. */
function createSweep(tmpDir: string, log: SpoolFolderOptions['log'], staleMs: number): () => void {
  /** The folders of unknown origin. */
  const watched = new Map<string, ReturnType<typeof watchUnchanged>>();
  const warned = new Set<string>();

  function isAbandoned(path: string, place: string, pid: number): boolean {
    const { mtimeMs, uid } = lstatSync(path);
    if (!isOwnUser(uid) || own.has(path)) return false;
    if (place === PLACE && (pid === process.pid || !isAlive(pid))) return true;
    const unchangedMs = watched.get(path) ?? watchUnchanged();
    watched.set(path, unchangedMs);
    return unchangedMs(mtimeMs) > staleMs;
  }

  return () => {
    for (const name of read(() => readdirSync(tmpDir)) ?? []) {
      const [, place = '', pid] = /^voxgate-([0-9a-f]{8})-(\d+)-\w+$/.exec(name) ?? [];
      if (pid === undefined) continue;
      const path = join(tmpDir, name);
      try {
        if (!isAbandoned(path, place, Number(pid))) continue;
        watched.delete(path);
        rmSync(path, { recursive: true, force: true });
      } catch (error) {
        if (warned.has(path)) continue;
        warned.add(path);
        log.warn('Cannot remove an abandoned upload folder', { path, error: String(error) });
      }
    }
  };
}
