/** Pages of other sites attack the gateway (cross-site.ts), and so does a page that an upstream serves. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startHostileUpstream, wholeAnswer } from '../faults/hostile-upstream.ts';
import { startGateway } from '../http/harness.ts';
import { browser, tryCrossSite } from './cross-site.ts';

tryCrossSite(2);

test('a page that an upstream serves runs no script and has no part in the gateway', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({
    env: { SVC_TTS_UPSTREAM_URL: upstream.url, SVC_LLM_BACKEND_URL: upstream.url },
  });
  const script = `document.title = 'ran'; navigator.serviceWorker.register('/v1/audio/worker.js', { scope: '/' });
    fetch('/admin/api/reset-asr-state', { method: 'POST' });`;
  const theirs = {
    ...{ 'Service-Worker-Allowed': '/', 'Set-Cookie': 'theirs=1; Path=/', Refresh: '0; url=/playground' },
    'Content-Security-Policy': 'sandbox allow-scripts allow-same-origin allow-forms',
  };
  const page = `<title>still</title><script src="/v1/audio/attack.js"></script><script>${script}</script>
    <form method="post" action="/admin/api/reset-asr-state"></form><img src="x" onerror="${script.replaceAll('"', "'")}">
    <iframe srcdoc="<script>top.document.title = 'ran'</script>"></iframe><p>served</p>`;
  upstream.behave((socket, head) => {
    const isScript = / \/v1\/audio\/\w+\.js /.test(head);
    const type = isScript ? 'text/javascript' : 'text/html';
    wholeAnswer(isScript ? script : page, '200 OK', { ...theirs, 'Content-Type': type })(socket, head);
  });
  const context = await browser.newContext();
  const tab = await context.newPage();
  for (const path of ['/v1/audio/voices/x/page', '/v1/audio/page.svg']) {
    await tab.goto(gateway.base + path);
    await tab.getByText('served').waitFor();
    await sleep(200); // what would run has begun by then
    assert.deepEqual([await tab.title(), tab.url()], ['still', gateway.base + path]);
  }
  assert.deepEqual(await context.cookies(), []);
  // A page of the gateway's own sees what the origin has, and that even it can register no worker for the origin.
  await tab.goto(`${gateway.base}/playground`);
  const worker =
    await tab.evaluate<string>(`navigator.serviceWorker.getRegistrations().then((all) => all.length > 0
    ? 'registered'
    : navigator.serviceWorker.register('/v1/audio/worker.js', { scope: '/' }).then(() => 'registered', String))`);
  assert.match(worker, /SecurityError/);
  await context.close();
  assert.deepEqual(
    gateway.exchanges.filter(({ path = '' }) => path.startsWith('/admin')),
    [],
  );
});
