/** The gateway's keys are for the gateway alone: they are found by their value in whatever a client put them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { keyFinder, targetWithoutKeys } from '../../src/gateway-keys.ts';
import { startHostileUpstream } from '../faults/hostile-upstream.ts';
import { json, startGateway, until } from './harness.ts';
import { rawClient, statusesIn } from './raw-client.ts';

const KEYS = ['gw/key+one=', 'k2'];
const base64 = (text: string) => Buffer.from(text).toString('base64');
const escaped = (text: string) => [...text].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('');

/** Where clients have been seen to put a key, or could. */
const places = (key: string): string[] => [
  ...[
    `X-Api-Key: ${key}\r\nX-Api-Key: ${key}`,
    `Api-Key: ${key}`,
    `xi-api-key: ${key}`,
    `x-goog-api-key: ${key}`,
  ],
  ...[
    `Cookie: a=1; key=${key}; b=2`,
    `Cookie: key=${escaped(key)}; a=1; b=2`,
    `X-Unknown: said ${key}, twice`,
  ],
  ...[`Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.${key}`, `Referer: http://x/?key=${key}`],
  `Sec-WebSocket-Protocol: voxgate-api-key-base64url.${Buffer.from(key).toString('base64url')}`,
  ...[`Authorization: Basic ${base64(`user:${key}`)}`, `Authorization: Basic ${base64(`${key}:`)}`],
  ...[`Authorization: Token ${key}`, `Authorization: Bearer ${key}`, `User-Agent: tool/1 (${key})`],
  ...[`X-Request-ID: ${key.replaceAll(/[/+=]/g, '')}`, `Content-Type: application/json; key=${key}`],
];
const targets = (key: string): string[] => [
  ...[
    `/v1/audio/voices?key=${encodeURIComponent(key)}&kept=1`,
    `/v1/audio/voices?kept=1&key=${escaped(key)}`,
  ],
  ...[
    `/v1/audio/voices?kept=1&a=${base64(`:${key}`)}`,
    `/v1/audio/${encodeURIComponent(key).replaceAll('%2F', '%2f')}?kept=1`,
  ],
];

test('a key of the gateway reaches no upstream, no log and no capture, wherever it stands', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({
    env: { SVC_API_KEY: KEYS.join(','), SVC_TTS_UPSTREAM_URL: upstream.url, SVC_OBS_PAYLOAD_ENABLED: '1' },
  });
  const holdsKey = keyFinder(KEYS);
  let asked = 0;
  const ask = async (line: string, target: string) => {
    const right = /^authorization/i.test(line) ? 'Api-Key: k2' : 'Authorization: Bearer k2';
    const fields = ['Host: localhost', 'Connection: close', right, 'X-Mine: theirs', line].filter(Boolean);
    using client = rawClient(gateway.base, [`GET ${target} HTTP/1.1`, ...fields, '', ''].join('\r\n'));
    await once(client.socket, 'close');
    asked += 1;
    const [status] = statusesIn(client.said());
    if (status === 400) return; // an encoded slash in a path
    assert.equal(status, 200, `${line} ${target}`);
    const head = upstream.heads.pop() ?? '';
    assert(!head.split('\r\n').some((sent) => holdsKey(sent)), `${line} ${target}\n${head}`);
    assert.match(head, /\r\nx-mine: theirs\r\n/);
    if (line.startsWith('Cookie'))
      assert.match(head, /\r\ncookie: .*a=1; ?b=2\r\n|\r\ncookie: a=1; {1,2}b=2\r\n/);
    if (target.includes('kept')) assert.match(head, /^GET \S*\?kept=1 /);
  };
  for (const key of KEYS) {
    for (const line of places(key)) await ask(line, '/v1/audio/voices');
    for (const target of targets(key)) await ask('', target);
  }
  await until('all are over', () => gateway.exchanges.length === asked);
  const { logDir, payloadDir } = gateway.config.observability;
  await gateway.app.close();
  const written = [logDir, payloadDir].flatMap((dir) =>
    readdirSync(dir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.jsonl?$/.test(entry.name))
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'utf8')),
  );
  assert(written.length > asked / 2);
  const words = [...written, ...gateway.logged].flatMap((text) => text.split(/[\s"]+/));
  assert.deepEqual(
    words.filter((word) => holdsKey(word)),
    [],
  );
});

test('what only looks like a key stays', () => {
  const holdsKey = keyFinder(['k2', 'a-long-key']);
  for (const text of ['ak2b', 'k22', 'boundary=xxk2xx', 'another-long-ke', 'a-long key', '%', '%zz', '']) {
    assert.equal(holdsKey(text), false, text);
    assert.equal(targetWithoutKeys(`/v1/${text}`, holdsKey), `/v1/${text}`);
  }
  for (const text of ['k2', 'a=k2', 'xa-long-keyx', 'a%2Dlong-key', base64('::a-long-key')])
    assert.equal(holdsKey(text), true, text);
  assert.equal(keyFinder([])('anything'), false);
});

test('api-key and X-Api-Key are taken as the key, as Bearer is, and wrong ones count as wrong', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({
    env: { SVC_API_KEY: 'right', SVC_TTS_UPSTREAM_URL: upstream.url },
    budgets: { access: { wrongKeys: 4 } },
  });
  const ask = async (headers: Record<string, string>, path = '/v1/models') => {
    const response = await fetch(`${gateway.base}${path}`, { headers });
    return [response.status, response.ok ? null : (await json(response)).error.kind];
  };
  for (const headers of [{ 'api-key': 'right' }, { 'X-Api-Key': 'right' }]) {
    for (const path of ['/v1/models', '/metrics', '/admin/api/metrics'])
      assert.deepEqual(await ask(headers, path), [200, null]);
  }
  const mixed = { Authorization: 'Bearer of-the-upstream', 'api-key': 'right' };
  assert.deepEqual(await ask(mixed, '/v1/audio/voices'), [200, null]);
  assert.match(upstream.heads.at(-1) ?? '', /\r\nauthorization: Bearer of-the-upstream\r\n/);
  assert.doesNotMatch(upstream.heads.at(-1) ?? '', /right/);
  for (const headers of [{ 'api-key': 'wrong 1' }, { 'X-Api-Key': 'wrong 2' }])
    assert.deepEqual(await ask(headers), [401, 'unauthorized']);
  const both = { 'api-key': 'wrong 3', Authorization: 'Bearer wrong 4' };
  assert.deepEqual(await ask(both), [401, 'unauthorized']);
  assert.deepEqual(await ask({ 'api-key': 'wrong 5' }), [429, 'unauthorized']);
});
