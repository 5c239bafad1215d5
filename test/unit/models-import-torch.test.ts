/** Checkpoints of torch are read for their tensors only. A pickle that asks for anything else is refused. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../src/errors.ts';
import { sincFilters } from '../../src/models/import/segmentation-tensors.ts';
import { openTorchCheckpoint } from '../../src/models/import/torch-checkpoint.ts';
import { op, storedZip, torchFile } from '../torch-file.ts';

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
  const checkpoint = await openTorchCheckpoint(path);
  try {
    return await checkpoint.floats(name, shape);
  } finally {
    await checkpoint[Symbol.asyncDispose]();
  }
}

/** A checkpoint with this pickle and a storage of six floats. */
const withPickle = (value: Uint8Array) =>
  storedZip({ 'archive/data.pkl': op.whole(value), 'archive/data/0': new Uint8Array(floats.buffer) });

const refuses = (file: Uint8Array, why: RegExp, shape?: number[]) =>
  assert.rejects(read(file, 'weight', shape), (error) => {
    assert(error instanceof GatewayError, String(error));
    assert.equal(error.code, 'not_importable');
    assert.match(error.message, why);
    return true;
  });

test('a tensor has the values of its storage, from its offset on', async () => {
  assert.deepEqual(await read(torchFile({ weight: { shape: [2, 3], values: floats } })), floats);
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

test('a pickle whose parts do not fit together is refused', async () => {
  const tensor = op.name('torch._utils', '_rebuild_tensor_v2');
  const dict = op.name('collections', 'OrderedDict');
  for (const [value, why] of [
    [Buffer.from('R'), /stack is empty/],
    [Buffer.from('}(R'), /stack is empty/],
    [Buffer.from('t'), /no mark/],
    [Buffer.from('h\x07'), /does not have/],
    [Buffer.from('X\xff\xff\xff\xff', 'latin1'), /cut short/],
    [Buffer.from(`c${'x'.repeat(300)}\n`), /no end/],
    [op.call(tensor, Buffer.from(')')), /tensor in it is damaged/],
    [op.call(dict, op.tuple(op.int(1))), /unknown way/],
    [op.call(op.text('print'), Buffer.from(')')), /what is no name/],
    [Buffer.concat([op.text('x'), Buffer.from('Q')]), /not the storage/],
    [Buffer.concat([dict, Buffer.from(')\x81', 'latin1')]), /an object that no tensor needs/],
    [Buffer.concat([op.int(1), Buffer.from('}b')]), /no object/],
    [Buffer.from('}(K\x01K\x02u'), /not a text/],
    [Buffer.from('}(K\x01u'), /no dictionary/],
    [Buffer.from('K\x01(K\x02e'), /no list/],
    [op.int(1), /no dictionary of tensors/],
    [op.dict({ weight: op.tensor(op.storage('0', 6), 0xffffffff, [2, 3]) }), /impossible/],
  ] as const) {
    await refuses(withPickle(value), why);
  }
});

test('a tensor must have the expected shape and type, and lie in its storage', async () => {
  const six = (tensor: Uint8Array) => withPickle(op.dict({ weight: tensor }));
  await refuses(six(op.tensor(op.storage('0', 6), 0, [3, 2])), /the shape 3 x 2, expected 2 x 3/);
  await refuses(six(op.tensor(op.storage('0', 6), 0, [2, 3], [1, 2])), /the shape/);
  await refuses(six(op.tensor(op.storage('0', 6, 'LongStorage'), 0, [2, 3])), /not of type float32/);
  await refuses(six(op.tensor(op.storage('0', 6), 1, [2, 3])), /too short/);
  await refuses(six(op.tensor(op.storage('1', 6), 0, [2, 3])), /no entry archive\/data\/1/);
  await refuses(withPickle(op.dict({})), /no tensor weight/);
});

test('an archive must be one of entries that are stored as they are', async () => {
  const entries = { 'archive/data.pkl': op.whole(op.dict({})) };
  await refuses(Buffer.from('not an archive'), /directory is damaged/);
  await refuses(storedZip(entries, 8), /compressed/);
  await refuses(storedZip({}), /no entry archive\/data\.pkl/);
  await refuses(storedZip({ ...entries, 'archive/byteorder': Buffer.from('big') }), /little-endian/);
  await refuses(storedZip({ 'archive/data.pkl': Buffer.alloc(1024 * 1024 + 1) }), /pickle is too large/);
  const many = Object.fromEntries(Array.from({ length: 4097 }, (_, i) => [`${i}`, Buffer.alloc(0)]));
  await refuses(storedZip(many), /more than 4096 entries/);
  const twice = storedZip({ ...entries, 'archive/data.pk2': Buffer.alloc(0) });
  await refuses(Buffer.from(twice.toString('latin1').replaceAll('.pk2', '.pkl'), 'latin1'), /one name/);
  await refuses(storedZip({ ['x'.repeat(257)]: Buffer.alloc(0) }), /name of an entry is too long/);
});

test('a damaged checkpoint gives the tensor of its size or is refused, and never anything else', async () => {
  const sound = torchFile({ weight: { shape: [2, 3], values: floats } });
  const change = fc.record({ at: fc.nat(sound.length - 1), value: fc.integer({ min: 0, max: 255 }) });
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), fc.nat(), async (changes, cut) => {
      const file = Buffer.from(sound);
      for (const { at, value } of changes) file[at] = value;
      const left = cut % 4 === 0 ? file.subarray(0, cut % file.length) : file;
      const outcome = await read(left).catch((error: unknown) => error);
      if (outcome instanceof Float32Array) assert.equal(outcome.length, 6);
      else assert(outcome instanceof GatewayError && outcome.code === 'not_importable', String(outcome));
    }),
    { numRuns: 500 },
  );
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
