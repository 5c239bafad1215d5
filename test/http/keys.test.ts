/** Keys with names, admin keys, keys of upstreams, keys in files; and what of a browser's request stays in the gateway. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { startHostileUpstream } from '../faults/hostile-upstream.ts';
import { form, type Gateway, json, post, startGateway, toneWav } from './harness.ts';

const CHAT = '/v1/chat/completions';
const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });
const statusOf = async (gateway: Gateway, path: string, headers = {}) =>
  (await fetch(gateway.base + path, { headers })).status;

test('a named key stands by its name in the log and the metrics, and its value nowhere', async () => {
  await using gateway = await startGateway({ env: { SVC_API_KEY: 'alice=s3cret,bm9uYW1l==' } });
  for (const key of ['s3cret', 'bm9uYW1l=='])
    assert.equal((await post(gateway, form(toneWav(1)), { headers: bearer(key) })).status, 200);
  assert.equal(await statusOf(gateway, '/v1/models', bearer('alice=s3cret')), 401);
  assert.deepEqual(
    gateway.exchanges.map(({ key }) => key),
    ['alice', undefined, undefined],
  );
  const metrics = await fetch(`${gateway.base}/admin/api/metrics`, { headers: bearer('s3cret') });
  const text = await metrics.text();
  const [newest, oldest] = JSON.parse(text).categories.asr.recent;
  assert.deepEqual([oldest.key, newest.key], ['alice', undefined]);
  assert.doesNotMatch(text + gateway.logged.join(), /s3cret/);
});

test('with admin keys the dashboard and the metrics want one, and a key of the API opens neither', async () => {
  await using gateway = await startGateway({ env: { SVC_API_KEY: 'user', SVC_ADMIN_KEY: 'root=boss' } });
  for (const path of ['/metrics', '/admin/api/metrics']) {
    assert.equal(await statusOf(gateway, path, bearer('user')), 401, path);
    assert.equal(await statusOf(gateway, path, bearer('boss')), 200, path);
  }
  assert.equal(await statusOf(gateway, '/v1/models', bearer('user')), 200);
  assert.equal(await statusOf(gateway, '/v1/models', bearer('boss')), 200);
  const signIn = (key: string) =>
    fetch(`${gateway.base}/admin/session`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ key }),
    });
  assert.equal((await signIn('user')).status, 401);
  const { status, headers } = await signIn('boss');
  assert.equal(status, 204);
  const Cookie = String(headers.get('set-cookie')).split(';', 1)[0] ?? '';
  assert.equal(await statusOf(gateway, '/admin/api/metrics', { Cookie }), 200);
});

test('an admin key alone closes the dashboard and leaves the API open', async () => {
  await using gateway = await startGateway({ env: { SVC_ADMIN_KEY: 'boss' } });
  assert.equal(await statusOf(gateway, '/v1/models'), 200);
  assert.equal(await statusOf(gateway, '/admin/api/metrics'), 401);
  assert.equal(await statusOf(gateway, '/metrics'), 401);
  assert.equal(await statusOf(gateway, '/metrics', bearer('boss')), 200);
});

test('an upstream gets its own key, in calls and probes, in place of what the client sends', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({
    env: {
      SVC_API_KEY: 'user',
      SVC_LLM_BACKEND_URL: upstream.url,
      SVC_LLM_API_KEY: 'for-the-daemon',
      SVC_TTS_UPSTREAM_URL: upstream.url,
    },
  });
  await fetch(gateway.base + CHAT, { method: 'POST', headers: bearer('user'), body: '{}' });
  assert.match(upstream.heads[0] ?? '', /^authorization: Bearer for-the-daemon\r$/im);
  await fetch(`${gateway.base}/v1/models`, { headers: bearer('user') });
  const probes = Object.fromEntries(
    upstream.heads.slice(1).map((head) => [head.split(' ')[1], /for-the-daemon/.test(head)]),
  );
  assert.deepEqual(probes, { '/health': false, '/v1/models': true, '/api/tags': true });
  assert.doesNotMatch(gateway.logged.join() + JSON.stringify(gateway.exchanges), /for-the-daemon/);
});

test('what a browser says of its page stays in the gateway', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({ env: { SVC_LLM_BACKEND_URL: upstream.url } });
  const headers = {
    Origin: gateway.base,
    Referer: `${gateway.base}/`,
    'Sec-Fetch-Site': 'same-origin',
    'Sec-Fetch-Mode': 'cors',
    'X-Theirs': 'kept',
  };
  await fetch(gateway.base + CHAT, { method: 'POST', headers, body: '{}' });
  assert.doesNotMatch(upstream.heads[0] ?? 'origin:', /^(origin|referer|sec-fetch-[a-z]+):/im);
  assert.match(upstream.heads[0] ?? '', /^x-theirs: kept\r$/im);
});

test('secrets are read from files, and a secret that is missing never opens the gateway', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-keys-test-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = (name: string, text: string) => {
    writeFileSync(join(dir, name), text);
    return join(dir, name);
  };
  const { config } = readConfig({
    SVC_API_KEY_FILE: file('keys', 'alice=one\n\ntwo\n'),
    SVC_LLM_API_KEY_FILE: file('llm', 'three\n'),
    HF_TOKEN_FILE: file('hub', '\uFEFF# from the hub, read only\r\n\r\n\tfo#ur  \r\n  #five\r\n'),
  });
  assert.equal(config.hubToken, 'fo#ur', 'comments, a byte order mark and spaces are no part of a key');
  assert.deepEqual([config.apiKeys, config.llm.apiKey], [['one', 'two'], 'three']);
  assert.deepEqual([...config.keyNames], [['one', 'alice']]);
  const refused: [NodeJS.ProcessEnv, RegExp][] = [
    [
      { SVC_API_KEY_FILE: file('empty', '\n') },
      /^SVC_API_KEY_FILE: .*empty is empty, or has only comments \(#\)$/,
    ],
    [{ SVC_API_KEY_FILE: file('comment', '# a key\n') }, /comment is empty, or has only comments/],
    [{ SVC_API_KEY_FILE: '~root/key' }, /^SVC_API_KEY_FILE cannot be "~root\/key": Expected a path; ~\/ is/],
    [
      { SVC_API_KEY_FILE: join(dir, 'none') },
      /^SVC_API_KEY_FILE: .*none cannot be read: no such file or directory$/,
    ],
    [{ SVC_API_KEY_FILE: dir }, /^SVC_API_KEY_FILE: .* cannot be read: it is no file$/],
    [
      { SVC_API_KEY: 'a', SVC_API_KEY_FILE: file('b', 'b') },
      /^SVC_API_KEY and SVC_API_KEY_FILE are both set/,
    ],
    [{ SVC_API_KEYS: 'a' }, /^SVC_API_KEYS is not a setting of voxgate; the nearest one is SVC_API_KEY$/],
    [{ SVC_PORT_FILE_TOKEN: 'a' }, /^SVC_PORT_FILE_TOKEN is not a setting/],
  ];
  for (const [env, message] of refused)
    assert.throws(() => readConfig(env), { name: 'ConfigError', message });
});

test('the log says once why an upstream cannot serve, and when it can again', async () => {
  let status = 401;
  await using upstream = await startHostileUpstream();
  upstream.behave((socket) => {
    const body = status === 200 ? '{"data":[]}' : '';
    socket.end(`HTTP/1.1 ${status} X\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`);
  });
  await using gateway = await startGateway({ env: { SVC_LLM_BACKEND_URL: upstream.url } });
  const lines = () =>
    gateway.logged.filter((line) => line.includes('chat daemon')).map((line) => JSON.parse(line));
  const list = async () => await json(await fetch(`${gateway.base}/v1/models`));
  await list();
  await list();
  assert.deepEqual(
    lines().map(({ level, message }) => [level, message]),
    [['warn', 'The chat daemon answers /v1/models with status 401, so it wants a key']],
  );
  status = 200;
  await new Promise((resolve) => setTimeout(resolve, 2100)); // answers are kept for two seconds
  await list();
  assert.deepEqual([lines().length, lines()[1]?.message], [2, 'The chat daemon serves']);
  assert.equal(
    lines().some((line) => line.message.includes('speech')),
    false,
  );
});
