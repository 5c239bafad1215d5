/** What the dashboard says of the machine: disks, memory, and the time for which nobody was answered. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createWatch, type Readings } from '../../src/admin/watch.ts';
import { until } from '../until.ts';

const GIB = 1024 ** 3;

interface Machine extends Readings {
  free: Record<string, number>;
  used: number;
  freeMemory: number;
}

/** Folders whose paths begin alike are on one disk. */
const machine = (): Machine => ({
  free: { '/a/models': 50 * GIB, '/a/tmp': 50 * GIB, '/b/log': 50 * GIB },
  used: GIB,
  freeMemory: 8 * GIB,
  async space(path) {
    const free = this.free[path];
    return free === undefined ? undefined : { disk: path.charCodeAt(1), free };
  },
  memory() {
    return { used: this.used, free: this.freeMemory, total: 16 * GIB };
  },
});
const folders = () => ({
  models: '/a/models',
  uploads: '/a/tmp',
  'the access log': '/b/log',
  captures: '/none',
});

test('disks and memory are named once they run out, with the time since when, and no more once they do not', async () => {
  const its = machine();
  const watch = createWatch({ folders, memoryBytes: 4 * GIB }, its);
  watch.stop();
  const said = async () => {
    await watch.check();
    return watch.troubles().map(({ level, says, detail }) => `${level}: ${says} (${detail})`);
  };
  assert.deepEqual(await said(), []);
  its.free['/a/models'] = 0.5 * GIB;
  assert.deepEqual(await said(), ['warn: The disk with models and uploads is almost full (512 MiB free)']);
  const since = watch.troubles()[0]?.since;
  its.free['/a/models'] = 1000;
  its.free['/b/log'] = GIB / 1024;
  assert.deepEqual(await said(), [
    'bad: The disk with models and uploads is full (1.0 KiB free)',
    'bad: The disk with the access log is full (1.0 MiB free)',
  ]);
  assert.equal(watch.troubles()[0]?.since, since, 'it began when it was almost full');
  its.free = machine().free;
  its.used = 3.8 * GIB;
  assert.deepEqual(await said(), ['bad: The gateway is almost out of memory (3.8 GiB of 4.0 GiB)']);
  Object.assign(its, { used: GIB, freeMemory: GIB / 10 });
  assert.match((await said())[0] ?? '', /^warn: The machine is almost out of memory/);
  its.freeMemory = 8 * GIB;
  assert.deepEqual(await said(), []);
});

test('a pause of the event loop is spoken of', async () => {
  const watch = createWatch({ folders: () => ({}), memoryBytes: 4 * GIB }, machine());
  try {
    await sleep(1);
    assert.deepEqual(watch.troubles(), []);
    const end = performance.now() + 2300;
    while (performance.now() < end);
    await until('it is seen', () => watch.troubles().length === 1);
    const [pause] = watch.troubles();
    assert.match(pause?.says ?? '', /^The gateway was unresponsive for \d\.\d+ s$/);
    assert((pause?.since.getTime() ?? 0) < Date.now() - 1000);
  } finally {
    watch.stop();
  }
});

test('the disk of a folder that is not made yet is that of the one around it', async () => {
  const missing = () => ({ captures: '/tmp/none/of/these/exists', nowhere: '' });
  const watch = createWatch({ folders: missing, memoryBytes: 1 });
  watch.stop();
  await watch.check();
  assert.equal(watch.troubles().find(({ key }) => key === 'memory')?.level, 'bad');
});
