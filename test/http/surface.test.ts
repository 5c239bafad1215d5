/** Every endpoint has ids, the envelope of errors and headers in common; the list of models is tested here too. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';
import { errorEnvelopeSchema, healthSchema, modelsListSchema } from '../../src/http/openapi/openapi.ts';
import { CATALOGUE } from '../../src/models/catalogue.ts';
import { VERSION } from '../../src/version.ts';
import { form, type Gateway, heard, json, post, startGateway, toneWav, until } from './harness.ts';

const posted = (body: string, headers: Record<string, string> = {}) => ({
  ...{ method: 'POST', body, headers: { 'Content-Type': 'application/json', ...headers } },
});

test('health answers with the version', async () => {
  await using gateway = await startGateway();
  const response = await fetch(`${gateway.base}/health`);
  assert.deepEqual(healthSchema.parse(await json(response)), { status: 'ok', version: VERSION });
  // https://peps.python.org/pep-0440/#public-version-identifiers
  assert.match(VERSION, /^(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?$/);
});

for (const [given, kept] of [
  ['abc-DEF_1:2.3', true],
  ['x'.repeat(128), true],
  ['x'.repeat(129), false],
  ['has space', false],
  ['slash/es', false],
  ['ümlaut', false],
  [undefined, false],
] as const) {
  test(`request id ${given?.slice(0, 20) ?? 'none'} is ${kept ? 'kept' : 'replaced'}`, async () => {
    await using gateway = await startGateway();
    const headers = given === undefined ? {} : { 'X-Request-ID': Buffer.from(given).toString('latin1') };
    for (const path of ['/health', '/nowhere']) {
      const id = (await fetch(`${gateway.base}${path}`, { headers })).headers.get('x-request-id');
      if (kept) assert.equal(id, given);
      else assert.match(id ?? '', /^[0-9a-f]{16}$/);
    }
  });
}

test('unknown paths, wrong methods and undecodable paths carry the envelope', async () => {
  await using gateway = await startGateway();
  for (const [method, path, status, kind] of [
    ['GET', '/nowhere', 404, 'not_found'],
    ['GET', '/v1/models/none', 404, 'not_found'],
    ['GET', '/v1/audio/transcriptions', 405, 'method_not_allowed'],
    ['POST', '/health', 405, 'method_not_allowed'],
    ['DELETE', '/v1/models', 405, 'method_not_allowed'],
    ['GET', '/v1/models/%E0%A4%A', 400, 'malformed'],
  ] as const) {
    const response = await fetch(`${gateway.base}${path}`, { method });
    const body = await json(response);
    assert.equal(response.status, status, path);
    assert.equal(body.error.kind, kind);
    if (status === 405) assert(response.headers.get('allow'));
  }
});

test('the bare address, and that with a slash behind it, lead a browser to the playground', async () => {
  await using gateway = await startGateway();
  assert.equal((await fetch(`${gateway.base}/playground/`)).url, `${gateway.base}/playground`);
  for (const method of ['GET', 'HEAD']) {
    const response = await fetch(gateway.base, { method, redirect: 'manual' });
    assert.equal(response.status, 302, method);
    assert.equal(response.headers.get('location'), './playground', method);
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff', method);
  }
  assert.equal((await fetch(gateway.base)).url, `${gateway.base}/playground`);
});

test('pages have the methods of pages, as a health check that sends OPTIONS sees', async () => {
  await using gateway = await startGateway();
  for (const path of ['/', '/playground', '/docs', '/admin']) {
    const seen = async (method: string) => {
      const { status, headers } = await fetch(gateway.base + path, { method });
      return [status, headers.get('Allow')];
    };
    assert.deepEqual(await seen('OPTIONS'), [204, 'GET, HEAD'], path);
    for (const method of ['POST', 'PUT', 'DELETE'])
      assert.deepEqual(await seen(method), [405, 'GET, HEAD'], `${method} ${path}`);
  }
});

test('the path of a proxy is where a server must name it, if the proxy is believed and it is a path', async () => {
  for (const [trusted, sent, prefix] of [
    ['1', '/voice', '/voice'],
    ['1', '/a/b-c.d/', '/a/b-c.d'],
    ['0', '/voice', ''],
    ['10.0.0.0/8', '/voice', ''],
    ['1', undefined, ''],
    ['1', '//evil.example', ''],
    ['1', 'voice', ''],
    ['1', '/voice;Domain=x', ''],
    ['1', '/a, /b', ''],
    ['1', '/a/../b', ''],
    ['1', `/${'a'.repeat(200)}`, ''],
  ] as const) {
    await using gateway = await startGateway({ env: { SVC_API_KEY: 'right', SVC_TRUST_PROXY: trusted } });
    const headers = { 'Content-Type': 'application/json', ...(sent && { 'X-Forwarded-Prefix': sent }) };
    const asked = `${sent} from ${trusted}`;
    const { error } = await json(await fetch(`${gateway.base}/x/health`, { headers }));
    assert(error.message.includes(`GET ${prefix}/x/health`), `${asked}: ${error.message}`);
    assert(error.message.includes(`perhaps ${prefix}/health was meant`), `${asked}: ${error.message}`);
    const { servers } = await json(await fetch(`${gateway.base}/openapi.json`, { headers }));
    assert.deepEqual(servers, prefix === '' ? undefined : [{ url: prefix }], asked);
    const init = { method: 'POST', headers, body: '{"key":"right"}' };
    const session = await fetch(`${gateway.base}/admin/session`, init);
    assert(session.headers.get('set-cookie')?.includes(`; Path=${prefix}/admin;`), asked);
    const ended = await fetch(`${gateway.base}/admin/session`, { method: 'DELETE', headers });
    assert(ended.headers.get('set-cookie')?.includes(`; Path=${prefix}/admin;`), asked);
  }
});

/** Collects everything that the server sends until it closes the connection. */
async function replyTo(gateway: Gateway, bytes: string): Promise<string> {
  const { port, hostname } = new URL(gateway.base);
  const socket = connect(Number(port), hostname, () => socket.write(bytes));
  let text = '';
  socket.on('data', (data) => {
    text += data;
  });
  socket.on('error', () => undefined);
  socket.setTimeout(5000, () => socket.destroy());
  await once(socket, 'close');
  return text;
}

for (const [what, path, init, status, code] of [
  [
    'a range past the end',
    '/assets/voxgate.css',
    { headers: { Range: 'bytes=9999999-' } },
    416,
    'range_not_satisfiable',
  ],
  [
    'a range past the end of a packed file',
    '/assets/vendor/htmx.min.js',
    { headers: { Range: 'bytes=9999999-', 'Accept-Encoding': 'gzip' } },
    416,
    'range_not_satisfiable',
  ],
  [
    'another version of a file',
    '/assets/voxgate.css',
    { headers: { 'If-Match': '"x"' } },
    412,
    'precondition_failed',
  ],
  [
    'a key of 9 KB',
    '/admin/session',
    posted(JSON.stringify({ key: 'x'.repeat(9000) })),
    413,
    'body_too_large',
  ],
  [
    'an unknown character set',
    '/admin/session',
    posted('{}', { 'Content-Type': 'application/json; charset=klingon' }),
    415,
    'unsupported_media_type',
  ],
  [
    'an unknown encoding',
    '/admin/session',
    posted('{}', { 'Content-Encoding': 'zip' }),
    415,
    'unsupported_media_type',
  ],
  ['half a JSON', '/admin/session', posted('{'), 400, 'bad_request'],
] as const) {
  test(`${what} is the client’s mistake, answered ${status} with the envelope and without a line for the operator`, async () => {
    await using gateway = await startGateway();
    const response = await fetch(gateway.base + path, init);
    assert.equal(response.status, status);
    assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
    const { error } = errorEnvelopeSchema.parse(await json(response));
    assert.deepEqual([error.kind, error.code], [status === 413 ? 'too_large' : 'malformed', code]);
    assert.equal(response.headers.get('x-request-id')?.length, 16);
    for (const name of ['etag', 'last-modified', 'content-encoding', 'accept-ranges'])
      assert.equal(response.headers.get(name), null, `${name} is not of the envelope`);
    if (status === 416) assert.match(response.headers.get('content-range') ?? '', /^bytes \*\/\d+$/);
    assert(!gateway.logged.some((line) => line.includes('"error"')), gateway.logged.join(''));
  });
}

test('a client that leaves in the middle of a small body counts as one that left', async () => {
  await using gateway = await startGateway();
  const { port, hostname } = new URL(gateway.base);
  const socket = connect(Number(port), hostname, () => {
    const head = 'POST /admin/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
    socket.write(`${head}Content-Length: 100\r\n\r\n{`, () => socket.destroy());
  });
  await until('it was observed', () => gateway.exchanges.length === 1);
  assert.deepEqual([gateway.exchanges[0]?.status, gateway.exchanges[0]?.class], [499, 'client-disconnect']);
});

for (const [what, bytes] of [
  ['no HTTP at all', 'hello\r\n\r\n'],
  ['a bad header', 'GET /health HTTP/1.1\r\nHost: localhost\r\nbad header\r\n\r\n'],
] as const) {
  test(`${what} carries the envelope too`, async () => {
    await using gateway = await startGateway();
    const reply = await replyTo(gateway, bytes);
    assert.match(reply, /^HTTP\/1\.1 400 /);
    assert.equal(JSON.parse(reply.split('\r\n\r\n')[1] ?? '').error.kind, 'malformed');
  });
}

test('the list of models begins with auto, then those on disk, and an alias finds its model', async () => {
  await using gateway = await startGateway({ installed: ['multilingual-base', 'multilingual-large-v3'] });
  const { data } = modelsListSchema.parse(await json(await fetch(`${gateway.base}/v1/models`)));
  const ids = data.map((m) => m.id);
  assert.deepEqual(ids.slice(0, 3), ['auto', 'multilingual-base', 'multilingual-large-v3']);
  assert.equal(ids.length, 1 + CATALOGUE.length);
  const [auto, base] = data;
  assert(auto && base);
  assert.equal(auto.is_routing_alias, true);
  assert(!('languages' in auto));
  assert.equal(base.installed, true);
  assert.equal(base.loaded, false);
  assert.deepEqual(base.capabilities, ['asr']);
  assert(base.languages?.includes('en') && base.supports_streaming);
  for (const name of ['whisper-base', 'base', 'Systran/faster-whisper-base.en']) {
    const byAlias = await json(await fetch(`${gateway.base}/v1/models/${name}`));
    assert.deepEqual(byAlias, { ...base, id: name, alias_of: 'multilingual-base' });
  }
  const openAi = await json(await fetch(`${gateway.base}/v1/models/whisper-1`));
  assert.deepEqual(openAi, { ...auto, id: 'whisper-1', alias_of: 'auto', is_routing_alias: false });
  assert.equal((await fetch(`${gateway.base}/v1/models/nope`)).status, 404);
});

test('european does not stream, and every other recognition model does', async () => {
  await using gateway = await startGateway();
  const { data } = modelsListSchema.parse(await json(await fetch(`${gateway.base}/v1/models`)));
  const streaming = new Map(data.map((model) => [model.id, model.supports_streaming]));
  assert.equal(streaming.get('european'), false);
  assert.equal(streaming.get('cjk'), true);
  const multilingual = data.filter(({ id }) => id.startsWith('multilingual-'));
  assert.equal(multilingual.length, 9);
  for (const { id, supports_streaming } of multilingual) assert.equal(supports_streaming, true, id);
});

for (const [listed, streams, env] of [
  [['multilingual-base', 'cjk'], true, {}],
  [['cjk'], true, {}],
  [['european'], false, {}],
  [['multilingual-base', 'european'], false, {}],
  [['multilingual-base', 'european', 'cjk'], false, {}],
  [['multilingual-base', 'cjk'], true, { SVC_MODEL_DOWNLOAD: 'on', SVC_MODEL_ALLOW: 'base,cjk' }],
  [['multilingual-base', 'european'], false, { SVC_MODEL_DOWNLOAD: 'on', SVC_MODEL_ALLOW: 'base,european' }],
] as const) {
  const how = 'SVC_MODEL_ALLOW' in env ? 'to be had' : 'installed';
  test(`auto ${streams ? 'streams' : 'does not stream'} with ${listed.join(', ')} ${how}`, async () => {
    const installed = how === 'installed' ? [...listed] : ['multilingual-base'];
    await using gateway = await startGateway({
      installed: [...installed, 'voice-activity'],
      env: { SVC_MODEL_DOWNLOAD: 'off', ...env },
    });
    const { data } = await json(await fetch(`${gateway.base}/v1/models`));
    const [auto, ...others] = data;
    assert.deepEqual(others.map(({ id }: any) => id).sort(), [...listed].sort());
    assert.equal(auto.supports_streaming, streams);
  });
}
test('an operator may name a model by its alias, and slashes in it need no encoding', async () => {
  await using gateway = await startGateway({ env: { SVC_MODEL_ALIASES: 'mine=multilingual-base' } });
  const ask = async (path: string) => {
    const response = await fetch(`${gateway.base}/admin/api/models/${path}`, { method: 'POST' });
    return response.status === 200 ? json(response) : response.status;
  };
  for (const name of [
    ...['multilingual-base', 'whisper-base', 'openai/whisper-base', 'mine'],
    'Systran%2Ffaster-whisper-base',
  ]) {
    assert.equal((await ask(`${name}/load`)).id, 'multilingual-base', name);
    await until('it is in memory', () => gateway.loads.at(-1) === 'multilingual-base');
    const unloaded = await ask(`${name}/unload`);
    assert.deepEqual(unloaded, { id: 'multilingual-base', state: 'absent' });
    gateway.loads.length = 0;
  }
  for (const name of ['nope', 'voice-activity', 'constructor']) assert.equal(await ask(`${name}/load`), 404);
});

test('a name means the model that requests with it use, for an operator too', async () => {
  await using gateway = await startGateway({ installed: ['multilingual-base', 'voice-activity'] });
  const answer = await post(gateway, form(toneWav(0.5), { model: 'whisper-1' }));
  assert.equal(answer.headers.get('X-Voxgate-Model'), 'multilingual-base', 'small is not on disk');
  for (const verb of ['unload', 'load', 'unload', 'pull']) {
    const url = `${gateway.base}/admin/api/models/whisper-1/${verb}`;
    assert.equal((await json(await fetch(url, { method: 'POST' }))).id, 'multilingual-base', verb);
  }
  gateway.loads.length = 0;
  await gateway.app.preload('auto');
  assert(!gateway.loads.includes('multilingual-small'), gateway.loads.join());
});

test('where requests may not use what auto prefers, an operator does not load it for them', async () => {
  await using gateway = await startGateway({
    installed: ['multilingual-small', 'multilingual-tiny', 'voice-activity'],
    env: { SVC_MODEL_ALLOW: 'tiny' },
  });
  await gateway.app.preload('whisper-1');
  assert.deepEqual(gateway.loads, ['voice-activity', 'multilingual-tiny']);
  await gateway.app.preload('small');
  assert.equal(gateway.loads.at(-1), 'multilingual-small', 'by its name it may be used');
});

test('preload takes an alias', async () => {
  await using gateway = await startGateway();
  await gateway.app.preload('openai/whisper-base');
  assert.deepEqual(gateway.loads, ['voice-activity', 'multilingual-base']);
});

test('models that are neither on disk nor to be downloaded are not listed', async () => {
  await using gateway = await startGateway({ env: { SVC_MODEL_DOWNLOAD: 'off' } });
  const { data } = await json(await fetch(`${gateway.base}/v1/models`));
  assert.deepEqual(
    data.map((m: { id: string }) => m.id),
    ['auto', 'multilingual-base'],
  );
});

test('without the voice activity weights no model can serve, so none is listed when downloads are off', async () => {
  const ids = async (env: Record<string, string>) => {
    await using gateway = await startGateway({ env, installed: ['multilingual-base'] });
    const { data } = await json(await fetch(`${gateway.base}/v1/models`));
    assert.equal(
      (await fetch(`${gateway.base}/v1/models/multilingual-base`)).status,
      data.length ? 200 : 404,
    );
    return data.map((model: { id: string }) => model.id);
  };
  assert.deepEqual(await ids({ SVC_MODEL_DOWNLOAD: 'off' }), []);
  assert((await ids({ SVC_MODEL_DOWNLOAD: 'on' })).includes('multilingual-base'), 'they would be downloaded');
});

test('a model in use is listed as loaded, and leaves memory when idle', async () => {
  let finish = () => {};
  await using gateway = await startGateway({
    env: { SVC_MODEL_KEEP_ALIVE_SEC: '0.05' },
    transcribe: () =>
      new Promise((resolve) => {
        finish = () => resolve(heard(' Done.'));
      }),
  });
  const loaded = async () => (await json(await fetch(`${gateway.base}/v1/models/multilingual-base`))).loaded;
  assert.equal(await loaded(), false);
  const request = post(gateway, form(toneWav(1)));
  await until('it is running', () => gateway.running() === 1);
  assert.equal(await loaded(), true);
  finish();
  assert.equal((await request).status, 200);
  await until('it has left', async () => !(await loaded()));
});

test('shutting down does not wait for an upload', async () => {
  const gateway = await startGateway();
  const { port, hostname } = new URL(gateway.base);
  const socket = connect(Number(port), hostname);
  let reply = '';
  socket.on('data', (data) => {
    reply += data;
  });
  socket.on('error', () => undefined);
  const head =
    'POST /v1/audio/transcriptions HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n';
  const part = '--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n';
  socket.write(`${head}Content-Length: 10000000\r\n\r\n${part}${'x'.repeat(200_000)}`);
  await until('the upload is on disk', () => gateway.uploads().length === 1);
  const startedAt = Date.now();
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await gateway[Symbol.asyncDispose]();
  assert(Date.now() - startedAt < 4000);
  await closed;
  assert.match(reply, /^HTTP\/1\.1 503 /);
  assert.match(reply, /shutting_down/);
});

test('several gateways in one process do not see each other', async () => {
  await using one = await startGateway({ transcribe: async () => heard(' One.') });
  await using two = await startGateway({ transcribe: async () => heard(' Two.') });
  const texts = await Promise.all(
    [one, two].map(async (g) => (await json(await post(g, form(toneWav(1))))).text),
  );
  assert.deepEqual(texts, ['One.', 'Two.']);
});
