/**
 * The processors and the memory that this process may use. In a container the limits are those of its cgroup, which
 * Node 20 does not count: libuv knows the quota since 1.49.
 *
 * Sources: cgroup v2 (https://docs.kernel.org/admin-guide/cgroup-v2.html, cpu.max and memory.max), cgroup v1
 * (https://docs.kernel.org/scheduler/sched-bwc.html), and proc_pid_mountinfo(5).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { availableParallelism, homedir, totalmem } from 'node:os';
import { dirname, join } from 'node:path';

export interface CgroupLimits {
  /** Processors, possibly with a fraction; Infinity without a quota. */
  cpus: number;
  /** Infinity without a limit. */
  memoryBytes: number;
}

/** The smallest limits of the groups that this process is in. @param root another root of the files, for tests */
export function cgroupLimits(root = '/'): CgroupLimits {
  const limits: CgroupLimits = { cpus: Number.POSITIVE_INFINITY, memoryBytes: Number.POSITIVE_INFINITY };
  for (const folder of groupFolders(root)) {
    limits.cpus = Math.min(limits.cpus, quotaV2(folder), quotaV1(folder));
    limits.memoryBytes = Math.min(
      limits.memoryBytes,
      positive(read(join(folder, 'memory.max'))),
      positive(read(join(folder, 'memory.limit_in_bytes'))),
    );
  }
  return limits;
}

/**
 * The threads that are worth starting for a computation: the physical cores, because ggml's matrix kernels gain nothing
 * from a second hardware thread on the same core, but no more than affinity and quota allow. A part of a processor is
 * left to everything else: a thread that the quota stops keeps all others waiting at their next step.
 */
export function usefulThreads(root = '/', usable = availableParallelism()): number {
  const quota = Math.max(1, Math.floor(cgroupLimits(root).cpus));
  return Math.min(physicalCores(root) ?? usable, usable, quota);
}

/** The memory of the machine, or of its container. */
export function usableMemoryBytes(root = '/', total = totalmem()): number {
  return Math.min(total, cgroupLimits(root).memoryBytes);
}

function physicalCores(root: string): number | null {
  const base = join(root, 'sys/devices/system/cpu');
  try {
    const cpus = readdirSync(base).filter((name) => /^cpu\d+$/.test(name));
    const cores = cpus.map((cpu) => readFileSync(join(base, cpu, 'topology/thread_siblings_list'), 'utf8'));
    return Math.max(1, new Set(cores).size);
  } catch {
    return null; // this is not Linux, or the container hides the topology
  }
}

/** Every folder that holds limits of this process: its own groups and those around them, as far as they are mounted. */
function groupFolders(root: string): string[] {
  const folders = new Set<string>();
  const mounts = (read(join(root, 'proc/self/mountinfo')) ?? '').split('\n').flatMap(parseMount);
  for (const line of (read(join(root, 'proc/self/cgroup')) ?? '').trim().split('\n')) {
    const [, names = '', group = '/'] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    for (const mount of mounts) {
      const isOurs =
        mount.type === 'cgroup2' ? names === '' : names.split(',').some((n) => mount.controllers.includes(n));
      if (!isOurs) continue;
      const top = join(root, mount.at);
      folders.add(top);
      for (let at = join(top, within(group, mount.root)); at.length > top.length; at = dirname(at))
        folders.add(at);
    }
  }
  return [...folders];
}

interface Mount {
  /** The group that is seen at the mount point. */
  root: string;
  at: string;
  type: string;
  controllers: string[];
}

function parseMount(line: string): Mount[] {
  const [before = '', after = ''] = line.split(' - ');
  const [, , , root = '/', at = '/'] = before.split(' ');
  const [type = '', , options = ''] = after.split(' ');
  return type === 'cgroup' || type === 'cgroup2' ? [{ root, at, type, controllers: options.split(',') }] : [];
}

/** The path of a group below a mount point. A group outside of what is mounted is seen at the mount point itself. */
function within(group: string, mounted: string): string {
  const base = mounted === '/' ? '' : mounted;
  return group.startsWith(`${base}/`) && !group.includes('/..') ? group.slice(base.length) : '/';
}

/** `cpu.max` holds the quota and the period in microseconds, or `max` for no quota. */
function quotaV2(folder: string): number {
  const [quota, period] = (read(join(folder, 'cpu.max')) ?? '').trim().split(' ');
  return positive(quota) / positive(period ?? '100000');
}

function quotaV1(folder: string): number {
  const period = positive(read(join(folder, 'cpu.cfs_period_us')) ?? '100000');
  return positive(read(join(folder, 'cpu.cfs_quota_us'))) / period;
}

/** A limit, or Infinity for what stands for none: `max`, -1, or nothing. */
function positive(text: string | null | undefined): number {
  const value = Number.parseInt(text ?? '', 10);
  return value > 0 ? value : Number.POSITIVE_INFINITY;
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

/** The user's folder for caches; null for a user without a home, as in a container that runs under any number. */
export function cacheFolder(env: NodeJS.ProcessEnv): string | null {
  const named = env.XDG_CACHE_HOME?.trim();
  if (named) return named;
  const home = homeFolder();
  return home === null ? null : join(home, '.cache');
}

/** Null for a user without one. */
export function homeFolder(): string | null {
  try {
    return homedir();
  } catch {
    return null;
  }
}

/** The bytes that may still be written to the disk of a folder. A memory file system without a limit has no blocks. */
export async function freeBytes(dir: string): Promise<number> {
  const { bavail, bsize, blocks } = await statfs(dir);
  return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
}
