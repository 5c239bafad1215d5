/** `Prefer: wait=N`: a client that asks for it waits for the slot, and without the header nothing changes. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { BUDGETS } from '../../src/limits/budgets.ts';
import type { Exchange } from '../../src/observability/exchange.ts';
import { makeTone } from '../audio-fixtures.ts';
import { startHostileUpstream, wholeAnswer } from '../faults/hostile-upstream.ts';
import {
  form,
  json,
  post,
  type Script,
  startGateway,
  toneWav,
  until,
  untilWaiting,
  waiting,
} from './harness.ts';
import { rawClient, statusesIn } from './raw-client.ts';

const speech = toneWav(1);
/** Long enough for a busy machine; the tests end the waits themselves. */
const WAIT = { Prefer: 'wait=60' };

const start = (script: Script = {}) =>
  startGateway({ ...script, env: { SVC_MAX_WAIT_SEC: '60', ...script.env } });

/** The head of a request whose body is announced but not sent. */
const headOf = (path: string, fields: Record<string, string>) =>
  [
    `POST ${path} HTTP/1.1`,
    'Host: localhost',
    ...Object.entries(fields).map(([name, value]) => `${name}: ${value}`),
    '\r\n',
  ].join('\r\n');

test('a transcription, a translation, speech and chat that ask for it wait for the slot, in turn', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave(wholeAnswer('made'));
  const env = { SVC_TTS_UPSTREAM_URL: upstream.url, SVC_LLM_BACKEND_URL: upstream.url };
  await using gateway = await start({ env });
  const held = gateway.app.slot.take('llm', 'holder');
  const json = { 'Content-Type': 'application/json' };
  const calls: [category: string, path: string, init: RequestInit][] = [
    ['asr', '/v1/audio/transcriptions', { body: form(speech), headers: WAIT }],
    ['tts', '/v1/audio/speech', { body: '{"input":"x"}', headers: { ...WAIT, ...json } }],
    ['llm', '/v1/chat/completions', { body: '{"model":"m","messages":[]}', headers: { ...WAIT, ...json } }],
    ['asr', '/v1/audio/translations', { body: form(speech), headers: WAIT }],
  ];
  const answers: Promise<Response>[] = [];
  for (const [, path, init] of calls) {
    answers.push(fetch(gateway.base + path, { method: 'POST', ...init }));
    await untilWaiting(gateway, answers.length);
  }
  const line = await waiting(gateway);
  assert.deepEqual(
    line.map(({ position, category }: { position: number; category: string }) => `${position} ${category}`),
    ['1 asr', '2 tts', '3 llm', '4 asr'],
  );
  assert(line.every(({ waited_ms }: { waited_ms: number }) => waited_ms >= 0));
  const page = await (await fetch(`${gateway.base}/admin/fragments/slot`)).text();
  assert(page.includes(line[0].request_id) && page.includes('aria-label="Requests waiting for the slot"'));
  const series = await (await fetch(`${gateway.base}/metrics`)).text();
  assert.match(series, /^voxgate_slot_waiting\{category="asr",source="request"\} 2$/m);
  held[Symbol.dispose]();
  for (const answer of answers) {
    const { status, headers } = await answer;
    assert.deepEqual([status, headers.get('Preference-Applied')], [200, 'wait=60']);
  }
  await until('all are reported', () => gateway.exchanges.filter(({ category }) => category).length === 4);
  const done = gateway.exchanges.filter(({ category }) => category);
  // They end in any order, because the slot is free before the client has the end of its answer.
  const tookSlotAt = calls.map(([, path]) => {
    const { at, slotWaitMs = Number.NaN } = done.find((exchange) => exchange.path === path) as Exchange;
    return at.getTime() + slotWaitMs;
  });
  const rounding = 1; // `at` has whole milliseconds
  const inOrder = tookSlotAt.every((at, i) => i === 0 || at > (tookSlotAt[i - 1] as number) - rounding);
  assert(inOrder, `the slot was taken at ${tookSlotAt}`);
  assert(done.every(({ waitedMs, slotWaitMs = 0 }) => (waitedMs ?? 0) > 0 && slotWaitMs >= (waitedMs ?? 0)));
  assert.equal(gateway.app.slot.status().holder, null);
});

test('where chats of one client follow each other, its speech is served after one of them', async () => {
  const order: string[] = [];
  let endChat: () => void = assert.fail;
  await using upstream = await startHostileUpstream();
  upstream.behave((socket, head) => {
    const isChat = head.includes('/v1/chat/');
    order.push(isChat ? 'chat' : 'speech');
    const answer = () => wholeAnswer('made')(socket, head);
    if (isChat) endChat = answer;
    else answer();
  });
  const env = { SVC_TTS_UPSTREAM_URL: upstream.url, SVC_LLM_BACKEND_URL: upstream.url };
  await using gateway = await start({ env });
  const call = (path: string, body: string) =>
    fetch(gateway.base + path, {
      method: 'POST',
      body,
      headers: { ...WAIT, 'Content-Type': 'application/json' },
    }).then((answer) => answer.text());
  const chat = () => call('/v1/chat/completions', '{"model":"m","messages":[],"stream":true}');
  const all = [chat()];
  await until('the first chat is served', () => order.length === 1);
  for (const next of [chat, chat, () => call('/v1/audio/speech', '{"input":"x"}')]) {
    all.push(next());
    await untilWaiting(gateway, all.length - 1);
  }
  for (const served of [3, 4]) {
    all.push(chat());
    endChat();
    await until('the next chat is served', () => order.length === served);
  }
  assert.deepEqual(order, ['chat', 'speech', 'chat', 'chat']);
  upstream.behave(wholeAnswer('made'));
  endChat();
  assert.deepEqual(new Set(await Promise.all(all)), new Set(['made']));
});

test('without the header, or where the operator allows no wait, a busy slot is the 503 it always was', async () => {
  await using allowed = await start();
  await using refused = await startGateway();
  const bodies: unknown[] = [];
  for (const [gateway, headers] of [
    [allowed, {}],
    [refused, WAIT],
    [refused, {}],
    [allowed, { Prefer: 'wait=soon' }],
    [allowed, { Prefer: 'wait=0' }],
  ] as const) {
    using _held = gateway.app.slot.take('tts', 'holder');
    const answer = await post(gateway, form(speech), { headers });
    const names = [...answer.headers.keys()].filter((name) => name !== 'x-request-id').toSorted();
    const { error } = await json(answer);
    const { held_for_ms, request_id, ...rest } = error;
    bodies.push({ status: answer.status, retry: answer.headers.get('Retry-After'), names, rest });
  }
  for (const body of bodies) assert.deepEqual(body, bodies[2]);
  assert.equal((bodies[2] as { status: number }).status, 503);
});

test('where the operator says so, a request that does not ask waits too, unless it asks for no wait', async () => {
  await using gateway = await startGateway({ env: { SVC_DEFAULT_WAIT_SEC: '60' } });
  const held = gateway.app.slot.take('llm', 'holder');
  const answer = post(gateway, form(speech));
  await untilWaiting(gateway, 1);
  const refused = await post(gateway, form(speech), { headers: { Prefer: 'wait=0' } });
  assert.equal((await json(refused)).error.code, 'slot_busy');
  held[Symbol.dispose]();
  const { status, headers } = await answer;
  assert.deepEqual([status, headers.get('Preference-Applied')], [200, null]);
});

test('a longer wait than the operator allows is cut to that, and its end is the 503 of a busy slot', async () => {
  await using gateway = await start({ env: { SVC_MAX_WAIT_SEC: '1' } });
  using _held = gateway.app.slot.take('tts', 'holder');
  const begun = performance.now();
  const answer = await post(gateway, form(speech), { headers: WAIT });
  assert(performance.now() - begun >= 990);
  const { headers } = answer;
  assert.deepEqual(
    [answer.status, headers.get('Retry-After'), headers.get('Preference-Applied')],
    [503, '5', 'wait=1'],
  );
  assert.equal((await json(answer)).error.code, 'slot_busy');
  assert.deepEqual(await waiting(gateway), []);
});

test('no byte of a body is read during the wait, and no deadline of heads or bodies ends it', async () => {
  const budgets = { connection: { bodyMs: 160, headMs: 160 } };
  await using gateway = await start({ budgets });
  const held = gateway.app.slot.take('tts', 'holder');
  const type = 'multipart/form-data; boundary=x';
  const size = 2_000_000;
  const fields = { 'Content-Type': type, 'Content-Length': String(size), ...WAIT };
  using client = rawClient(gateway.base, headOf('/v1/audio/transcriptions', fields));
  const part = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n';
  const end = '\r\n--x--\r\n';
  await untilWaiting(gateway, 1);
  const audio = toneWav((size - part.length - end.length - 44) / 32_000);
  client.write(part);
  client.write(audio);
  client.write(end);
  await until(
    'it has waited for many times the deadlines',
    async () => (await waiting(gateway))[0].waited_ms > 1500,
  );
  assert.deepEqual([client.said(), client.closed(), gateway.uploads()], ['', false, []]);
  held[Symbol.dispose]();
  await until('the answer', () => client.said().includes('Hello there.'), 20_000);
  assert.match(client.said(), /^HTTP\/1\.1 200 /);
});

test('a client that waits for 100 Continue gets it only when its turn has come', async () => {
  await using gateway = await start();
  const held = gateway.app.slot.take('tts', 'holder');
  const fields = { Expect: '100-continue', 'Content-Type': 'multipart/form-data; boundary=x', ...WAIT };
  using client = rawClient(
    gateway.base,
    headOf('/v1/audio/transcriptions', { ...fields, 'Content-Length': '99' }),
  );
  await untilWaiting(gateway, 1);
  assert.equal(client.said(), '');
  held[Symbol.dispose]();
  await until('100 Continue', () => client.said().startsWith('HTTP/1.1 100 '));
});

test('a client that leaves during its wait is gone from the line, and the next one is served', async () => {
  await using gateway = await start();
  const held = gateway.app.slot.take('tts', 'holder');
  const left = new AbortController();
  const leaves = post(gateway, form(speech), { headers: WAIT, signal: left.signal }).catch(() => null);
  await untilWaiting(gateway, 1);
  const stays = post(gateway, form(speech), { headers: WAIT });
  await untilWaiting(gateway, 2);
  left.abort();
  await leaves;
  await untilWaiting(gateway, 1);
  held[Symbol.dispose]();
  assert.equal((await stays).status, 200);
  await until('both are reported', () => gateway.exchanges.filter(({ category }) => category).length === 2);
  const [gone] = gateway.exchanges.filter(({ category }) => category);
  assert.deepEqual([gone?.class, gone?.bytesIn], ['client-disconnect', 0]);
});

test('a client that leaves with a large body on its way does not keep the next one waiting', async () => {
  await using gateway = await start();
  const held = gateway.app.slot.take('tts', 'holder');
  const fields = { 'Content-Type': 'multipart/form-data; boundary=x', 'Content-Length': '90000000', ...WAIT };
  const client = rawClient(gateway.base, headOf('/v1/audio/transcriptions', fields));
  client.write(Buffer.alloc(20_000_000)); // more than all buffers on the way take
  await untilWaiting(gateway, 1);
  const stays = post(gateway, form(speech), { headers: WAIT });
  await untilWaiting(gateway, 2);
  client.socket.destroy();
  held[Symbol.dispose]();
  assert.equal((await stays).status, 200);
  await untilWaiting(gateway, 0);
});

test('one that waited and then sends no usable file frees its turn for the next', async () => {
  await using gateway = await start({ budgets: { waiting: { calledMs: 3_600_000 } } });
  const held = gateway.app.slot.take('tts', 'holder');
  const bad = post(gateway, form(null), { headers: WAIT });
  await untilWaiting(gateway, 1);
  const good = post(gateway, form(speech), { headers: WAIT });
  await untilWaiting(gateway, 2);
  held[Symbol.dispose]();
  assert.deepEqual([(await bad).status, (await good).status], [400, 200]);
});

test('a request beyond the number that may wait is refused at once', async () => {
  await using gateway = await start({ budgets: { waiting: { requests: 1 } } });
  const held = gateway.app.slot.take('tts', 'holder');
  const first = post(gateway, form(speech), { headers: WAIT });
  await untilWaiting(gateway, 1);
  const second = await post(gateway, form(speech), { headers: WAIT });
  assert.equal((await json(second)).error.code, 'slot_busy');
  held[Symbol.dispose]();
  assert.equal((await first).status, 200);
});

test('an address that fills the line and sends no body keeps no other one waiting', async () => {
  await using gateway = await start({ budgets: { waiting: { requests: 8, calledMs: 100 } } });
  const held = gateway.app.slot.take('tts', 'holder');
  const fields = { 'Content-Type': 'multipart/form-data; boundary=x', 'Content-Length': '1000', ...WAIT };
  const head = headOf('/v1/audio/transcriptions', fields);
  const silent = Array.from({ length: 12 }, () => rawClient(gateway.base, head, '127.0.0.5'));
  await until('the line is full', () => gateway.exchanges.length === 4);
  const request = new Response(form(speech));
  const body = Buffer.from(await request.arrayBuffer());
  const type = request.headers.get('Content-Type') ?? '';
  const own = headOf('/v1/audio/transcriptions', {
    'Content-Type': type,
    'Content-Length': String(body.length),
    ...WAIT,
  });
  using honest = rawClient(gateway.base, Buffer.concat([Buffer.from(own), body]), '127.0.0.9');
  await until('one has made room', () => gateway.exchanges.length === 5);
  const line = await waiting(gateway);
  assert.equal(line.length, 8);
  held[Symbol.dispose]();
  await until('it is answered', () => statusesIn(honest.said()).length === 1);
  assert.deepEqual(statusesIn(honest.said()), [200]);
  assert((await waiting(gateway)).length >= 4, 'it has not waited for all that came before it');
  for (const { socket } of silent) socket.destroy();
});

test('a slow body of the one that was called does not keep the slot from the next', async () => {
  await using gateway = await start({ budgets: { waiting: { calledMs: 50 } } });
  const held = gateway.app.slot.take('tts', 'holder');
  const fields = { 'Content-Type': 'multipart/form-data; boundary=x', 'Content-Length': '99000', ...WAIT };
  using slow = rawClient(gateway.base, headOf('/v1/audio/transcriptions', fields));
  await untilWaiting(gateway, 1);
  const next = post(gateway, form(speech), { headers: WAIT });
  await untilWaiting(gateway, 2);
  held[Symbol.dispose]();
  assert.equal((await next).status, 200);
  assert.equal(slow.said(), '');
});

test('those that have their body and wait hold no process of ffmpeg', async () => {
  const ffmpeg = { ...BUDGETS.ffmpeg, maxProcesses: 1 };
  await using gateway = await start({ env: { PATH: process.env.PATH ?? '' }, budgets: { ffmpeg } });
  // Longer than one block, so that its decoder is open until all of it was heard.
  const m4a = readFileSync(makeTone('long.m4a', '-af', 'aloop=loop=19:size=96000', '-c:a', 'aac'));
  const request = new Response(form(m4a));
  const body = Buffer.from(await request.arrayBuffer());
  const fields = { 'Content-Type': request.headers.get('Content-Type') ?? '', ...WAIT };
  const head = headOf('/v1/audio/transcriptions', { ...fields, 'Content-Length': String(body.length) });
  const clients = [1, 2, 3].map(() =>
    rawClient(gateway.base, Buffer.concat([Buffer.from(head), body.subarray(0, 2000)])),
  );
  await until('all send their bodies', () => gateway.uploads().length === clients.length);
  const held = gateway.app.slot.take('tts', 'holder');
  for (const client of clients) client.write(body.subarray(2000));
  await untilWaiting(gateway, clients.length);
  held[Symbol.dispose]();
  for (const client of clients) {
    await until('it is answered', () => statusesIn(client.said()).length === 1);
    assert.deepEqual(statusesIn(client.said()), [200], client.said());
    client.socket.destroy();
  }
});

test('a gateway that stops ends all waits at once', async () => {
  await using gateway = await start();
  const held = gateway.app.slot.take('tts', 'holder');
  const answer = post(gateway, form(speech), { headers: WAIT });
  await untilWaiting(gateway, 1);
  const closed = gateway.app.close(60_000);
  assert.equal((await json(await answer)).error.code, 'shutting_down');
  held[Symbol.dispose]();
  await closed;
});
