/** Models of ONNX are read for their constant tensors only, and a file that is none is refused. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { GatewayError } from '../../src/errors.ts';
import { BUDGETS } from '../../src/limits/budgets.ts';
import { readOnnxTensors } from '../../src/models/import/onnx-tensors.ts';
import { writeTurnDetection } from '../../src/models/import/turn-detection-gguf.ts';

let dir: string;
let path: string;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'voxgate-onnx-'));
  path = join(dir, 'model.onnx');
});
after(() => rm(dir, { recursive: true }));

const FLOAT = 1;
const INT8 = 3;
const INT32 = 6;

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let left = BigInt.asUintN(64, BigInt(value));
  for (; left > 0x7fn; left >>= 7n) bytes.push(Number(left & 0x7fn) | 0x80);
  return Buffer.from([...bytes, Number(left)]);
}
const number = (field: number, value: number) => Buffer.concat([varint(field * 8), varint(value)]);
const bytes = (field: number, value: Uint8Array | string) => {
  const content = Buffer.from(value);
  return Buffer.concat([varint(field * 8 + 2), varint(content.length), content]);
};
const raw = (values: Float32Array | Int8Array | Int32Array) =>
  bytes(9, new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
const tensor = (name: string, type: number, shape: number[], ...values: Buffer[]) =>
  Buffer.concat([...shape.map((extent) => number(1, extent)), number(2, type), bytes(8, name), ...values]);
/** A model with a version, a node that is not looked at, and these tensors. */
const model = (...tensors: Buffer[]) =>
  Buffer.concat([
    number(1, 8),
    bytes(7, Buffer.concat([bytes(1, bytes(4, 'Add')), ...tensors.map((each) => bytes(5, each))])),
  ]);

async function read(file: Uint8Array) {
  await writeFile(path, file);
  return readOnnxTensors(path);
}

const refusal = (why: RegExp) => (error: unknown) => {
  assert(error instanceof GatewayError && error.code === 'not_importable', String(error));
  assert.match(error.message, why);
  return true;
};
const refuses = (file: Uint8Array, why: RegExp) => assert.rejects(read(file), refusal(why));

test('values are read as bytes and as packed fields', async () => {
  const packed = Buffer.concat([varint(7), varint(-7)]);
  const tensors = await read(
    model(
      tensor('floats', FLOAT, [2, 1], raw(Float32Array.of(1.5, -2))),
      tensor('bytes', INT8, [3], raw(Int8Array.of(-128, 0, 127))),
      tensor('ints', INT32, [2], raw(Int32Array.of(-70_000, 70_000))),
      tensor('packed', INT32, [2], bytes(5, packed)),
      tensor('float', FLOAT, [], bytes(4, new Uint8Array(Float32Array.of(0.25).buffer))),
    ),
  );
  assert.deepEqual([...tensors.values('floats', 'float32', [2, 1])], [1.5, -2]);
  assert.deepEqual([...tensors.values('bytes', 'int8', [3])], [-128, 0, 127]);
  assert.deepEqual([...tensors.values('ints', 'int32', [2])], [-70_000, 70_000]);
  assert.deepEqual([...tensors.values('packed', 'int32', [2])], [7, -7]);
  assert.deepEqual([...tensors.values('float', 'float32', [])], [0.25]);
});

test('a tensor must be there with its shape, its type and all of its values', async () => {
  const tensors = await read(
    model(
      tensor('good', FLOAT, [2, 3], raw(new Float32Array(6))),
      tensor('short', FLOAT, [2], raw(new Float32Array(1))),
      tensor('empty', FLOAT, [2]),
      tensor('double', 11, [1], raw(new Float32Array(2))),
    ),
  );
  const values = (name: string, shape: number[], type: 'float32' | 'int8' = 'float32') =>
    tensors.values(name, type, shape);
  assert.throws(() => values('other', [1]), refusal(/no tensor other/));
  assert.throws(() => values('good', [3, 2]), refusal(/the shape 2 x 3, expected 3 x 2/));
  assert.throws(() => values('good', [6]), refusal(/the shape/));
  assert.throws(() => values('good', [2, 3], 'int8'), refusal(/not of type int8/));
  assert.throws(() => values('double', [1]), refusal(/not of type float32/));
  assert.throws(() => values('short', [2]), refusal(/does not have its 2 values/));
  assert.throws(() => values('empty', [2]), refusal(/does not have its 2 values/));
});

test('a model that is damaged or too large is refused', async () => {
  await refuses(Buffer.from('not a model'), /damaged/);
  const one = tensor('one', FLOAT, [1], raw(Float32Array.of(1)));
  await refuses(model(one).subarray(0, -1), /damaged/);
  await refuses(Buffer.alloc(BUDGETS.checkpoint.maxOnnxBytes + 1), /too large/);
  const many = Array.from({ length: BUDGETS.checkpoint.maxEntries + 1 }, (_, i) =>
    tensor(`${i}`, FLOAT, [0]),
  );
  await refuses(model(...many), /too many tensors/);
});

test('a model of ONNX that is not the network for turns becomes no file', async () => {
  const target = join(dir, 'turns.gguf');
  const name = 'inner.encoder.conv1.weight';
  const converts = async (file: Buffer) => {
    await writeFile(path, file);
    await writeTurnDetection(path, target);
  };
  const quantized = tensor(`${name}_quantized`, INT8, [384, 80, 3], raw(new Int8Array(384 * 80 * 3)));
  const scales = tensor(`${name}_scale`, FLOAT, [384], raw(new Float32Array(384)));
  const zeros = (value: number) =>
    tensor(`${name}_zero_point`, INT8, [384], raw(new Int8Array(384).fill(value)));
  await assert.rejects(converts(model()), refusal(/no tensor inner\.encoder\.conv1\.weight_quantized/));
  await assert.rejects(
    converts(model(quantized, scales, zeros(1))),
    refusal(/zero point of .*conv1\.weight is not 0/),
  );
  await assert.rejects(
    converts(model(quantized, scales, zeros(0))),
    refusal(/no tensor .*conv1\.bias_quantized/),
  );
  await assert.rejects(rm(target), { code: 'ENOENT' });
});
