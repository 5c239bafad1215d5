/** Checkpoints of torch are read for their tensors only. A pickle that asks for anything else is refused. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { GatewayError } from '../../src/errors.ts';
import { sincFilters } from '../../src/models/import/segmentation-tensors.ts';
import { openTorchCheckpoint } from '../../src/models/import/torch-checkpoint.ts';
import { op, storedZip } from '../torch-file.ts';

let path: string;
let dir: string;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'voxgate-torch-'));
  path = join(dir, 'checkpoint.pt');
});
after(() => rm(dir, { recursive: true }));

const floats = Float32Array.of(1, -2.5, 3e-8, 4, 5, 6);

async function read(file: Uint8Array, name = 'weight', shape = [2, 3]): Promise<Float32Array> {
  await writeFile(path, file);
  return (await openTorchCheckpoint(path)).floats(name, shape);
}

/** A checkpoint with this pickle and a storage of six floats. */
const withPickle = (value: Uint8Array) =>
  storedZip({ 'archive/data.pkl': op.whole(value), 'archive/data/0': new Uint8Array(floats.buffer) });

const refuses = (file: Uint8Array, why: RegExp) =>
  assert.rejects(read(file), (error) => {
    assert(error instanceof GatewayError, String(error));
    assert.equal(error.code, 'not_importable');
    assert.match(error.message, why);
    return true;
  });

test('a tensor has the values of its storage, from its offset on', async () => {
  const whole = op.dict({ weight: op.tensor(op.storage('0', 6), 0, [2, 3]) });
  assert.deepEqual(await read(withPickle(whole)), floats);
  const part = op.dict({ weight: op.tensor(op.storage('0', 6), 2, [3]) });
  assert.deepEqual(await read(withPickle(part), 'weight', [3]), floats.slice(2, 5));
});

test('the tensors of Lightning are in a dictionary of their own, beside objects that are skipped', async () => {
  const task = op.name('pyannote.audio.core.task', 'Specifications');
  const specifications = Buffer.concat([task, Buffer.from(')\x81', 'latin1'), op.dict({}), Buffer.from('b')]);
  const state = op.dict({ weight: op.tensor(op.storage('0', 6), 0, [2, 3]) });
  assert.deepEqual(await read(withPickle(op.dict({ specifications, state_dict: state }))), floats);
});

test('a pickle that names a function of Python is refused before anything else of it is read', async () => {
  for (const [module, name] of [
    ['posix', 'system'],
    ['builtins', 'eval'],
    ['torch._utils', '_rebuild_parameter'],
    ['collections', 'defaultdict'],
  ] as const) {
    const call = op.call(op.name(module, name), op.tuple(op.text('true')));
    await refuses(
      withPickle(op.dict({ weight: call })),
      new RegExp(`names ${module}\\.${name}, which no tensor`),
    );
  }
});

test('every instruction that no tensor needs is refused', async () => {
  const known = '}])(XqrhjctJKMGNQRbesu.'.split('').map((character) => character.charCodeAt(0));
  const allowed = new Set([...known, 0x80, 0x81, 0x85, 0x86, 0x87, 0x88, 0x89]);
  for (let opcode = 0; opcode < 256; opcode++) {
    if (allowed.has(opcode)) continue;
    await refuses(
      withPickle(Buffer.of(opcode)),
      new RegExp(`the instruction 0x${opcode.toString(16)}, which`),
    );
  }
});

test('a tensor must have the expected shape and type', async () => {
  const six = (tensor: Uint8Array) => withPickle(op.dict({ weight: tensor }));
  await refuses(six(op.tensor(op.storage('0', 6), 0, [3, 2])), /the shape 3 x 2, expected 2 x 3/);
  await refuses(six(op.tensor(op.storage('0', 6, 'LongStorage'), 0, [2, 3])), /not of type float32/);
  await refuses(withPickle(op.dict({})), /no tensor weight/);
});

test('an archive must have a pickle, and neither that nor the number of its entries may be large', async () => {
  await refuses(storedZip({}), /no archive that torch wrote/);
  await refuses(storedZip({ 'archive/data.pkl': Buffer.alloc(1024 * 1024 + 1) }), /pickle is too large/);
  const many = Object.fromEntries(Array.from({ length: 4097 }, (_, i) => [`${i}`, Buffer.alloc(0)]));
  await refuses(storedZip(many), /more than 4096 entries/);
});

test('a band-pass filter is even or odd, and an even one is 1 in its middle', () => {
  const filters = sincFilters({
    low: Float32Array.of(100, -3000),
    band: Float32Array.of(-50, 6000),
    window: Float32Array.of(0.1, 0.5, 0.9),
    times: Float32Array.from([-3, -2, -1], (n) => (2 * Math.PI * n) / 16_000),
  });
  const row = (i: number) => [...filters.subarray(i * 7, (i + 1) * 7)];
  for (const even of [row(0), row(1)]) {
    assert.equal(even[3], 1);
    assert.deepEqual(even, even.toReversed());
  }
  for (const odd of [row(2), row(3)]) {
    assert.equal(odd[3], 0);
    for (const [i, value] of odd.slice(0, 3).entries()) assert.equal(odd[6 - i], -value);
  }
  // The second band ends at half the sample rate. The tap at the time t is that of the difference of two sines.
  const [low, high, t] = [3050, 8000, -1 / 16_000];
  const turn = 2 * Math.PI * t;
  const expected = ((Math.sin(high * turn) - Math.sin(low * turn)) / (turn / 2) / (2 * (high - low))) * 0.9;
  assert(Math.abs((row(1)[2] ?? 0) - expected) < 1e-5);
});
