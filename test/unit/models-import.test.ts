/** CTranslate2 folders, generated from the format alone, are imported: values survive, and damage is refused. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../src/errors.ts';
import { identifyWhisper, openFasterWhisper } from '../../src/models/import/faster-whisper.ts';
import { fromBrain, fromHalf, toHalf } from '../../src/models/import/half.ts';
import { melFilters } from '../../src/models/import/mel-filters.ts';
import { writeSilero } from '../../src/models/import/silero-ggml.ts';
import { readVocabulary } from '../../src/models/import/vocabulary.ts';
import { writeWhisper } from '../../src/models/import/whisper-ggml.ts';
import { createModelStore, type ModelStoreOptions } from '../../src/models/store.ts';
import { sha256 } from '../model/hub-server.ts';
import {
  type Changes,
  readGgml,
  TINY,
  type TinyShape,
  tinyVocabulary,
  valueAt,
  type WeightType,
  writeTinyWhisper,
} from '../model/tiny-whisper.ts';
import { storedZip } from '../torch-file.ts';

const TEXT_TOKENS = 280;
let dir: string;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'voxgate-import-'));
});
after(() => rm(dir, { recursive: true }));

let folders = 0;
async function folder(type: WeightType = 'float16', changes: Changes = {}, shape: TinyShape = TINY) {
  const path = join(dir, `whisper-${folders++}`);
  await mkdir(path);
  await writeTinyWhisper(path, shape, type, changes);
  await writeFile(join(path, 'vocabulary.txt'), `${tinyVocabulary(TEXT_TOKENS).join('\n')}\n`);
  return path;
}

async function convert(source: string, target = join(dir, 'out.bin')) {
  await using model = await openFasterWhisper(source);
  return await writeWhisper(model, target);
}

function refused(text: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof GatewayError, String(error));
    assert.equal(error.kind, 'malformed');
    assert.equal(error.code, 'not_importable');
    assert.match(error.message, text);
    return true;
  };
}

for (const type of ['float16', 'float32', 'bfloat16', 'int8'] as const) {
  test(`a ${type} checkpoint becomes whisper.cpp's tensors, values and all`, async () => {
    await convert(await folder(type));
    const { hparams, filters, tokens, tensors } = await readGgml(join(dir, 'out.bin'));
    const { state } = TINY;
    assert.deepEqual(hparams, [0x67676d6c, 300, 10, state, 2, 2, 8, state, 2, 1, 80, 1]);
    assert.deepEqual([filters.rows, filters.columns], [80, 201]);
    assert.equal(tokens.length, TEXT_TOKENS);
    assert.equal(tokens[1]?.toString(), ' the');
    // The encoder has 1 + 4 + 15 a layer + 2 tensors, and the decoder has 2 + 24 a layer + 2.
    assert.equal(tensors.size, 1 + 4 + 2 * 15 + 2 + 2 + 24 + 2);

    const expect = (name: string, ggmlType: number, shape: number[], source: string, firstRow = 0) => {
      const tensor = tensors.get(name);
      assert.ok(tensor, name);
      assert.equal(tensor.type, ggmlType, name);
      assert.deepEqual(tensor.shape, shape, name);
      const from = firstRow * (shape.length > 1 ? (shape[1] ?? 1) : 1);
      const wanted = tensor.values.map((_, i) => valueAt(source, from + i));
      assert.deepEqual(tensor.values, wanted, name);
    };
    const self = 'encoder/layer_1/self_attention';
    const cross = 'decoder/layer_0/attention';
    expect('encoder.positional_embedding', 0, [10, state], 'encoder/position_encodings/encodings');
    expect('encoder.conv1.weight', 1, [state, 80, 3], 'encoder/conv1/weight');
    expect('encoder.conv2.bias', 0, [state, 1], 'encoder/conv2/bias');
    expect('encoder.blocks.1.attn.query.weight', 1, [state, state], `${self}/linear_0/weight`);
    expect('encoder.blocks.1.attn.key.weight', 1, [state, state], `${self}/linear_0/weight`, state);
    expect('encoder.blocks.1.attn.value.weight', 1, [state, state], `${self}/linear_0/weight`, 2 * state);
    expect('encoder.blocks.1.attn.value.bias', 0, [state], `${self}/linear_0/bias`, 2 * state);
    expect('encoder.blocks.1.attn.out.weight', 1, [state, state], `${self}/linear_1/weight`);
    expect('encoder.blocks.1.attn_ln.weight', 0, [state], `${self}/layer_norm/gamma`);
    expect('encoder.blocks.0.mlp.0.weight', 1, [4 * state, state], 'encoder/layer_0/ffn/linear_0/weight');
    expect('encoder.blocks.0.mlp.2.weight', 1, [state, 4 * state], 'encoder/layer_0/ffn/linear_1/weight');
    expect('encoder.ln_post.bias', 0, [state], 'encoder/layer_norm/beta');
    expect('decoder.token_embedding.weight', 1, [300, state], 'decoder/embeddings/weight');
    expect('decoder.blocks.0.cross_attn.query.bias', 0, [state], `${cross}/linear_0/bias`);
    expect('decoder.blocks.0.cross_attn.key.weight', 1, [state, state], `${cross}/linear_1/weight`);
    expect('decoder.blocks.0.cross_attn.value.weight', 1, [state, state], `${cross}/linear_1/weight`, state);
    expect('decoder.blocks.0.cross_attn.out.bias', 0, [state], `${cross}/linear_2/bias`);
    expect('decoder.ln.weight', 0, [state], 'decoder/layer_norm/gamma');
    assert.equal(tensors.has('encoder.blocks.0.attn.key.bias'), false);
  });
}

test('the mel filterbank is Slaney’s, with triangles of area one from 0 to 8000 Hz', () => {
  for (const bands of [80, 128]) {
    const filters = melFilters(bands);
    assert.equal(filters.length, bands * 201);
    for (let band = 0; band < bands; band++) {
      const row = filters.subarray(band * 201, (band + 1) * 201);
      const peak = row.indexOf(Math.max(...row));
      assert.ok(row.every((value) => value >= 0));
      for (let bin = 1; bin <= peak; bin++) assert.ok((row[bin] ?? 0) >= (row[bin - 1] ?? 0));
      for (let bin = peak + 1; bin < 201; bin++) assert.ok((row[bin] ?? 0) <= (row[bin - 1] ?? 0));
    }
  }
  // These hash the bytes that librosa.filters.mel(sr=16000, n_fft=400, n_mels=bands) computes with numpy.
  const digest = (bands: number) => sha256(Buffer.from(melFilters(bands).buffer));
  assert.equal(digest(80), '4f2701b1d287d74a0dc9871026e9519d98cb76426615f2539b0d151a0ae4ec2e');
  assert.equal(digest(128), '2a5f9822897750e047c85dea37cc268d3be0ecfd23c28a5f10da129d99d05afe');
});

test('half precision keeps every value, and rounding takes the nearest, ties to even', () => {
  for (let bits = 0; bits < 0x10000; bits++) {
    const value = fromHalf(bits);
    if (Number.isNaN(value)) assert.equal(toHalf(value) & 0x7e00, 0x7e00);
    else assert.equal(toHalf(value), bits);
  }
  fc.assert(
    fc.property(fc.float({ noNaN: true, min: -65000, max: 65000 }), (value) => {
      const bits = toHalf(value);
      const error = Math.abs(fromHalf(bits) - value);
      for (const neighbor of [bits - 1, bits + 1]) {
        const other = Math.abs(fromHalf(neighbor & 0xffff) - value);
        if ((neighbor & 0x7fff) < 0x7c00 && neighbor >= 0) assert.ok(error <= other);
        if (error === other && error > 0) assert.equal(bits & 1, 0);
      }
    }),
  );
  assert.equal(toHalf(1 + 2 ** -11), 0x3c00);
  assert.equal(toHalf(1 + 3 * 2 ** -11), 0x3c02);
  assert.equal(fromBrain(0x3fc0), 1.5);
});

test('vocabularies as text, JSON array and tokenizer give the same tokens', async () => {
  const tokens = tinyVocabulary(TEXT_TOKENS).map((token, i) =>
    i < TEXT_TOKENS ? `${token}${i % 7}${'é'}` : token,
  );
  const [asText, asArray, asTokenizer] = await Promise.all(
    ['a', 'b', 'c'].map(async (name) => mkdtemp(join(dir, `vocabulary-${name}`))),
  );
  assert.ok(asText && asArray && asTokenizer);
  const unique = tokens.map((token, i) => (i < TEXT_TOKENS ? `${token}${i}` : token));
  await writeFile(join(asText, 'vocabulary.txt'), `${unique.join('\n')}\n`);
  await writeFile(join(asArray, 'vocabulary.json'), JSON.stringify(unique));
  const vocab = Object.fromEntries(unique.slice(0, -1).map((token, i) => [token, i]));
  const added_tokens = [
    { id: unique.length - 1, content: unique.at(-1) },
    { id: unique.length - 2, content: unique.at(-2) },
  ];
  await writeFile(join(asTokenizer, 'tokenizer.json'), JSON.stringify({ model: { vocab }, added_tokens }));
  const first = await readVocabulary(asText);
  assert.equal(first.length, TEXT_TOKENS);
  assert.deepEqual(first[0], Buffer.from([0x61, 0x30, 0xe9, 0x30]));
  assert.deepEqual(await readVocabulary(asArray), first);
  assert.deepEqual(await readVocabulary(asTokenizer), first);

  const { '<|endoftext|>': _, ...cut } = vocab;
  delete cut[unique[5] ?? ''];
  await writeFile(join(asTokenizer, 'tokenizer.json'), JSON.stringify({ model: { vocab: cut } }));
  await assert.rejects(readVocabulary(asTokenizer), refused(/no single token of rank 5/));
  await writeFile(join(asArray, 'vocabulary.json'), '{');
  await assert.rejects(readVocabulary(asArray), refused(/does not have the content/));
  await writeFile(join(asText, 'vocabulary.txt'), `${'漢\n'.repeat(300)}<|endoftext|>\n`);
  await assert.rejects(readVocabulary(asText), refused(/not byte-level BPE/));
  await assert.rejects(readVocabulary(dir), refused(/has no vocabulary/));
});

test('a vocabulary made to waste memory or time is refused at its first fault', async () => {
  const mebibyte = 1024 * 1024;
  for (const [name, content, why] of [
    ['vocabulary.json', `[${'1,'.repeat(7 * mebibyte)}1]`, /does not have the content/],
    ['vocabulary.json', `["a",${'1,'.repeat(90_000)}1]`, /does not have the content/],
    ['vocabulary.json', `[${'1,'.repeat(9 * mebibyte)}1]`, /not a vocabulary file/],
    ['vocabulary.txt', '\n'.repeat(15 * mebibyte), /is not Whisper's/],
    [
      'tokenizer.json',
      `{"model":{"vocab":{${Array.from({ length: 150_000 }, (_, i) => `"${i}":"x"`)}}}}`,
      /does not have the content/,
    ],
    [
      'tokenizer.json',
      `{"model":{"vocab":{${Array.from({ length: 90_000 }, (_, i) => `"${i}":-1`)}}}}`,
      /does not have the content/,
    ],
    [
      'tokenizer.json',
      `{"model":{"vocab":{}},"added_tokens":[${'1,'.repeat(90_000)}1]}`,
      /not have the content/,
    ],
    ['tokenizer.json', '['.repeat(mebibyte), /does not have the content/],
    ['tokenizer.json', 'null', /is not Whisper's/],
  ] as const) {
    const path = await mkdtemp(join(dir, 'hostile-'));
    await writeFile(join(path, name), content);
    const before = process.memoryUsage().heapUsed;
    const startedAt = performance.now();
    await assert.rejects(readVocabulary(path), refused(why), `${name}: ${content.slice(0, 40)}`);
    const tookMs = performance.now() - startedAt;
    assert.ok(tookMs < 5000, `${name}: ${content.slice(0, 40)} took ${tookMs} ms`);
    assert.ok(process.memoryUsage().heapUsed - before < 500 * mebibyte, `${name}: ${content.slice(0, 40)}`);
    await rm(path, { recursive: true });
  }
});

test('a pipe in the place of a file is refused, and nobody waits for a writer', async () => {
  const source = await folder();
  for (const name of ['model.bin', 'vocabulary.txt']) {
    const path = join(source, name);
    await rm(path);
    assert.equal(spawnSync('mkfifo', [path]).status, 0);
    await assert.rejects(convert(source), refused(/is not a regular file/), name);
    await rm(path);
    if (name === 'model.bin') await writeTinyWhisper(source, TINY, 'float16', {});
  }
});

test('a folder that is not a whole Whisper is refused with the reason', async () => {
  await assert.rejects(convert(dir), refused(/has no model.bin/));
  await assert.rejects(
    convert(await folder('float16', { spec: 'TransformerSpec' })),
    refused(/not a Whisper.*Transformer/),
  );
  await assert.rejects(convert(await folder('float16', { version: 99 })), refused(/version 99/));
  const without = (name: string): Changes => ({
    change: (all) => all.filter((variable) => variable.name !== name),
  });
  await assert.rejects(
    convert(await folder('float16', without('encoder/conv2/bias'))),
    refused(/conv2\/bias.*missing/),
  );
  await assert.rejects(
    convert(await folder('float16', without('encoder/conv1/weight'))),
    refused(/conv1\/weight/),
  );
  await assert.rejects(
    convert(await folder('int8', without('decoder/embeddings/weight_scale'))),
    refused(/integers without one scale/),
  );
  const reshaped = await folder('float16', {
    change: (all) =>
      all.map((variable) =>
        variable.name === 'decoder/layer_0/ffn/linear_0/weight'
          ? { ...variable, shape: [32, 128] }
          : variable,
      ),
  });
  await assert.rejects(convert(reshaped), refused(/linear_0\/weight should be \[128,32\] and is \[32,128\]/));
  const liar = await folder('float16', {
    change: (all) => [
      ...all,
      { name: 'extra', shape: [2 ** 31, 2 ** 31], type: 'float16', data: Buffer.alloc(8) },
    ],
  });
  await assert.rejects(convert(liar), refused(/extra.*holds 8 bytes/));
  const cut = await folder();
  await truncate(join(cut, 'model.bin'), 40_000);
  await assert.rejects(convert(cut), refused(/cut short/));
});

test('a checkpoint is known by its dimensions, twins need --id, and strangers are named', () => {
  const shape = (state: number, audioLayers: number, textLayers: number, mels: number, vocab: number) => ({
    state,
    audioLayers,
    textLayers,
    mels,
    vocab,
    audioContext: 1500,
    textContext: 448,
    audioHeads: state / 64,
    textHeads: state / 64,
  });
  assert.equal(identifyWhisper(shape(512, 6, 6, 80, 51865)), 'multilingual-base');
  assert.equal(identifyWhisper(shape(1280, 32, 4, 128, 51866)), 'multilingual-large-v3-turbo');
  const large = shape(1280, 32, 32, 80, 51865);
  assert.throws(
    () => identifyWhisper(large),
    refused(/large-v1 or multilingual-large-v2: say which one with --id/),
  );
  assert.equal(identifyWhisper(large, 'multilingual-large-v2'), 'multilingual-large-v2');
  assert.throws(() => identifyWhisper(large, 'multilingual-base'), refused(/is not multilingual-base/));
  assert.equal(identifyWhisper(shape(512, 6, 6, 80, 51864)), 'english-base');
  assert.throws(() => identifyWhisper(shape(512, 6, 2, 80, 51864)), refused(/English-only/));
});

test('damaged bytes never crash or hang, and give a clear error or a file of the right size', async () => {
  const whole = await folder();
  const bytes = await readFile(join(whole, 'model.bin'));
  const good = await convert(whole);
  const damaged = await folder();
  const target = join(dir, 'damaged.bin');
  // Offsets that favor the headers, which lie between long runs of weights.
  const names = [...bytes.toString('latin1').matchAll(/(en|de)coder\//g)].map((match) => match.index);
  const position = fc.oneof(
    fc.nat(bytes.length - 1),
    fc
      .tuple(fc.constantFrom(0, ...names), fc.integer({ min: -8, max: 70 }))
      .map(([at, by]) => Math.max(0, at + by)),
  );
  const edits = fc.array(fc.tuple(position, fc.nat(255)), { maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(edits, fc.option(fc.nat(bytes.length)), async (changes, length) => {
      const copy = Buffer.from(bytes.subarray(0, length ?? bytes.length));
      for (const [at, value] of changes) if (at < copy.length) copy[at] = value;
      await writeFile(join(damaged, 'model.bin'), copy);
      try {
        const { bytes: size } = await convert(damaged, target);
        assert.ok(size > good.bytes / 2);
      } catch (error) {
        refused(/./)(error);
      }
    }),
    { numRuns: 400 },
  );
});

test('the voice activity converter refuses parts of other sizes', async () => {
  const script = join(dir, 'script.jit');
  const parts = Array.from({ length: 17 }, (_, i) => [`vad/data/${i}`, Buffer.alloc(12)] as const);
  await writeFile(script, storedZip(Object.fromEntries(parts)));
  await assert.rejects(writeSilero(script, join(dir, 'vad.bin')), refused(/another size/));
});

/** `multilingual-tiny` is known by these dimensions. */
const MULTILINGUAL_TINY: TinyShape = {
  ...TINY,
  ...{ state: 384, heads: 6, audioLayers: 4, textLayers: 4 },
  ...{ vocab: 51865, audioContext: 1500, textContext: 448 },
};

function offlineStore(models: string, options: Pick<ModelStoreOptions, 'precision' | 'quantize'>) {
  return createModelStore({
    ...{ dir: models, download: false, sources: [], log: { info() {}, warn() {} } },
    ...options,
  });
}

test('the store takes a folder under the id of its dimensions, quantizes it, and refuses a second one', async () => {
  const source = await folder('float16', { zeros: true }, MULTILINGUAL_TINY);
  const models = join(dir, 'models');
  const phases = new Set<string>();
  const store = offlineStore(models, {
    precision: 'q8_0',
    quantize: async ({ target }) => writeFile(target, 'quantized'),
  });
  const onProgress = ({ phase }: { phase: string }) => phases.add(phase);
  const imported = await store.import(source, { onProgress });
  assert.deepEqual(imported, { id: 'multilingual-tiny', path: join(models, 'ggml-tiny-q8_0.bin') });
  assert.deepEqual([...phases], ['converting', 'quantizing']);
  assert.equal(store.isInstalled('multilingual-tiny'), true);
  assert.equal((await store.ensure('multilingual-tiny')).path, imported.path);
  const before = (await readdir(models)).sort();
  assert.equal(before.length, 4);
  await assert.rejects(store.import(source), refused(/already installed/));
  await assert.rejects(
    store.import(source, { id: 'multilingual-small' }),
    refused(/is not multilingual-small/),
  );
  assert.deepEqual((await readdir(models)).sort(), before);
});

test('an interrupted import leaves no file', async () => {
  const source = await folder('float16', { zeros: true }, MULTILINGUAL_TINY);
  const models = join(dir, 'interrupted');
  const store = offlineStore(models, { precision: 'f16', quantize: null });
  const controller = new AbortController();
  const importing = store.import(source, {
    signal: controller.signal,
    onProgress: () => controller.abort(new Error('stop')),
  });
  await assert.rejects(importing, /stop/);
  assert.deepEqual(await readdir(models), []);
  assert.equal(existsSync(source), true);
});

test('an import whose record cannot be written is an error, and leaves no weights', async () => {
  const source = await folder('float16', { zeros: true }, MULTILINGUAL_TINY);
  const models = join(dir, 'unrecorded');
  await mkdir(join(models, 'ggml-tiny.bin.json'), { recursive: true });
  const store = offlineStore(models, { precision: 'f16', quantize: null });
  await assert.rejects(store.import(source), /the record of ggml-tiny.bin cannot be written: EISDIR/);
  assert.deepEqual(await readdir(models), ['ggml-tiny.bin.json']);
});
