/** Threads and memory follow the limits of the container, as the files of the kernel describe them. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { cgroupLimits, freeBytes, usableMemoryBytes, usefulThreads } from '../../src/machine.ts';
import { requireSpace } from '../../src/models/disk.ts';

const GIB = 1024 ** 3;

/** A root with these files, and 32 cores of two hardware threads each. */
function machine(t: TestContext, files: Record<string, string>): string {
  const root = mkdtempSync(join(tmpdir(), 'voxgate-machine-'));
  t.after(() => rmSync(root, { recursive: true }));
  const topology = Object.fromEntries(
    Array.from({ length: 64 }, (_, cpu) => [
      `sys/devices/system/cpu/cpu${cpu}/topology/thread_siblings_list`,
      `${cpu % 32},${(cpu % 32) + 32}\n`,
    ]),
  );
  for (const [path, text] of Object.entries({ ...topology, ...files })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

const V2 = '35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n';
const v1 = (root: string) =>
  `33 30 0:28 ${root} /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct
34 30 0:29 ${root} /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n`;

test('without a quota the threads are the physical cores that the process may use', (t) => {
  assert.equal(usefulThreads(machine(t, {}), 64), 32);
  assert.equal(usefulThreads(machine(t, {}), 3), 3, 'affinity');
  assert.equal(usefulThreads('/nowhere', 6), 6, 'no topology');
  assert.deepEqual(cgroupLimits('/nowhere'), { cpus: Infinity, memoryBytes: Infinity });
});

test('cgroup v2: the quota of a container, as --cpus=2 --memory=4g sets it', (t) => {
  const root = machine(t, {
    'proc/self/cgroup': '0::/\n',
    'proc/self/mountinfo': V2,
    'sys/fs/cgroup/cpu.max': '200000 100000\n',
    'sys/fs/cgroup/memory.max': `${4 * GIB}\n`,
  });
  assert.equal(usefulThreads(root, 64), 2);
  assert.equal(usableMemoryBytes(root, 128 * GIB), 4 * GIB);
});

test('cgroup v2: the smallest quota of nested groups holds', (t) => {
  const root = machine(t, {
    'proc/self/cgroup': '0::/user.slice/app.slice/voxgate.service\n',
    'proc/self/mountinfo': V2,
    'sys/fs/cgroup/user.slice/cpu.max': '600000 100000\n',
    'sys/fs/cgroup/user.slice/memory.max': 'max\n',
    'sys/fs/cgroup/user.slice/app.slice/cpu.max': '150000 50000\n',
    'sys/fs/cgroup/user.slice/app.slice/memory.max': `${2 * GIB}\n`,
    'sys/fs/cgroup/user.slice/app.slice/voxgate.service/cpu.max': 'max 100000\n',
    'sys/fs/cgroup/user.slice/app.slice/voxgate.service/memory.max': `${8 * GIB}\n`,
  });
  assert.deepEqual(cgroupLimits(root), { cpus: 3, memoryBytes: 2 * GIB });
  assert.equal(usefulThreads(root, 64), 3);
});

test('cgroup v1: the quota of a container, whose mount shows only its own group', (t) => {
  const group = '/docker/0123456789abcdef';
  const root = machine(t, {
    'proc/self/cgroup': `4:memory:${group}\n3:cpu,cpuacct:${group}\n1:name=systemd:${group}\n`,
    'proc/self/mountinfo': v1(group),
    'sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': '250000\n',
    'sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': '100000\n',
    'sys/fs/cgroup/memory/memory.limit_in_bytes': `${GIB}\n`,
  });
  assert.deepEqual(cgroupLimits(root), { cpus: 2.5, memoryBytes: GIB });
  assert.equal(usefulThreads(root, 64), 2, 'half a processor is left to everything else');
});

test('cgroup v1: nested groups below a mount of all, and values that stand for no limit', (t) => {
  const root = machine(t, {
    'proc/self/cgroup': '4:memory:/a/b\n3:cpu,cpuacct:/a/b\n',
    'proc/self/mountinfo': v1('/'),
    'sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us': '50000\n',
    'sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us': '100000\n',
    'sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us': '-1\n',
    'sys/fs/cgroup/memory/a/b/memory.limit_in_bytes': '9223372036854771712\n',
  });
  assert.equal(cgroupLimits(root).cpus, 0.5);
  assert.equal(usefulThreads(root, 64), 1, 'one thread at least');
  assert.equal(usableMemoryBytes(root, 16 * GIB), 16 * GIB);
});

test('a group outside of what is mounted is looked for at the mount point', (t) => {
  for (const group of ['/elsewhere', '/../../host.slice']) {
    const root = machine(t, {
      'proc/self/cgroup': `0::${group}\n`,
      'proc/self/mountinfo': V2.replace(' / /sys', ' /pod /sys'),
      'sys/fs/cgroup/cpu.max': '100000 100000\n',
    });
    assert.equal(usefulThreads(root, 64), 1);
  }
});

test('files that hold something else are no limits', (t) => {
  const root = machine(t, {
    'proc/self/cgroup': 'garbage\n0::/\n',
    'proc/self/mountinfo': `broken\n${V2}`,
    'sys/fs/cgroup/cpu.max': 'lots\n',
    'sys/fs/cgroup/memory.max': '\n',
  });
  assert.deepEqual(cgroupLimits(root), { cpus: Infinity, memoryBytes: Infinity });
});

test('a memory file system without a limit is not full', { skip: process.platform !== 'linux' }, async () => {
  assert.equal(await freeBytes('/proc'), Number.POSITIVE_INFINITY); // it has no blocks either
  assert(Number.isFinite(await freeBytes('/')));
  await requireSpace('/proc', 1e9);
});
