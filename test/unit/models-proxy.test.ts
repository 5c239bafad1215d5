/** Weights come through the proxy that the environment names, over TLS too. */
import assert from 'node:assert/strict';
import { createServer } from 'node:https';
import { afterEach, beforeEach, test } from 'node:test';
import { type GetOptions, httpGet } from '../../src/models/http-get.ts';
import { UnreachableError } from '../../src/models/proxy-connection.ts';
import { certificateFor, trusting } from '../certificate.ts';
import { listening } from '../local-server.ts';
import { startForwardProxy } from '../model/forward-proxy.ts';
import { startHub } from '../model/hub-server.ts';
import { until } from '../until.ts';

const VARIABLES = ['http_proxy', 'https_proxy', 'all_proxy', 'no_proxy'].flatMap((name) => [
  name,
  name.toUpperCase(),
]);
const content = Buffer.from('weights');
const kept = new Map(VARIABLES.map((name) => [name, process.env[name]]));
beforeEach(() => {
  for (const name of VARIABLES) delete process.env[name];
});
afterEach(() => {
  for (const [name, value] of kept) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
});

function get(url: string, changes: Partial<GetOptions> = {}) {
  const signal = new AbortController().signal;
  return httpGet(url, { headers: {}, signal, connectTimeoutMs: 1000, answerTimeoutMs: 1000, ...changes });
}

async function textOf(url: string, changes?: Partial<GetOptions>): Promise<string> {
  const { response } = await get(url, changes);
  return Buffer.concat(await response.body.toArray()).toString();
}

test('http: the proxy is asked for the whole URL, with the credentials of its own', async () => {
  const hub = await startHub(content);
  const proxy = await startForwardProxy();
  try {
    const { port } = new URL(hub.url);
    process.env.HTTP_PROXY = `http://me:p%40ss@${proxy.host}`;
    assert.equal(await textOf(`http://hub.test:${port}/w.bin`, { token: 'secret' }), 'weights');
    const credentials = Buffer.from('me:p@ss').toString('base64');
    assert.deepEqual(proxy.asked, [`GET http://hub.test:${port}/w.bin Basic ${credentials}`]);
    assert.equal(hub.requests[0]?.headers.host, `hub.test:${port}`);
    assert.equal(hub.requests[0]?.headers.authorization, 'Bearer secret');
    await textOf(`http://us%40er:pass@hub.test:${port}/w.bin?a=b#c`);
    assert.equal(proxy.asked[1], `GET http://hub.test:${port}/w.bin?a=b Basic ${credentials}`);
    assert.equal(
      hub.requests[1]?.headers.authorization,
      `Basic ${Buffer.from('us@er:pass').toString('base64')}`,
    );
  } finally {
    await Promise.all([hub.close(), proxy.close()]);
  }
});

test('no proxy is asked for a host of NO_PROXY, nor for this machine', async () => {
  const hub = await startHub(content);
  const proxy = await startForwardProxy();
  try {
    const { port } = new URL(hub.url);
    process.env.all_proxy = proxy.host;
    process.env.NO_PROXY = 'other.test, .intern.test';
    assert.equal(await textOf(hub.url), 'weights');
    assert.equal(await textOf(`http://localhost:${port}/`), 'weights');
    await assert.rejects(
      get(`http://models.intern.test:${port}/`),
      /models\.intern\.test:\d+ cannot be reached/,
    );
    assert.deepEqual(proxy.asked, []);
    assert.equal(await textOf(`http://hub.test:${port}/`), 'weights');
    assert.equal(proxy.asked.length, 1);
  } finally {
    await Promise.all([hub.close(), proxy.close()]);
  }
});

/** What a process downloads that trusts the certificate. */
const downloaded = (path: string, url: string) =>
  trusting(
    path,
    `const { httpGet } = await import('./src/models/http-get.ts');
    const limits = { connectTimeoutMs: 5000, answerTimeoutMs: 5000 };
    const options = { headers: {}, token: 'secret', signal: AbortSignal.timeout(20000), ...limits };
    try {
      const { response } = await httpGet('${url}', options);
      process.stdout.write(Buffer.concat(await response.body.toArray()).toString());
    } catch (error) {
      process.stdout.write(error.message);
    }`,
  );

for (const isSecure of [false, true])
  test(`https: TLS goes through a proxy${isSecure ? ' over TLS' : ''} to the host, whose certificate is checked`, async () => {
    using tls = certificateFor('DNS:hub.test,IP:127.0.0.1');
    const seen: string[] = [];
    const hub = createServer(tls, ({ headers }, response) => {
      seen.push(`${headers.host} ${headers.authorization}`);
      response.end(content);
    });
    await using local = await listening(hub);
    const { port } = local;
    const proxy = await startForwardProxy(200, isSecure ? tls : undefined);
    try {
      process.env.HTTPS_PROXY = `http${isSecure ? 's' : ''}://${proxy.host}`;
      const url = `https://hub.test:${port}/w.bin`;
      await assert.rejects(get(url), isSecure ? /cannot be reached \(DEPTH_ZERO/ : /self-signed certificate/);
      await until('the proxy has no connection', () => proxy.open.size === 0);
      assert.equal(await downloaded(tls.path, url), 'weights');
      assert.deepEqual(seen, [`hub.test:${port} Bearer secret`]);
      // The usual port, behind which the proxy reaches the same host, is not named.
      proxy.ports.set(443, port);
      assert.equal(await downloaded(tls.path, 'https://hub.test/w.bin'), 'weights');
      assert.equal(seen[1], 'hub.test Bearer secret');
      assert.match(
        await downloaded(tls.path, `https://other.test:${port}/`),
        /not match certificate's altnames/,
      );
      assert.match(
        await downloaded(tls.path, `https://10.0.0.1:${port}/`),
        /IP: 10\.0\.0\.1 is not in the cert/,
      );
      assert.ok(proxy.asked.every((asked) => /^CONNECT \S+:\d+ no credentials$/.test(asked)));
    } finally {
      await proxy.close();
    }
  });

test('a proxy that refuses, is silent or is not there is named without its password, and left', async () => {
  for (const [answer, says] of [
    [407, /^the proxy 127\.0\.0\.1:\d+ refused to connect to hub\.test:443 \(407\)$/],
    [null, /^the proxy 127\.0\.0\.1:\d+ did not answer in time$/],
  ] as const) {
    const proxy = await startForwardProxy(answer);
    process.env.HTTPS_PROXY = `http://me:secret@${proxy.host}`;
    try {
      const failed = get('https://hub.test/', { connectTimeoutMs: 200 });
      await assert.rejects(failed, (error) => error instanceof UnreachableError && says.test(error.message));
      await until('the proxy has no connection', () => proxy.open.size === 0);
    } finally {
      await proxy.close();
    }
    await assert.rejects(
      get('https://hub.test/'),
      /^UnreachableError: the proxy 127\S+ cannot be reached \(ECONN/,
    );
  }
});

test('an abort ends the wait for a proxy with its reason', async () => {
  const proxy = await startForwardProxy(null);
  const controller = new AbortController();
  const reason = new Error('the caller left');
  process.env.HTTPS_PROXY = `http://${proxy.host}`;
  try {
    const failed = assert.rejects(
      get('https://hub.test/', { signal: controller.signal }),
      (error) => error === reason,
    );
    await until('the proxy is asked', () => proxy.asked.length === 1);
    controller.abort(reason);
    await failed;
    await until('the proxy has no connection', () => proxy.open.size === 0);
  } finally {
    await proxy.close();
  }
});

test('a proxy that speaks no TLS, named without a scheme, is refused with the way to name it', async () => {
  const proxy = await startForwardProxy();
  process.env.HTTPS_PROXY = proxy.host;
  try {
    await assert.rejects(
      get('https://hub.test/'),
      /ERR_SSL_WRONG_VERSION_NUMBER\): name one that speaks no TLS with http:\/\/$/,
    );
  } finally {
    await proxy.close();
  }
});

test('a proxy of another kind, or no URL, is refused by the name of its variable', async () => {
  for (const named of ['socks5://me:secret@127.0.0.1:1', 'http://[bad', 'http://']) {
    process.env.HTTPS_PROXY = named;
    await assert.rejects(
      get('https://hub.test/'),
      ({ message }) => /^hub\.test: .*HTTPS_PROXY/.test(message) && !message.includes('secret'),
    );
  }
});
