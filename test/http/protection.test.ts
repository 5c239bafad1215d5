/** These tests say who may ask: keys, pages of other sites, and names that are made to point here. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { hostname } from 'node:os';
import { test } from 'node:test';
import { startHostileUpstream } from '../faults/hostile-upstream.ts';
import { type Gateway, json, startGateway, until } from './harness.ts';

interface Ask {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

/** Works below fetch, which sets Host and Origin itself. */
function ask(gateway: Gateway, path: string, { method = 'GET', headers = {}, body }: Ask = {}) {
  return new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; code: string | undefined }>(
    (resolve, reject) => {
      const { port } = new URL(gateway.base);
      const req = request({ host: '127.0.0.1', port, path, method, headers, agent: false }, async (res) => {
        let text = '';
        for await (const chunk of res) text += chunk;
        const code = text.startsWith('{"error"') ? JSON.parse(text).error.code : undefined;
        resolve({ status: res.statusCode ?? 0, headers: res.headers, code });
      });
      req.on('error', reject);
      req.end(body);
    },
  );
}

const CHAT = '/v1/chat/completions';

test('without keys everything is open, and with keys /v1, /admin and /metrics want one', async () => {
  await using open = await startGateway();
  for (const path of ['/v1/models', '/metrics', '/admin/api/metrics'])
    assert.equal((await ask(open, path)).status, 200, path);
  await using closed = await startGateway({
    env: { SVC_API_KEY: 'first-key, second-key' },
    budgets: { access: { wrongKeys: 100 } },
  });
  for (const path of [
    '/health',
    '/ready',
    '/docs',
    '/openapi.json',
    '/playground',
    '/admin',
    '/assets/voxgate.css',
  ])
    assert.equal((await ask(closed, path)).status, 200, path);
  for (const [method, path] of [
    ['GET', '/v1/models'],
    ['GET', '/metrics'],
    ['GET', '/admin/api/metrics'],
    ['GET', '/admin/fragments/slot'],
    ['POST', '/admin/api/reset-asr-state'],
    ['POST', '/v1/audio/transcriptions'],
    ['POST', '/v1/audio/speech'],
    ['POST', CHAT],
    ['GET', '/v1/nowhere'],
  ] as const) {
    for (const Authorization of [
      undefined,
      'Bearer',
      'Bearer ',
      'Bearer first',
      'Basic first-key',
      'first-key',
    ]) {
      const seen = await ask(closed, path, { method, headers: Authorization ? { Authorization } : {} });
      assert.deepEqual(
        [seen.status, seen.code],
        [401, 'invalid_api_key'],
        `${method} ${path} ${Authorization}`,
      );
      assert.match(String(seen.headers['www-authenticate']), /^Bearer/);
    }
  }
  for (const Authorization of ['Bearer first-key', 'bearer second-key'])
    assert.equal((await ask(closed, '/v1/models', { headers: { Authorization } })).status, 200);
});

test('the endpoints that the description calls open are open, and all others want a key', async () => {
  await using closed = await startGateway({ env: { SVC_API_KEY: 'k' } });
  const { paths } = await json(await fetch(`${closed.base}/openapi.json`));
  let wanted = 0;
  for (const [template, methods] of Object.entries<Record<string, { security?: [] }>>(paths)) {
    const path = template.replace(/\{\w+\}/g, 'x');
    for (const [method, { security }] of Object.entries(methods)) {
      // The session's own 401 concerns the key in its body.
      if (template === '/admin/session') continue;
      const { status } = await ask(closed, path, { method: method.toUpperCase() });
      assert.equal(status === 401, security === undefined, `${method} ${path}`);
      if (status === 401) wanted += 1;
    }
  }
  assert(wanted > 25);
});

test('the gateway’s key and session are not passed on, but any other Authorization and cookie is', async () => {
  await using upstream = await startHostileUpstream();
  await using closed = await startGateway({ env: { SVC_API_KEY: 'k1', SVC_LLM_BACKEND_URL: upstream.url } });
  const cookie = await signIn(closed, 'k1');
  const headers = { Authorization: 'Bearer k1', 'X-Api-Key': 'k1', 'Api-Key': 'theirs' };
  for (const [Cookie, passed] of [
    [cookie, undefined],
    [`theme=dark; ${cookie}; a=b`, 'theme=dark; a=b'],
    ['theme=dark;a=b', 'theme=dark;a=b'],
  ] as const) {
    await ask(closed, CHAT, { method: 'POST', headers: { ...headers, Cookie }, body: '{}' });
    const head = upstream.heads.pop() ?? '';
    assert.doesNotMatch(head, /k1|voxgate_session|authorization|x-api-key/i);
    assert.match(head, /^api-key: theirs\r$/im);
    assert.equal(/^cookie: (.*)\r$/im.exec(head)?.[1], passed);
  }
  await using open = await startGateway({ env: { SVC_LLM_BACKEND_URL: upstream.url } });
  await ask(open, CHAT, { method: 'POST', headers: { Authorization: 'Bearer theirs' }, body: '{}' });
  assert.match(upstream.heads[0] ?? '', /authorization: Bearer theirs/i);
  await ask(open, CHAT, { method: 'POST', headers: { Cookie: cookie }, body: '{}' });
  assert.doesNotMatch(upstream.heads[1] ?? '', /cookie/i, 'nor where no key is set any more');
});

test('no upstream gets the key of the gateway, whichever header a client puts it in as well', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({ env: { SVC_API_KEY: 'k1', SVC_LLM_BACKEND_URL: upstream.url } });
  for (const name of ['Api-Key', 'X-Api-Key']) {
    await ask(gateway, CHAT, {
      method: 'POST',
      headers: { Authorization: 'Bearer k1', [name]: 'k1' },
      body: '{}',
    });
    assert.doesNotMatch(upstream.heads.pop() ?? 'k1', /k1/, name);
  }
});

/** The cookie of a new session, as a browser sends it back. */
async function signIn(gateway: Gateway, key: string): Promise<string> {
  const { headers } = await ask(gateway, '/admin/session', {
    ...{ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ key }) },
  });
  return String(headers['set-cookie']).split(';', 1)[0] ?? '';
}

test('a session opens nothing but the dashboard, is different each time, and ends with sign-out', async () => {
  await using gateway = await startGateway({ env: { SVC_API_KEY: 'k1' } });
  const cookies = [await signIn(gateway, 'k1'), await signIn(gateway, 'k1')] as const;
  const status = async (Cookie: string, path = '/admin/api/metrics') =>
    (await ask(gateway, path, { headers: { Cookie } })).status;
  assert.notEqual(cookies[0], cookies[1]);
  assert.deepEqual([await status(cookies[0]), await status(cookies[1])], [200, 200]);
  for (const path of ['/v1/models', '/metrics', '/v1/audio/voices'])
    assert.equal(await status(cookies[0], path), 401, path);
  const out = await ask(gateway, '/admin/session', { method: 'DELETE', headers: { Cookie: cookies[0] } });
  assert.equal(out.status, 204);
  assert.match(
    String(out.headers['set-cookie']),
    /^voxgate_session=;.*Path=\/admin;.*Expires=Thu, 01 Jan 1970/,
  );
  assert.deepEqual([await status(cookies[0]), await status(cookies[1])], [401, 200]);
  for (const forged of ['voxgate_session=', 'voxgate_session=x', 'voxgate_session=__proto__'])
    assert.equal(await status(forged), 401);
});

test('the gateway keeps a bounded number of sessions, and each for a bounded time', async () => {
  const env = { SVC_API_KEY: 'k1' };
  await using few = await startGateway({ env, budgets: { access: { sessions: 2 } } });
  const status = async (gateway: Gateway, Cookie: string) =>
    (await ask(gateway, '/admin/api/metrics', { headers: { Cookie } })).status;
  const cookies = [];
  for (let count = 0; count < 3; count++) cookies.push(await signIn(few, 'k1'));
  const statuses = [];
  for (const cookie of cookies) statuses.push(await status(few, cookie));
  assert.deepEqual(statuses, [401, 200, 200], 'the oldest has ended');
  await using brief = await startGateway({ env, budgets: { access: { lifetimeMs: 300 } } });
  const cookie = await signIn(brief, 'k1');
  assert.equal(await status(brief, cookie), 200);
  await until('it has ended', async () => (await status(brief, cookie)) === 401);
});

test('after 10 different wrong keys from an address the next ones wait, and a right key never does', async () => {
  await using gateway = await startGateway({
    env: { SVC_API_KEY: 'k1', SVC_TRUST_PROXY: 'loopback' },
    budgets: { access: { wrongKeysMs: 4000 } },
  });
  const from = (client: string, key: string, path = '/v1/models') =>
    ask(gateway, path, { headers: { Authorization: `Bearer ${key}`, 'X-Forwarded-For': client } });
  const guesser = '2001:db8:0:1::1';
  const keys = Array.from({ length: 30 }, (_, i) => (i < 9 ? `wrong${i}` : 'an old key'));
  for (const { status } of await Promise.all(keys.map((key) => from(guesser, key))))
    assert.equal(status, 401);
  const seen = await from('2001:db8:0:1:ffff::2', 'another');
  assert.deepEqual([seen.status, seen.code], [429, 'too_many_keys']);
  assert.match(String(seen.headers['retry-after']), /^[1-4]$/);
  assert.equal((await from(guesser, 'an old key')).status, 401, 'it is known already');
  assert.equal((await from(guesser, 'k1')).status, 200, 'a neighbor with a right key is served');
  const signIn = (key: string) =>
    ask(gateway, '/admin/session', {
      method: 'POST',
      body: JSON.stringify({ key }),
      headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': guesser },
    });
  assert.equal((await signIn('one more')).status, 429, 'the dashboard is no way around it');
  assert.equal((await signIn('k1')).status, 204);
  assert.equal((await from('203.0.113.1', 'another')).status, 401);
  await until('the time is over', async () => (await from(guesser, 'another')).status === 401);
});

test('the paths of Bazarr take the key as the password of HTTP Basic, guessed as rarely, and no other path does', async () => {
  await using gateway = await startGateway({ env: { SVC_API_KEY: 'k:1' } });
  const basic = async (path: string, pair: string) => {
    const Authorization = `Basic ${Buffer.from(pair).toString('base64')}`;
    const seen = await ask(gateway, path, { method: 'POST', headers: { Authorization } });
    return [seen.status, seen.code, seen.headers['www-authenticate']];
  };
  for (const path of ['/asr', '/detect-language'])
    assert.equal((await basic(path, 'anyone:k:1'))[0], 400, 'the key is right, and the body is missing');
  const refused = [401, 'invalid_api_key', 'Bearer realm="voxgate"'];
  for (const path of ['/v1/audio/transcriptions', '/admin/api/reset-asr-state', '/v1/asr'])
    assert.deepEqual(await basic(path, 'anyone:k:1'), refused, path);
  for (const pair of ['', 'k:1', 'anyone:', 'anyone'])
    assert.deepEqual(await basic('/asr', pair), refused, pair);
  for (let count = 1; count < 10; count += 1)
    assert.deepEqual(await basic('/asr', `a:wrong${count}`), refused);
  assert.deepEqual((await basic('/asr', 'a:wrong10')).slice(0, 2), [429, 'too_many_keys']);
});

test('requests without a key do not count as wrong keys', async () => {
  await using gateway = await startGateway({ env: { SVC_API_KEY: 'k1' } });
  for (let count = 0; count < 30; count++) assert.equal((await ask(gateway, '/v1/models')).status, 401);
  const headers = { Authorization: 'Bearer k1' };
  assert.equal((await ask(gateway, '/v1/models', { headers })).status, 200);
});

test('the dashboard’s session is a cookie for a key, until it is taken back or the keys change', async () => {
  const OWN_KEY = 'too-long-to-be-in-a-token-by-chance';
  await using gateway = await startGateway({ env: { SVC_API_KEY: OWN_KEY } });
  const session = (key: unknown) =>
    ask(gateway, '/admin/session', {
      ...{ method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ key }) },
    });
  for (const wrong of ['k2', '', null, { $gt: '' }]) assert.equal((await session(wrong)).status, 401);
  const given = await session(OWN_KEY);
  assert.equal(given.status, 204);
  const [cookie = ''] = [given.headers['set-cookie'] ?? []].flat();
  assert.match(cookie, /HttpOnly/);
  assert.match(cookie, /SameSite=Strict/);
  assert.match(cookie, /Path=\/admin;/);
  assert.match(cookie, /Max-Age=86400;/);
  assert(!cookie.includes(OWN_KEY), 'the key itself is not in it');
  const Cookie = `theme=dark; ${cookie.split(';')[0]}`;
  assert.equal((await ask(gateway, '/admin/api/metrics', { headers: { Cookie } })).status, 200);
  await using changed = await startGateway({ env: { SVC_API_KEY: 'k3' } });
  assert.equal((await ask(changed, '/admin/api/metrics', { headers: { Cookie } })).status, 401);
});

test('behind a trusted proxy the cookie is for TLS only, and the public name is the gateway’s own', async () => {
  const ofProxy = { 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'speech.example' };
  for (const trusted of [true, false]) {
    await using gateway = await startGateway({
      env: { SVC_API_KEY: 'k1', SVC_TRUST_PROXY: trusted ? 'loopback' : '' },
    });
    const signIn = (headers: Record<string, string>) =>
      ask(gateway, '/admin/session', {
        ...{ method: 'POST', body: '{"key":"k1"}' },
        headers: { 'Content-Type': 'application/json', ...headers },
      });
    const { status, headers } = await signIn(ofProxy);
    assert.equal(status, 204);
    assert.equal(/; Secure/.test(String(headers['set-cookie'])), trusted);
    assert.doesNotMatch(String((await signIn({})).headers['set-cookie']), /Secure/);
    const page = await signIn({ ...ofProxy, Origin: 'https://speech.example' });
    assert.equal(page.status, trusted ? 204 : 403);
    assert.equal((await signIn({ ...ofProxy, Origin: 'https://evil.example' })).status, 403);
    // A page whose name is made to point here can send any header, so Host alone tells it from the proxy.
    const rebound = await signIn({ ...ofProxy, Host: 'evil.example', Origin: 'http://evil.example' });
    assert.equal(rebound.status, 403);
  }
});

test('the usual port of a scheme says nothing, as some proxies write it into Host', async () => {
  await using gateway = await startGateway();
  const status = async (Host: string, Origin: string) =>
    (await ask(gateway, '/admin/session', { method: 'POST', headers: { Host, Origin } })).status;
  assert.notEqual(await status('localhost:80', 'http://localhost'), 403);
  assert.notEqual(await status('LOCALHOST:443', 'https://localhost'), 403);
  for (const [host, origin] of [
    ['localhost:80', 'https://localhost'],
    ['localhost:443', 'http://localhost'],
    ['localhost:8080', 'http://localhost'],
    ['localhost', 'chrome-extension://localhost'],
  ] as const)
    assert.equal(await status(host, origin), 403, `${host} ${origin}`);
});

test('a page of another site may change nothing, unless it is named', async () => {
  await using gateway = await startGateway({ env: { SVC_CORS_ORIGINS: 'https://friend.example' } });
  const { host } = new URL(gateway.base);
  for (const path of [
    CHAT,
    '/v1/audio/speech',
    '/v1/audio/transcriptions',
    '/admin/api/reset-asr-state',
    '/admin/session',
  ]) {
    for (const Origin of [
      'https://evil.example',
      'null',
      `http://${host}.evil.example`,
      'http://127.0.0.1:1',
    ]) {
      const seen = await ask(gateway, path, { method: 'POST', headers: { Origin } });
      assert.deepEqual([seen.status, seen.code], [403, 'cross_site'], `${path} ${Origin}`);
      assert.equal(seen.headers['access-control-allow-origin'], undefined);
    }
    const named = path.startsWith('/admin') ? [] : ['https://friend.example'];
    for (const Origin of [`http://${host}`, `https://${host}`, ...named])
      assert.notEqual(
        (await ask(gateway, path, { method: 'POST', headers: { Origin } })).status,
        403,
        Origin,
      );
  }
  assert.equal((await ask(gateway, '/health', { headers: { Origin: 'https://evil.example' } })).status, 200);
});

test('a page of another site may not embed an answer, nor take the slot by reading', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({ env: { SVC_TTS_UPSTREAM_URL: upstream.url } });
  const status = async (path: string, headers: Record<string, string>) =>
    (await ask(gateway, path, { headers })).status;
  for (const site of ['cross-site', 'same-site'])
    for (const dest of ['image', 'script', 'iframe', 'empty', 'document']) {
      const headers = { 'Sec-Fetch-Site': site, 'Sec-Fetch-Dest': dest };
      assert.equal(await status('/v1/audio/voices', headers), 403, `${site} ${dest}`);
      for (const path of ['/metrics', '/v1/models', '/admin', '/admin/api/metrics', '/openapi.json'])
        assert.equal(await status(path, headers), dest === 'document' ? 200 : 403, `${path} ${site} ${dest}`);
      assert.equal(await status('/health', headers), 200);
    }
  assert.equal(await status('/v1/audio/voices', { Origin: 'https://evil.example' }), 403);
  assert.doesNotMatch(upstream.heads.join(''), /voices/);
  for (const site of ['same-origin', 'none'])
    assert.equal(await status('/v1/audio/voices', { 'Sec-Fetch-Site': site }), 200);
  await using friendly = await startGateway({ env: { SVC_CORS_ORIGINS: 'https://friend.example' } });
  assert.equal(
    (await ask(friendly, '/metrics', { headers: { 'Sec-Fetch-Site': 'cross-site' } })).status,
    200,
  );
});

test('a name that was made to point here is refused on loopback', async () => {
  await using gateway = await startGateway({ env: { SVC_CORS_ORIGINS: 'https://speech.example' } });
  const { port } = new URL(gateway.base);
  for (const Host of [
    'evil.example',
    `evil.example:${port}`,
    '127.0.0.1.evil.example',
    '10.0.0.1',
    '[::2]',
  ]) {
    for (const [method, path] of [
      ['POST', CHAT],
      ['GET', '/admin/api/metrics'],
      ['GET', '/admin/captures/x'],
      ['GET', '/ADMIN/api/metrics'],
      ['GET', '/admin'],
      ['GET', '/v1/models'],
      ['GET', '/v1/audio/voices'],
      ['OPTIONS', '/v1/audio/voices'],
      ['GET', '/metrics'],
      ['GET', '/docs'],
      ['GET', '/docs/swagger-ui.css'],
      ['GET', '/openapi.json'],
      ['GET', '/playground'],
      ['GET', '/assets/voxgate.css'],
      ['GET', '/nowhere'],
      ['GET', '/health/x'],
      ['GET', '/HEALTH'],
    ] as const) {
      const seen = await ask(gateway, path, { method, headers: { Host } });
      assert.deepEqual([seen.status, seen.code], [403, 'unknown_host'], `${Host} ${path}`);
    }
    assert.equal((await ask(gateway, '/health', { headers: { Host } })).status, 200, Host);
  }
  for (const Host of [
    'localhost',
    `LOCALHOST:${port}`,
    '127.0.0.1',
    '127.8.8.8:80',
    '[::1]:1',
    'a.localhost',
    'speech.example',
  ])
    assert.notEqual((await ask(gateway, CHAT, { method: 'POST', headers: { Host } })).status, 403, Host);
});

test('on other addresses than loopback a name that was made to point here is refused while no key is set', async () => {
  const publicly = { SVC_HOST: '0.0.0.0', SVC_ALLOWED_HOSTS: 'Speech.example, api.example' };
  await using open = await startGateway({ env: publicly });
  for (const Host of [
    'evil.example',
    'evil.example:8000',
    '127.0.0.1.evil.example',
    'evil.local.example',
    'x.api.example',
  ])
    for (const path of ['/v1/models', '/admin/api/metrics', '/docs', '/nowhere']) {
      const seen = await ask(open, path, { headers: { Host } });
      assert.deepEqual([seen.status, seen.code], [403, 'unknown_host'], `${Host} ${path}`);
    }
  for (const Host of [
    ...[
      'speech.example',
      'API.example:8000',
      'localhost:8000',
      '127.0.0.1',
      '192.168.1.5:8000',
      '[fe80::1]:8000',
    ],
    ...[hostname(), 'voxgate:8000', 'nas.local', 'voxgate.internal', 'nas.home.arpa'],
  ])
    assert.equal((await ask(open, '/v1/models', { headers: { Host } })).status, 200, Host);
  const headers = { Host: 'evil.example', Authorization: 'Bearer k1' };
  await using closed = await startGateway({ env: { SVC_HOST: '0.0.0.0', SVC_API_KEY: 'k1' } });
  assert.equal((await ask(closed, '/v1/models', { headers })).status, 200, 'with keys any name will do');
  await using anyName = await startGateway({ env: { SVC_HOST: '0.0.0.0', SVC_ALLOWED_HOSTS: '*' } });
  assert.equal((await ask(anyName, '/v1/models', { headers })).status, 200);
});

test('on loopback SVC_ALLOWED_HOSTS adds names, with keys too', async () => {
  await using gateway = await startGateway({
    env: { SVC_ALLOWED_HOSTS: 'speech.example', SVC_API_KEY: 'k1' },
  });
  for (const [Host, status] of [
    ['speech.example', 200],
    ['evil.example', 403],
    ['192.168.1.5', 403],
  ] as const) {
    const headers = { Host, Authorization: 'Bearer k1' };
    assert.equal((await ask(gateway, '/v1/models', { headers })).status, status, Host);
  }
});

test('a path in another case is another path, and nothing is there', async () => {
  await using upstream = await startHostileUpstream();
  const env = { SVC_TTS_UPSTREAM_URL: upstream.url, SVC_LLM_BACKEND_URL: upstream.url, SVC_API_KEY: 'k1' };
  await using gateway = await startGateway({ env });
  const headers = { Authorization: 'Bearer k1' };
  for (const [method, path] of [
    ['GET', '/health'],
    ['GET', '/metrics'],
    ['GET', '/openapi.json'],
    ['GET', '/docs'],
    ['GET', '/docs/swagger-ui.css'],
    ['GET', '/playground'],
    ['GET', '/assets/voxgate.css'],
    ['GET', '/v1/models'],
    ['GET', '/admin'],
    ['GET', '/admin/api/metrics'],
    ['POST', '/admin/api/reset-asr-state'],
    ['DELETE', '/admin/session'],
    ['GET', '/v1/audio/voices'],
    ['POST', CHAT],
  ] as const) {
    const own = await ask(gateway, path, { method, headers });
    assert([200, 204].includes(own.status), `${method} ${path}: ${own.status}`);
    const asked = upstream.heads.length;
    const [first = '', ...others] = path.slice(1).split('/');
    for (const other of [first.toUpperCase(), first[0]?.toUpperCase() + first.slice(1)]) {
      const { status } = await ask(gateway, `/${[other, ...others].join('/')}`, { method, headers });
      assert.equal(status, 404, `${method} ${other}`);
    }
    assert.equal(upstream.heads.length, asked);
  }
});

test('sites that are named may read answers and ask beforehand, and others may not', async () => {
  await using gateway = await startGateway({
    env: { SVC_CORS_ORIGINS: 'https://a.example, https://b.example/' },
  });
  for (const Origin of ['https://a.example', 'https://b.example']) {
    const preflight = await ask(gateway, '/v1/audio/transcriptions', {
      ...{
        method: 'OPTIONS',
        headers: {
          Origin,
          'Access-Control-Request-Method': 'POST',
          'Access-Control-Request-Headers': 'authorization',
        },
      },
    });
    assert.equal(preflight.status, 204);
    assert.equal(preflight.headers['access-control-allow-origin'], Origin);
    assert.match(String(preflight.headers['access-control-allow-headers']), /authorization/);
    const seen = await ask(gateway, '/v1/models', { headers: { Origin } });
    assert.equal(seen.headers['access-control-allow-origin'], Origin);
    assert.match(String(seen.headers['access-control-expose-headers']), /X-Request-ID/);
  }
  const other = await ask(gateway, '/v1/models', { headers: { Origin: 'https://c.example' } });
  assert.equal(other.headers['access-control-allow-origin'], undefined);
  await using local = await startGateway({ env: { SVC_CORS_ORIGINS: 'http://app.localhost:*' } });
  for (const [Origin, isAllowed] of [
    ['http://app.localhost:5173', true],
    ['http://app.localhost', true],
    ['https://app.localhost:5173', false],
    ['http://app.localhost:5173.evil.example', false],
    ['http://appxlocalhost:1', false],
  ] as const) {
    const { headers } = await ask(local, '/v1/models', { headers: { Origin } });
    assert.equal(headers['access-control-allow-origin'], isAllowed ? Origin : undefined, Origin);
  }
  await using everyone = await startGateway({ env: { SVC_CORS_ORIGINS: '*' } });
  const seen = await ask(everyone, CHAT, { method: 'POST', headers: { Origin: 'https://any.example' } });
  assert.equal(seen.headers['access-control-allow-origin'], '*');
  assert.notEqual(seen.status, 403);
});

test('the admin room is shared with no site, not even with all of them', async () => {
  for (const SVC_CORS_ORIGINS of ['*', 'https://friend.example']) {
    await using gateway = await startGateway({ env: { SVC_CORS_ORIGINS } });
    const { host } = new URL(gateway.base);
    const Origin = 'https://friend.example';
    for (const path of ['/admin', '/admin/api/metrics', '/admin/session', '/ADMIN/api/metrics']) {
      const seen = await ask(gateway, path, { headers: { Origin } });
      assert.equal(seen.headers['access-control-allow-origin'], undefined, path);
      const headers = { Origin, 'Access-Control-Request-Method': 'POST' };
      const preflight = await ask(gateway, path, { method: 'OPTIONS', headers });
      assert.equal(preflight.headers['access-control-allow-origin'], undefined, path);
    }
    for (const path of ['/admin/api/reset-asr-state', '/admin/session', '/Admin/api/reset-asr-state']) {
      const seen = await ask(gateway, path, { method: 'POST', headers: { Origin } });
      assert.deepEqual([seen.status, seen.code], [403, 'cross_site'], path);
    }
    const own = { method: 'POST', headers: { Origin: `http://${host}` } };
    assert.equal((await ask(gateway, '/admin/api/reset-asr-state', own)).status, 200);
  }
});

test('an answer that depends on the asking site says so to caches', async () => {
  await using gateway = await startGateway({ env: { SVC_CORS_ORIGINS: 'https://friend.example' } });
  for (const headers of [
    {},
    { Origin: 'https://evil.example' },
    { Origin: 'https://friend.example' },
  ] as const)
    assert.match(String((await ask(gateway, '/v1/models', { headers })).headers.vary), /Origin/);
});
