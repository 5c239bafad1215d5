/** Forms as clients of the field encode them, against the whole gateway. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { encodeForm, FORM_TYPE, formInit, type Part } from '../form-request.ts';
import { heard, json, type Script, startGateway, toneWav, until } from './harness.ts';

const speech = toneWav(1);
const file: Part = { name: 'file', value: speech, filename: 'speech.wav', type: 'audio/wav' };
const PATH = '/v1/audio/transcriptions';

/** A gateway that hears one word, and remembers the prompts it was given. */
async function startHearing(script: Script = {}) {
  const prompts: string[] = [];
  const gateway = await startGateway({
    transcribe: async (_samples, { prompt }) => {
      prompts.push(prompt);
      return heard(' Hello.', 500);
    },
    ...script,
  });
  return {
    gateway,
    prompts,
    send: (parts: readonly Part[], path = PATH) => fetch(gateway.base + path, formInit(parts)),
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

test('a form with the nested fields of other services is served, as openai-python sends extra_body', async () => {
  await using world = await startHearing();
  const names = ['provider[order][]', 'provider[sort]', 'metadata[tags][0]', 'metadata[a][b][c]', 'x[99999]'];
  const response = await world.send([...names.map((name) => ({ name, value: 'x' })), file]);
  assert.deepEqual([response.status, (await json(response)).text], [200, 'Hello.']);
});

test('a known field in a file that is too long for it is refused by its name, and leaves nothing behind', async () => {
  await using world = await startHearing();
  const { gateway, send } = world;
  const long: Part = { name: 'model', value: 'x'.repeat(200_000), filename: 'blob' };
  for (const parts of [
    [long, file],
    [file, long],
  ]) {
    const { error } = await json(await send(parts));
    assert.deepEqual([error.code, error.param], ['invalid_value', 'model']);
  }
  await until('no upload is left', () => gateway.uploads().length === 0);
});

for (const [path, name] of [
  [PATH, 'file'],
  ['/v1/audio/translations', 'file'],
  ['/asr', 'audio_file'],
  ['/detect-language', 'audio_file'],
] as const)
  test(`${path} takes a file without a file name, and its content decides what it is`, async () => {
    await using world = await startHearing();
    for (const type of ['application/octet-stream', 'audio/wav', 'audio/mpeg'])
      assert.equal((await world.send([{ name, value: speech, type }], path)).status, 200, type);
    const { error } = await json(await world.send([{ name, value: 'no audio', type: 'audio/wav' }], path));
    assert.equal(error.code, 'unsupported_format');
  });

test('an alignment reads its fields as a transcription does', async () => {
  await using world = await startHearing();
  const type = 'application/json';
  const fields: Part[] = [
    { name: 'text', value: '"Hello."', type },
    { name: 'model', value: 'multilingual-base\n', filename: 'blob' },
    { name: 'provider[order][]', value: 'x' },
  ];
  const response = await world.send(
    [...fields, { name: 'file', value: speech, type }],
    '/v1/audio/alignments',
  );
  assert.equal((await json(response)).text, 'Hello.');
});

test('the empty part of a page whose visitor chose no file is a missing file', async () => {
  await using world = await startHearing();
  const type = 'application/octet-stream';
  const { error } = await json(await world.send([{ name: 'file', value: '', filename: '', type }]));
  assert.deepEqual([error.code, error.param], ['missing_file', 'file']);
});

test('a file under another name is a missing file, and the message has that name', async () => {
  await using world = await startHearing();
  const { error } = await json(await world.send([{ ...file, name: 'audio' }]));
  assert.deepEqual(
    [error.code, error.param, error.message],
    [
      'missing_file',
      'file',
      'No file was sent as the multipart field "file", with a file name; one came as "audio"',
    ],
  );
});

test('a Content-Type that cannot be parsed is named, and the file is not called missing', async () => {
  await using world = await startHearing();
  for (const type of [`${FORM_TYPE};`, `${FORM_TYPE},`, 'multipart/form-data; boundary=']) {
    const init = { ...formInit([file]), headers: { 'Content-Type': type } };
    const response = await fetch(world.gateway.base + PATH, init);
    const { error } = await json(response);
    assert.deepEqual([response.status, error.code], [400, 'invalid_form'], type);
    assert.match(error.message, /content type/, type);
  }
});

test('a form in a content coding is a 415 that says so, for audio and on the admin pages', async () => {
  await using world = await startHearing();
  const body = new Uint8Array(gzipSync(encodeForm([file])));
  for (const path of [
    PATH,
    '/v1/audio/translations',
    '/v1/audio/alignments',
    '/asr',
    '/admin/api/slot/stop',
  ]) {
    const headers = { 'Content-Type': FORM_TYPE, 'Content-Encoding': 'gzip' };
    const response = await fetch(world.gateway.base + path, { method: 'POST', headers, body });
    const { error } = await json(response);
    assert.deepEqual([response.status, error.code], [415, 'unsupported_media_type'], path);
    assert.match(error.message, /Content-Encoding "gzip".*Expected none/);
    assert.equal(response.headers.get('Accept-Encoding'), 'identity');
  }
  const headers = { 'Content-Type': FORM_TYPE, 'Content-Encoding': 'Identity' };
  const init = { method: 'POST', headers, body: new Uint8Array(encodeForm([file])) };
  assert.equal((await fetch(world.gateway.base + PATH, init)).status, 200);
});
