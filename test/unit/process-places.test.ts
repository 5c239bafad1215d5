/** Processes of ffmpeg are bounded: a file waits for one, not for ever, and each end of a source frees its place. */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { after, test } from 'node:test';
import { createAudioOpener } from '../../src/audio/opener.ts';
import { GatewayError } from '../../src/errors.ts';
import { BUDGETS } from '../../src/limits/budgets.ts';
import { createProcessPlaces } from '../../src/limits/process-places.ts';
import { createFakeEngine, folder, makeTone } from '../audio-fixtures.ts';

const tone = makeTone('places.m4a', '-f', 'ipod', '-c:a', 'aac');
after(() => rmSync(folder, { recursive: true, force: true }));

const opener = (maxProcesses: number, maxWaitMs: number) =>
  createAudioOpener({
    ...{ engine: createFakeEngine(), searchPath: process.env.PATH ?? '', maxAudioSec: 60 },
    limits: { ...BUDGETS.ffmpeg, maxProcesses, maxWaitMs },
  }).open;

const signal = new AbortController().signal;
const isOverloaded = (error: unknown) => error instanceof GatewayError && error.code === 'overloaded';

test('no more processes run at once than may, and a file that waits too long for one is refused', async () => {
  const open = opener(2, 200);
  const held = [await open(tone, signal), await open(tone, signal)];
  await assert.rejects(open(tone, signal), isOverloaded);
  const waiting = open(tone, signal);
  await held[0]?.close();
  await (await waiting).close();
  await held[1]?.close();
});

test('a file that cannot be decoded frees its place', async () => {
  const open = opener(1, 200);
  const broken = makeTone('broken.m4a', '-f', 'ipod', '-c:a', 'aac', '-t', '0');
  for (let i = 0; i < 3; i++) await assert.rejects(open(broken, signal), /./);
  await (await open(tone, signal)).close();
});

test('a client that leaves while it waits takes no place', async () => {
  const places = createProcessPlaces({ maxProcesses: 1, maxWaitMs: 60_000 });
  const held = await places.take('a');
  const leave = new AbortController();
  const waiting = places.take('a', leave.signal);
  leave.abort(new Error('left'));
  await assert.rejects(waiting, /left/);
  await assert.rejects(places.take('a', leave.signal), /left/);
  held[Symbol.dispose]();
  held[Symbol.dispose]();
  (await places.take('a'))[Symbol.dispose]();
});

test('an address that holds all processes gives its newest one up to another address', async () => {
  const places = createProcessPlaces({ maxProcesses: 3, maxWaitMs: 60_000 });
  const held = [await places.take('a'), await places.take('a'), await places.take('a')];
  await places.take('b');
  assert.deepEqual(
    held.map(({ signal }) => signal.aborted),
    [false, false, true],
  );
  assert(isOverloaded(held[2]?.signal.reason));
});

test('a process that ends makes room for the address that holds fewest', async () => {
  const places = createProcessPlaces({ maxProcesses: 2, maxWaitMs: 60_000 });
  const held = [await places.take('a'), await places.take('b')];
  const served: string[] = [];
  const waiting = ['b', 'a', 'c'].map(async (network) => {
    using _place = await places.take(network);
    served.push(network);
  });
  held[0]?.[Symbol.dispose]();
  await Promise.all(waiting);
  assert.deepEqual(served, ['a', 'c', 'b']);
});
