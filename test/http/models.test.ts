/**
 * These tests read GET /v1/models as a whole: ids, order, languages. Other tests say what makes a single entry
 * appear.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { modelsListSchema } from '../../src/http/openapi/openapi.ts';
import { CATALOGUE } from '../../src/models/catalogue.ts';
import { type LocalServer, listening } from '../local-server.ts';
import { json, startGateway } from './harness.ts';

/** Both upstreams are in one server, which is healthy and has one chat model. */
async function startUpstreams(): Promise<LocalServer> {
  const server = createServer((req, res) => {
    res.end(req.url === '/v1/models' ? '{"data":[{"id":"llama"}]}' : '{}');
  });
  return await listening(server);
}

async function listed() {
  await using upstreams = await startUpstreams();
  await using gateway = await startGateway({
    installed: ['multilingual-base', 'cjk', 'voice-activity'],
    env: { SVC_TTS_UPSTREAM_URL: upstreams.base, SVC_LLM_BACKEND_URL: upstreams.base },
  });
  const list = modelsListSchema.parse(await json(await fetch(`${gateway.base}/v1/models`)));
  assert.equal(list.object, 'list');
  return list.data;
}

test('every model is listed under its id: auto, those on disk, the others, speech, chat', async () => {
  const models = await listed();
  const ids = models.map(({ id }) => id);
  assert.equal(ids[0], 'auto');
  assert.deepEqual(ids.slice(1, 3).sort(), ['cjk', 'multilingual-base']);
  const others = CATALOGUE.map(({ id }) => id).filter((id) => !['cjk', 'multilingual-base'].includes(id));
  assert.deepEqual(ids.slice(3, -2).sort(), others.sort());
  const sizes = 'tiny small medium large-v1 large-v2 large-v3 large-v3-turbo distil-large-v3'.split(' ');
  for (const id of ['european', ...sizes.map((size) => `multilingual-${size}`)])
    assert(others.includes(id), id);
  assert.deepEqual(ids.slice(-2), ['tts', 'llama']);
  for (const { id, capabilities } of models)
    assert.deepEqual(capabilities, [id === 'tts' ? 'tts' : id === 'llama' ? 'llm' : 'asr'], id);
});

test('only recognition models have languages, and only auto is an alias', async () => {
  const models = await listed();
  const named = (wanted: string) => models.find(({ id }) => id === wanted);
  for (const model of models) {
    assert.equal(model.is_routing_alias, model.id === 'auto', model.id);
    const tells = model.capabilities[0] === 'asr' && model.id !== 'auto';
    assert.equal(model.languages !== undefined, tells, model.id);
    for (const code of model.languages ?? []) assert.match(code, /^[a-z]{2,3}$/, model.id);
  }
  assert.equal(named('multilingual-base')?.languages?.length, 99);
  assert.equal(named('multilingual-large-v3-turbo')?.languages?.length, 100);
  assert.deepEqual(named('multilingual-distil-large-v3')?.languages, ['en']);
  assert.deepEqual(named('cjk')?.languages?.toSorted(), ['en', 'ja', 'ko', 'yue', 'zh']);
  const european = 'bg cs da de el en es et fi fr hr hu it lt lv mt nl pl pt ro ru sk sl sv uk';
  assert.equal(named('european')?.languages?.toSorted().join(' '), european);
});

test('auto and the models that were trained to translate say that they do, and no others', async () => {
  const models = await listed();
  const telling = models.filter(({ supports_translation }) => supports_translation !== undefined);
  assert.deepEqual(
    telling.map(({ id }) => id),
    models.filter(({ capabilities }) => capabilities[0] === 'asr').map(({ id }) => id),
  );
  const cannot = telling.filter(({ supports_translation }) => !supports_translation).map(({ id }) => id);
  const untrained = CATALOGUE.filter(({ translates }) => !translates).map(({ id }) => id);
  assert.deepEqual(cannot.sort(), untrained.sort());
  assert.deepEqual(
    cannot.filter((id) => /^(cjk|european|multilingual-.*)$/.test(id)),
    ['cjk', 'european', 'multilingual-distil-large-v3', 'multilingual-large-v3-turbo'],
  );
});

test('auto and the models that align a given text say that they do, and no others', async () => {
  const asr = (await listed()).filter(({ capabilities }) => capabilities[0] === 'asr');
  const can = asr.filter(({ supports_alignment }) => supports_alignment === true).map(({ id }) => id);
  const aligning = CATALOGUE.filter(({ aligns }) => aligns).map(({ id }) => id);
  assert.deepEqual(can.sort(), ['auto', ...aligning].sort());
  const cannot = asr.filter(({ supports_alignment }) => supports_alignment === false).map(({ id }) => id);
  assert.deepEqual(
    cannot.sort(),
    CATALOGUE.filter(({ aligns }) => !aligns)
      .map(({ id }) => id)
      .sort(),
  );
  for (const id of ['cjk', 'european']) assert(cannot.includes(id), id);
});

test('the operator’s own names are entries, each behind the models that are as near, and the built-in ones are not', async () => {
  await using gateway = await startGateway({
    installed: ['multilingual-base', 'voice-activity'],
    env: {
      SVC_MODEL_ALIASES: 'mine=base,ours=whisper-1,whisper-1=cjk,my/own=turbo',
      SVC_MODEL_ALLOW: 'base,cjk',
    },
  });
  const list = modelsListSchema.parse(await json(await fetch(`${gateway.base}/v1/models`))).data;
  const shown = list.map(({ id, alias_of, installed }) => [id, alias_of, installed]);
  assert.deepEqual(shown, [
    ['auto', undefined, true],
    ['multilingual-base', undefined, true],
    ['mine', 'multilingual-base', true],
    ['ours', 'auto', true],
    ['cjk', undefined, false],
    ['whisper-1', 'cjk', false],
  ]);
  const named = (wanted: string) => list.find(({ id }) => id === wanted);
  assert.deepEqual(named('mine')?.languages, named('multilingual-base')?.languages);
  assert.equal(named('ours')?.languages, undefined);
  assert.deepEqual(
    list.filter(({ is_routing_alias }) => is_routing_alias).map(({ id }) => id),
    ['auto'],
  );
  for (const entry of list)
    assert.deepEqual(await json(await fetch(`${gateway.base}/v1/models/${entry.id}`)), entry);
  assert.equal((await fetch(`${gateway.base}/v1/models/my/own`)).status, 404, 'requests may not use it');
});

test('the names of this gateway are never those of an upstream, and what is listed is what one gets', async () => {
  const upstream = createServer((_req, res) => {
    const data = ['auto', 'multilingual-base', 'whisper-1', 'llama'].map((id) => ({ id }));
    res.end(JSON.stringify({ data }));
  });
  await using daemon = await listening(upstream);
  await using gateway = await startGateway({ env: { SVC_LLM_BACKEND_URL: daemon.base } });
  const { data } = await json(await fetch(`${gateway.base}/v1/models`));
  const chat = data.filter(({ capabilities }: any) => capabilities[0] === 'llm');
  assert.deepEqual(
    chat.map(({ id }: any) => id),
    ['whisper-1', 'llama'],
  );
  for (const entry of data)
    assert.deepEqual(await json(await fetch(`${gateway.base}/v1/models/${entry.id}`)), entry);
});

test('models tell their size, and how far their weights are while they are fetched', async () => {
  const activity = [
    { id: 'diarization', phase: 'downloading' as const, what: 'a file', doneBytes: 1, totalBytes: null },
    { id: 'multilingual-tiny', phase: 'downloading' as const, what: 'a file', doneBytes: 2, totalBytes: 5 },
  ];
  await using gateway = await startGateway({ activity: () => activity, weightBytes: () => 1234 });
  const entry = async (id: string) => json(await fetch(`${gateway.base}/v1/models/${id}`));
  const none = { id: 'multilingual-base', size_bytes: 1234, fetching: undefined };
  assert.deepEqual(pick(await entry('multilingual-base')), none);
  const tiny = await entry('multilingual-tiny');
  assert(tiny.size_bytes > 1e7, `${tiny.size_bytes}`);
  const fetching = { model: 'multilingual-tiny', phase: 'downloading', done_bytes: 2, total_bytes: 5 };
  assert.deepEqual(tiny.fetching, fetching);
  const first = { model: 'diarization', phase: 'downloading', done_bytes: 1, total_bytes: null };
  assert.deepEqual(pick(await entry('auto')), { id: 'auto', size_bytes: undefined, fetching: first });
  activity.length = 0;
  assert.equal('fetching' in (await entry('auto')), false);
});

const pick = ({ id, size_bytes, fetching }: Record<string, unknown>) => ({ id, size_bytes, fetching });
