/**
 * Watches disk space, memory and the event loop, which no request reports on. It checks them on a timer of its own, so
 * that the dashboard can tell when a problem began even if nobody had the page open then.
 */
import { stat } from 'node:fs/promises';
import { freemem, totalmem } from 'node:os';
import { dirname } from 'node:path';
import { freeBytes } from '../machine.ts';
import type { Trouble } from './deps.ts';
import { bytes, milliseconds } from './views/format.ts';

export interface Watched {
  /** The folders that the gateway writes to, by their contents in words. */
  folders(): Readonly<Record<string, string>>;
  /** The memory that this process may use. */
  memoryBytes: number;
}

/** Reads the state of the machine. Tests pass other ones. */
export interface Readings {
  /** Undefined for a folder that cannot be read. */
  space(path: string): Promise<{ disk: number; free: number } | undefined>;
  memory(): { used: number; free: number; total: number };
}

const TICK_MS = 1000;
const TICKS_PER_CHECK = 10;
const LATE_MS = 1000;
/** How long a pause of the event loop is reported after it. */
const LATE_SHOWN_MS = 5 * 60_000;
/** With less free space than this the gateway refuses uploads, and other writes soon fail. */
const FULL_BYTES = 64 * 1024 ** 2;
const LOW_BYTES = 1024 ** 3;

type Found = Omit<Trouble, 'since'>;

export function createWatch(watched: Watched, readings: Readings = MACHINE) {
  let found: Trouble[] = [];
  let pause: { trouble: Trouble; at: number } | null = null;
  let isChecking = false;
  let due = performance.now() + TICK_MS;
  let ticks = 0;

  async function check(): Promise<void> {
    const now = [...(await disks(watched.folders(), readings)), ...memory(watched.memoryBytes, readings)];
    found = now.map((trouble) => ({ ...trouble, since: sinceOf(trouble, found) }));
  }

  function tick(): void {
    const lateMs = performance.now() - due;
    due = performance.now() + TICK_MS;
    if (lateMs >= LATE_MS) pause = { trouble: paused(lateMs), at: performance.now() };
    // Only one check at a time: each check of a disk that hangs would block one more thread of Node's pool.
    if (ticks++ % TICKS_PER_CHECK > 0 || isChecking) return;
    isChecking = true;
    void check()
      .catch(() => undefined)
      .finally(() => {
        isChecking = false;
      });
  }

  const timer = setInterval(tick, TICK_MS);
  timer.unref();
  return {
    check,
    /** What is wrong with the machine now. */
    troubles(): Trouble[] {
      const isRecent = pause !== null && performance.now() - pause.at < LATE_SHOWN_MS;
      return pause !== null && isRecent ? [...found, pause.trouble] : found;
    },
    stop: () => clearInterval(timer),
  };
}

/** A trouble keeps its beginning when it gets worse, such as a disk that was nearly full and is full now. */
const sinceOf = ({ key }: Found, before: readonly Trouble[]): Date =>
  before.find((trouble) => trouble.key === key)?.since ?? new Date();

const paused = (lateMs: number): Trouble => ({
  key: 'event-loop',
  level: 'warn',
  says: `The gateway was unresponsive for ${milliseconds(lateMs)}`,
  short: 'was unresponsive',
  detail: 'its event loop was blocked',
  since: new Date(Date.now() - lateMs),
});

/** Several folders on the same full disk are reported as one trouble. */
async function disks(folders: Readonly<Record<string, string>>, readings: Readings): Promise<Found[]> {
  const names = new Map<number, { free: number; of: string[] }>();
  for (const [name, path] of Object.entries(folders)) {
    const read = await readings.space(path);
    if (read === undefined) continue;
    const known = names.get(read.disk);
    if (known === undefined) names.set(read.disk, { free: read.free, of: [name] });
    else known.of.push(name);
  }
  return [...names].flatMap(([disk, { free, of }]) => {
    if (free >= LOW_BYTES) return [];
    const isFull = free < FULL_BYTES;
    return {
      key: `disk-${disk}`,
      level: isFull ? 'bad' : 'warn',
      says: `The disk with ${listed(of)} is ${isFull ? 'full' : 'almost full'}`,
      short: isFull ? 'disk full' : 'disk almost full',
      detail: `${bytes(free)} free`,
    };
  });
}

function memory(mayUse: number, readings: Readings): Found[] {
  const { used, free, total } = readings.memory();
  const troubles: Found[] = [];
  if (used > 0.9 * mayUse)
    troubles.push({
      key: 'memory',
      level: 'bad',
      says: 'The gateway is almost out of memory',
      short: 'memory',
      detail: `${bytes(used)} of ${bytes(mayUse)}`,
    });
  else if (free < 0.03 * total)
    troubles.push({
      key: 'memory',
      level: 'warn',
      says: 'The machine is almost out of memory',
      short: 'memory',
      detail: `${bytes(free)} of ${bytes(total)} free; the gateway uses ${bytes(used)}`,
    });
  return troubles;
}

const listed = (names: readonly string[]) =>
  names.length === 1 ? names[0] : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;

const MACHINE: Readings = {
  async space(path) {
    for (let at = path; ; at = dirname(at)) {
      try {
        const [{ dev }, free] = await Promise.all([stat(at), freeBytes(at)]);
        return { disk: dev, free };
      } catch (error) {
        // A folder that does not exist yet will be created on the disk of its parent.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(at) === at) return undefined;
      }
    }
  },
  memory: () => ({ used: process.memoryUsage.rss(), free: freemem(), total: totalmem() }),
};
