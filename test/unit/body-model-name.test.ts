/** The model of a forwarded body is found without reading more of it than a bound. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { modelNameReader } from '../../src/http/passthrough.ts';
import { addChunk } from '../../src/streams.ts';
import { assertCheap } from '../cost.ts';

const KIB = 1024;
const image = 'x'.repeat(300 * KIB);

/** @param pieceBytes how many bytes come at a time */
function modelIn(body: string, pieceBytes = 64 * KIB): string | undefined {
  const reader = modelNameReader({ is: (types) => [types].flat().includes('json') && 'json' });
  const bytes = Buffer.from(body);
  for (let from = 0; from < bytes.length; from += pieceBytes)
    reader.read(bytes.subarray(from, from + pieceBytes));
  return reader.name();
}

for (const [what, body, name] of [
  ['a short body', '{"messages": [], "model": "llama"}', 'llama'],
  ['a name with escapes', '{"model": "\\u006clama\\"\\\\", "x": 1}', 'llama"\\'],
  ['a name that is too long', `{"model": "${'m'.repeat(500)}"}`, 'm'.repeat(128)],
  ['a model that is no text', '{"model": 5}', undefined],
  ['a body that is cut off', '{"model": "llama", "messages": [', undefined],
  ['no object', '["model", "llama"]', undefined],
  ['nothing', '', undefined],
] as const)
  test(`the model in ${what}`, () => assert.equal(modelIn(body), name));

for (const [what, body, name] of [
  [
    'a model before a chat',
    `{"model": "llama", "messages": [{"role": "user", "content": "${image}"}]}`,
    'llama',
  ],
  ['a model in front', `{"model": "llama", "image": "${image}"}`, 'llama'],
  [
    'escaped quotes and brackets in texts',
    `{"a": "\\"]},{", "model": "lla\\"ma", "b": "${image}"}`,
    'lla"ma',
  ],
  ['a text that ends with a backslash', `{"a": "\\\\", "model": "llama", "b": "${image}"}`, 'llama'],
  [
    'a model behind lists and objects',
    `{"a": [{"model": 1}, [2]], "model": "llama", "b": "${image}"}`,
    'llama',
  ],
  ['two models, of which the last one counts', `{"model": "a", "model": "b", "c": "${image}"}`, 'b'],
  ['models of nested objects alone', `{"a": {"model": "inner", "b": 1}, "c": "${image}"}`, undefined],
  ['the model behind the bound', `{"image": "${image}", "model": "llama"}`, undefined],
  ['brackets that do not fit', `{"a": [}, "model": "llama", "b": "${image}"}`, undefined],
  ['a list', `[{"model": "llama"}, "${image}"]`, undefined],
  ['text that is no JSON', image, undefined],
] as const)
  test(`the model in a body beyond the bound: ${what}`, () => {
    for (const pieceBytes of [1000, 64 * KIB, KIB * KIB]) assert.equal(modelIn(body, pieceBytes), name);
  });

test('no body makes the search slow', async () => {
  for (const piece of ['{', '"', '\\', '"\\"', ',', '[],', '{"model":']) {
    const body = `{"a":${piece.repeat(400 * KIB)}`;
    await assertCheap(`a body of ${piece}`, 100, () => modelIn(body));
  }
});

test('chunks of a byte are joined, so that a body takes little more memory than its bytes', () => {
  const chunks: Buffer[] = [];
  const bytes = Buffer.from('abcdefg'.repeat(10_000));
  for (const byte of bytes) {
    addChunk(chunks, Buffer.from([byte]));
    assert.ok(chunks.length < 256, `${chunks.length} chunks`);
  }
  assert.ok(Buffer.concat(chunks).equals(bytes));
});
