/** What deploy/haproxy.cfg does with a request whose gateway dies, waits, or cannot be asked at all. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { after, before, test } from 'node:test';
import { GatewayError } from '../../src/errors.ts';
import { form, json, toneWav } from '../http/harness.ts';
import { holdsSlot } from '../http/served.ts';
import { until } from '../until.ts';
import { type BalancedGateways, type GatewayNumber, NUMBERS, startBalancedGateways } from './balanced.ts';
import { BALANCER_CONFIG } from './reverse-proxies.ts';

/** One that fits in a buffer of the balancer, and one that does not. */
const SHORT = toneWav(1);
const LARGE = toneWav(12);

/** All tests use the same gateways, and leave them running. */
let scene: BalancedGateways;
before(async () => {
  scene = await startBalancedGateways();
});
after(() => scene?.[Symbol.asyncDispose]());

interface Init extends RequestInit {
  fields?: Record<string, string>;
}

const transcribe = (prompt: string, file = SHORT, init: Init = {}) => {
  const { fields, ...rest } = init;
  const body = form(file, { prompt, ...fields });
  const answer = fetch(`${scene.base}/v1/audio/transcriptions`, { method: 'POST', body, ...rest });
  answer.catch(() => undefined);
  return answer;
};

/** On a connection of its own: where one had a request before, HAProxy only closes it instead of a 502. */
async function transcribeAlone(prompt: string, file: Buffer): Promise<Response> {
  const { headers, body } = new Request(scene.base, { method: 'POST', body: form(file, { prompt }) });
  const options = { method: 'POST', headers: Object.fromEntries(headers), agent: false };
  const sent = request(`${scene.base}/v1/audio/transcriptions`, options);
  const [answer] = await Promise.all([once(sent, 'response'), pipeline(body ?? [], sent)]);
  const incoming: IncomingMessage = answer[0];
  const text = (await incoming.setEncoding('utf8').toArray()).join('');
  const { statusCode: status = 0 } = incoming;
  return new Response(text, { status, headers: { 'retry-after': incoming.headers['retry-after'] ?? '' } });
}

/** The gateway that computes now; there must be one. */
async function holder(): Promise<GatewayNumber> {
  let found: GatewayNumber | undefined;
  await until('a gateway computes', async () => {
    for (const number of NUMBERS)
      if (await holdsSlot(scene.gateway(number).base).catch(() => false)) found = number;
    return found !== undefined;
  });
  return found as GatewayNumber;
}

test('HAProxy takes the configuration without a warning', () => {
  const { status, stderr } = spawnSync('haproxy', ['-c', '-f', BALANCER_CONFIG], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  assert.doesNotMatch(stderr, /WARNING/);
});

test('what the balancer answers itself is the envelope, with a code of the gateway and its kind', () => {
  const config = readFileSync(BALANCER_CONFIG, 'utf8');
  const answers = [...config.matchAll(/string '(\{.*?\})'( |$)/gm)].map(([, text = '']) => JSON.parse(text));
  assert(answers.length >= 5);
  for (const { error } of answers) {
    assert.deepEqual(Object.keys(error), ['kind', 'provider', 'message', 'type', 'param', 'code']);
    assert.equal(new GatewayError(error.code, {} as never).kind, error.kind, error.code);
  }
});

test('a gateway is killed while it computes: what fits in a buffer is computed by another', async () => {
  const short = transcribe('sleep 1500');
  const first = await holder();
  await scene.kill(first);
  const answer = await short;
  assert.deepEqual([answer.status, (await json(answer)).text], [200, 'Hello there.']);
  const id = answer.headers.get('x-request-id');
  const lines = () => scene.accessLog().filter((line) => line.request_id === id);
  await until('its line is in an access log', () => lines().length > 0);
  assert.deepEqual(
    lines().map(({ status }) => status),
    [200],
  );

  const large = transcribeAlone('sleep 60000', LARGE);
  const second = await holder();
  await scene.kill(second);
  const lost = await large;
  assert.deepEqual([lost.status, lost.headers.get('retry-after')], [502, '1']);
  assert.equal((await json(lost)).error.code, 'upstream_failed');

  const begun = await transcribe('sleep 60000', SHORT, { fields: { stream: 'true' } });
  const third = await holder();
  await scene.kill(third);
  assert.equal(begun.status, 200);
  await assert.rejects(begun.text(), 'the stream is cut off, and nobody begins it again');
  await Promise.all([first, second, third].map(scene.restart));
});

test('the line is one for all gateways, and what is not there any more leaves it', async () => {
  const logged = scene.balancer.log().length;
  const left = new AbortController();
  const begunAt = Date.now();
  const served = Array.from({ length: 5 }, () => transcribe('sleep 400', LARGE));
  await until('all compute', async () => {
    const held = await Promise.all(NUMBERS.map((number) => holdsSlot(scene.gateway(number).base)));
    return held.every(Boolean);
  });
  const gone = transcribe('sleep 60000', SHORT, { signal: left.signal });
  setImmediate(() => left.abort());
  await assert.rejects(gone);
  const last = transcribe('sleep 400', LARGE);
  for (const answer of await Promise.all([...served, last])) assert.equal(answer.status, 200);
  assert(Date.now() - begunAt < 10_000, 'nobody waited for the one that had left');
  const waited = () =>
    [
      ...scene.balancer
        .log()
        .slice(logged)
        .matchAll(/ 200 \d+ bytes, (\d+) ms in line/g),
    ].map(([, ms]) => Number(ms) > 100);
  await until('all are logged', () => waited().length === 6);
  assert.equal(waited().filter(Boolean).length, 3, 'three gateways, six requests');
});

test('requests that name a model go to the same gateway while it is free, and to another while it is not', async () => {
  const named = (ms: number) => transcribe(`sleep ${ms}`, SHORT, { headers: { 'X-Model': 'european' } });
  const gateways = () =>
    [...scene.balancer.log().matchAll(/inference\/(gateway\d), /g)].map(([, name]) => name);
  const before = gateways().length;
  for (let i = 1; i <= 4; i++) {
    assert.equal((await named(0)).status, 200);
    // The client has the answer a moment before the gateway counts as free, which it does when the line is written.
    await until('it is logged', () => gateways().length === before + i);
  }
  assert.equal(new Set(gateways().slice(before)).size, 1);
  const busy = named(1000);
  await holder();
  assert.equal((await named(0)).status, 200);
  assert.equal((await busy).status, 200);
  await until('they are logged', () => gateways().length === before + 6);
  assert.notEqual(gateways().at(-2), gateways().at(-1));
});

test('a request waits at a gateway whose slot is taken by what the balancer does not see, as live sessions', async () => {
  const body = () => form(SHORT, { prompt: 'sleep 1000' });
  const others = NUMBERS.map((number) =>
    fetch(`${scene.gateway(number).base}/v1/audio/transcriptions`, { method: 'POST', body: body() }),
  );
  for (const number of NUMBERS)
    await until(`gateway${number} computes`, () => holdsSlot(scene.gateway(number).base));
  assert.equal((await transcribe('', LARGE)).status, 200);
  for (const { status } of await Promise.all(others)) assert.equal(status, 200);
});

test('what is of one gateway alone is not found here, and what takes no slot never waits', async () => {
  const left = new AbortController();
  const busy = NUMBERS.map(() => transcribe('sleep 60000', SHORT, { signal: left.signal }));
  for (const number of NUMBERS)
    await until(`gateway${number} computes`, () => holdsSlot(scene.gateway(number).base));
  for (const [path, status] of [
    ['/health', 200],
    ['/v1/models', 200],
    ['/metrics', 404],
    ['/admin', 404],
    ['/admin/api/metrics', 404],
  ] as const) {
    const answer = await fetch(scene.base + path);
    assert.equal(answer.status, status, path);
    if (status === 404) assert.equal((await json(answer)).error.kind, 'not_found');
  }
  const preflight = await fetch(`${scene.base}/v1/audio/transcriptions`, { method: 'OPTIONS' });
  assert.equal(preflight.status, 204);
  left.abort();
  await Promise.allSettled(busy);
});

test('the balancer has the figures that the alerts ask for', async () => {
  const text = await (await fetch(scene.balancer.figures)).text();
  const alerts = readFileSync(new URL('../../deploy/prometheus/alerts.yml', import.meta.url), 'utf8');
  const asked = [...alerts.matchAll(/haproxy_\w+\{.*?\}/g)].map(([series]) => series);
  assert(asked.length > 0);
  for (const series of asked) assert(text.includes(series), series);
});

test('without any gateway a request is refused at once', async () => {
  for (const number of NUMBERS) await scene.kill(number);
  for (const number of NUMBERS) await scene.balancer.becomes(number, 'DOWN');
  const none = await transcribe('');
  assert.deepEqual([none.status, none.headers.get('retry-after')], [503, '5']);
  assert.equal((await json(none)).error.code, 'slot_busy');
});
