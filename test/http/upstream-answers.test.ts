/**
 * What the gateway changes in the answers of upstreams: nothing in one of success but the headers that would give it what
 * belongs to the gateway's origin, and every error has the envelope.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { errorEnvelopeSchema } from '../../src/http/openapi/openapi.ts';
import { type Behavior, head, startHostileUpstream, wholeAnswer } from '../faults/hostile-upstream.ts';
import { type Gateway, json, startGateway } from './harness.ts';
import { rawClient } from './raw-client.ts';

const CALLS = [
  ['tts', '/v1/audio/voices/x/page'],
  ['llm', '/v1/chat/completions'],
] as const;
const upstreams = (url: string) => ({ SVC_TTS_UPSTREAM_URL: url, SVC_LLM_BACKEND_URL: url });
const call = (gateway: Gateway, path: string, init: RequestInit = {}) =>
  fetch(`${gateway.base}${path}`, { method: 'POST', body: '{}', redirect: 'manual', ...init });

test('an answer of an upstream can be no page of the gateway, whatever its headers say', async () => {
  await using upstream = await startHostileUpstream();
  const taken = {
    ...{
      'Set-Cookie': 'voxgate_session=theirs; Path=/admin',
      'Clear-Site-Data': '"*"',
      Refresh: '0; url=/admin',
    },
    ...{ 'Service-Worker-Allowed': '/', 'Alt-Svc': 'h2="evil.example:443"', NEL: '{}', 'Report-To': '{}' },
    ...{ 'Strict-Transport-Security': 'max-age=1', 'Reporting-Endpoints': 'a="https://e"', SourceMap: '/a' },
    ...{ 'Content-Security-Policy-Report-Only': "default-src 'self'", 'Set-Login': 'logged-in' },
    ...{ 'WWW-Authenticate': 'Basic realm="voxgate"', 'Access-Control-Allow-Origin': '*' },
  };
  const weaker = {
    'Content-Security-Policy': 'sandbox allow-scripts allow-same-origin',
    'X-Content-Type-Options': 'sniff',
    'Cross-Origin-Resource-Policy': 'cross-origin',
    'Content-Disposition': 'inline; filename="a.html"',
  };
  await using gateway = await startGateway({ env: upstreams(upstream.url) });
  await using shared = await startGateway({
    env: { ...upstreams(upstream.url), SVC_CORS_ORIGINS: 'https://friend.example' },
  });
  for (const [, path] of CALLS)
    for (const status of ['200 OK', '302 Found', '401 Unauthorized', '500 Oops']) {
      upstream.behave(
        wholeAnswer('<script>1</script>', status, { ...taken, ...weaker, 'Content-Type': 'text/html' }),
      );
      const { headers } = await call(gateway, path);
      assert.equal(headers.get('content-security-policy'), 'sandbox', status);
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      assert.equal(headers.get('cross-origin-resource-policy'), 'same-origin');
      assert.deepEqual(
        Object.keys(taken).filter((name) => headers.has(name)),
        [],
        status,
      );
      const asked = await call(shared, path);
      assert.equal(
        asked.headers.get('cross-origin-resource-policy'),
        'cross-origin',
        'as the named sites embed it',
      );
    }
});

const quoted = /^The (speech upstream|chat daemon) answered 422: /;
const ERRORS: [
  name: string,
  body: string | Buffer,
  headers: Record<string, string>,
  check: (body: any) => void,
][] = [
  [
    'a message in error.message stays',
    '{"error":{"message":"m","type":"t","param":"voice","code":40},"x":[1]}',
    {},
    ({ error, x }) =>
      assert.deepEqual([error.message, error.type, error.param, error.code, x], ['m', 't', 'voice', 40, [1]]),
  ],
  [
    'a string becomes the message',
    '{"error":"no model"}',
    {},
    ({ error }) => assert.equal(error.message, 'no model'),
  ],
  [
    'detail becomes the message, and stays',
    '{"detail":"no voice"}',
    {},
    ({ error, detail }) => assert.deepEqual([error.message, detail], ['no voice', 'no voice']),
  ],
  [
    'the first of a list of details becomes the message',
    '{"detail":[{"loc":["body","input"],"msg":"Field required"}]}',
    {},
    ({ error, detail }) => assert.deepEqual([error.message, detail.length], ['Field required', 1]),
  ],
  [
    'an object without words is quoted',
    '{"ok":false}',
    {},
    ({ error, ok }) => assert.deepEqual([error.message.replace(quoted, ''), ok], ['{"ok":false}', false]),
  ],
  [
    'members of other types become text',
    '{"error":{"kind":7,"message":{"a":1},"type":null,"provider":[]}}',
    {},
    ({ error }) => assert.match(error.message, quoted),
  ],
  ['a list is quoted', '["a"]', {}, ({ error }) => assert.equal(error.message.replace(quoted, ''), '["a"]')],
  [
    'of a long text the first 500 characters are quoted',
    'x'.repeat(2000),
    {},
    ({ error }) => assert.equal(error.message.replace(quoted, ''), `${'x'.repeat(500)}…`),
  ],
  [
    'what controls a terminal is left out',
    '\u001b[2Ja\r\nb',
    {},
    ({ error }) => assert.equal(error.message.replace(quoted, ''), '[2Ja b'),
  ],
  [
    'nothing is said to be nothing',
    '',
    {},
    ({ error }) => assert.match(error.message, /422: without a body$/),
  ],
  [
    'thousands of levels are quoted',
    '{"a":'.repeat(40_000) + 1 + '}'.repeat(40_000),
    {},
    ({ error }) => assert.match(error.message, quoted),
  ],
  ...(
    [
      ['gzip', gzipSync],
      ['br', brotliCompressSync],
      ['deflate', deflateSync],
    ] as const
  ).map(([coding, pack]): (typeof ERRORS)[number] => [
    `${coding} is unpacked`,
    pack(Buffer.from('{"error":"packed"}')),
    { 'Content-Encoding': coding },
    ({ error }) => assert.equal(error.message, 'packed'),
  ]),
  [
    'a bomb is unpacked as far as it may be read',
    gzipSync(Buffer.alloc(100_000_000, 'x')),
    { 'Content-Encoding': 'gzip' },
    ({ error }) => assert.match(error.message, /x{500}…$/),
  ],
  [
    'a coding that nobody knows hides the body',
    'secret',
    { 'Content-Encoding': 'zz' },
    ({ error }) => assert.match(error.message, /without a body$/),
  ],
  [
    'a broken coding hides the body',
    'no gzip at all',
    { 'Content-Encoding': 'gzip' },
    ({ error }) => assert.match(error.message, /without a body$/),
  ],
];

test('every error of an upstream has the envelope and keeps its status and its own members', async (t) => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({ env: upstreams(upstream.url) });
  for (const [name, body, headers, check] of ERRORS)
    for (const [provider, path] of CALLS)
      await t.test(`${provider}: ${name}`, async () => {
        const bytes = Buffer.from(body);
        upstream.behave((socket) => {
          const own = { 'Content-Length': String(bytes.length), ETag: '"a"', 'X-Own': '1', ...headers };
          socket.write(head('422 Unprocessable Content', own));
          socket.end(bytes);
        });
        const response = await call(gateway, path);
        assert.equal(response.status, 422);
        for (const gone of ['content-encoding', 'etag']) assert.equal(response.headers.get(gone), null, gone);
        assert.equal(response.headers.get('x-own'), '1');
        assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
        const answer = await json(response);
        const { error } = errorEnvelopeSchema.parse(answer);
        assert.deepEqual([error.kind, error.provider], ['malformed', provider]);
        check(answer);
      });
});

test('the kind of an upstream’s error follows its status', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({ env: upstreams(upstream.url) });
  const kinds = {
    ...{ 400: 'malformed', 401: 'unauthorized', 403: 'forbidden', 404: 'not_found', 405: 'malformed' },
    ...{ 409: 'malformed', 413: 'too_large', 429: 'rate_limited', 500: 'upstream', 501: 'upstream' },
    ...{ 502: 'upstream', 503: 'network', 504: 'upstream' },
  };
  for (const [status, kind] of Object.entries(kinds))
    for (const body of ['', '{"error":{"message":"m"}}', 'text']) {
      upstream.behave(wholeAnswer(body, `${status} X`));
      const response = await call(gateway, '/v1/chat/completions');
      const { error } = errorEnvelopeSchema.parse(await json(response));
      assert.deepEqual([response.status, error.kind], [Number(status), kind]);
      assert.equal(
        error.request_id,
        Number(status) >= 500 ? response.headers.get('x-request-id') : undefined,
      );
    }
});

test('when to come back is told in the header with every status but 503, and there in the envelope', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({ env: upstreams(upstream.url) });
  const inAMinute = new Date(Date.now() + 60_000).toUTCString();
  for (const [status, sent, inHeader, inEnvelope] of [
    [429, '7', '7', undefined],
    [503, '7', null, 7],
    [503, inAMinute, null, 60],
    [503, 'soon', null, undefined],
    [503, '-3', null, undefined],
  ] as const) {
    upstream.behave(wholeAnswer('{"detail":"later"}', `${status} X`, { 'Retry-After': sent }));
    const response = await call(gateway, '/v1/audio/speech');
    const { error } = await json(response);
    assert.equal(response.headers.get('retry-after'), inHeader);
    if (inEnvelope === 60) assert(error.retry_after_sec > 50 && error.retry_after_sec <= 61);
    else assert.equal(error.retry_after_sec, inEnvelope);
  }
});

test('HEAD gets the status of the upstream’s error and no body', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({ env: upstreams(upstream.url) });
  upstream.behave((socket) => socket.end(head('404 Not Found', { 'Content-Length': '500' })));
  const response = await call(gateway, '/v1/audio/voices', { method: 'HEAD', body: null });
  assert.deepEqual([response.status, await response.text()], [404, '']);
});

test('a reference to the upstream becomes one to the gateway, and others keep their meaning', async () => {
  await using upstream = await startHostileUpstream();
  const { host } = new URL(upstream.url);
  await using gateway = await startGateway({ env: upstreams(`${upstream.url}/team`) });
  for (const [sent, passed] of [
    [`http://${host}/team/v1/audio/voices/?a=1#b`, '/v1/audio/voices/?a=1#b'],
    ['/team/v1/audio/voices/', '/v1/audio/voices/'],
    [`//${host}/team/v1/audio/voices/`, '/v1/audio/voices/'],
    ['page/', '/v1/audio/voices/x/page/'],
    [`http://${host}/team/v1/audio/gr\u00fc\u00dfe`, '/v1/audio/gr%C3%BC%C3%9Fe'],
    ['https://elsewhere.example/x', 'https://elsewhere.example/x'],
    ['//elsewhere.example/v1/audio/x', '//elsewhere.example/v1/audio/x'],
    ['/admin', `http://${host}/admin`],
    ['/team/admin', `http://${host}/team/admin`],
    ['/team/v1/audio/transcriptions', `http://${host}/team/v1/audio/transcriptions`],
    ['../../../../../admin/api/reset-asr-state', `http://${host}/admin/api/reset-asr-state`],
    ['http://[', 'http://['],
  ] as const)
    for (const name of ['Location', 'Content-Location']) {
      upstream.behave((socket) =>
        socket.end(Buffer.from(`${head('307 Elsewhere', { 'Content-Length': '0', [name]: sent })}`)),
      );
      const response = await call(gateway, '/v1/audio/voices/x/page');

      assert.equal(response.headers.get(name), passed, sent);
    }
});

test('behind a proxy with a path, a reference to the upstream leads below that path', async () => {
  await using upstream = await startHostileUpstream();
  const env = { ...upstreams(upstream.url), SVC_TRUST_PROXY: '1' };
  await using gateway = await startGateway({ env });
  upstream.behave((socket) =>
    socket.end(head('307 Elsewhere', { 'Content-Length': '0', Location: '/v1/audio/voices/' })),
  );
  const headers = { 'X-Forwarded-Prefix': '/voice' };
  const response = await call(gateway, '/v1/audio/voices/x', { headers });
  assert.equal(response.headers.get('location'), '/voice/v1/audio/voices/');
});

test('a proxy before the gateway is told not to collect streams, unless the upstream told it something', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({ env: upstreams(upstream.url) });
  const endless: Behavior = (socket) => socket.end(`${head('200 OK')}as it comes`);
  for (const [behavior, expected] of [
    [endless, 'no'],
    [wholeAnswer('data: 1\n\n', '200 OK', { 'Content-Type': 'text/event-stream' }), 'no'],
    [
      wholeAnswer('data: 1\n\n', '200 OK', {
        'Content-Type': 'text/event-stream',
        'X-Accel-Buffering': 'yes',
      }),
      'yes',
    ],
    [wholeAnswer('whole'), null],
    [(socket) => socket.end(head('204 No Content')), null],
  ] as [Behavior, string | null][])
    for (const [, path] of CALLS) {
      upstream.behave(behavior);
      const { headers } = await call(gateway, path);
      assert.equal(headers.get('x-accel-buffering'), expected);
    }
});

test('TRACE and other methods that no path allows reach no upstream', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({ env: upstreams(upstream.url) });
  for (const method of ['TRACE', 'PROPFIND', 'PURGE', 'LINK'])
    for (const [, path] of CALLS) {
      const lines = [`${method} ${path} HTTP/1.1`, 'Host: localhost', 'Connection: close', '', ''];
      using client = rawClient(gateway.base, lines.join('\r\n'));
      await once(client.socket, 'close');
      assert.match(client.said(), /^HTTP\/1\.1 405 [\s\S]*"kind":"method_not_allowed"/);
      assert.match(client.said(), /\r\nAllow: [A-Z, ]*POST/);
    }
  assert.deepEqual(upstream.heads, []);
});
