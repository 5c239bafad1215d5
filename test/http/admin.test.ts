/** These tests call the admin endpoints as htmx and as programs do. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { test } from 'node:test';
import { crashSchema } from '../../src/admin/openapi.ts';
import { html } from '../../src/admin/views/html.ts';
import type { CrashRecord } from '../../src/crashes/crashes.ts';
import { TOGGLE_KEYS } from '../../src/observability/toggles.ts';
import { type Admin, exchange, model, startAdmin } from './admin-fixture.ts';
import { startGateway, until } from './harness.ts';

const EVIL = '<img src=x onerror=alert(1)>';
const HTMX = { 'HX-Request': 'true' };

const get = (admin: Admin, path: string, init: RequestInit = {}) => fetch(admin.base + path, init);
const post = (admin: Admin, path: string, init: RequestInit = {}) =>
  get(admin, path, { method: 'POST', ...init });

const json = (response: Response): Promise<any> => response.json();

function fields(values: Record<string, string>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(values)) form.append(name, value);
  return form;
}

const toggle = (admin: Admin, values: Record<string, string>) =>
  post(admin, '/admin/api/observability/toggle', { body: fields(values) });

async function fragment(response: Response): Promise<string> {
  assert.equal(response.status, 200);
  assert.match(response.headers.get('content-type') ?? '', /^text\/html/);
  assert.equal(response.headers.get('cache-control'), 'no-store');
  assert.match(response.headers.get('content-security-policy') ?? '', /default-src 'self'/);
  const text = await response.text();
  assert(!text.includes('<html'), 'a fragment, not a page');
  return text;
}

async function refusal(response: Response, status: number, param: string | null = null) {
  assert.equal(response.status, status);
  const { error } = await json(response);
  assert.equal(error.param, param);
  return error;
}

const shown = (text: string, key: string) =>
  new RegExp(`aria-checked="(true|false)" aria-labelledby="switch-${key}"`).exec(text)?.[1];

test('the metrics are a snapshot that includes the slot', async () => {
  await using admin = await startAdmin();
  admin.metrics.record(exchange());
  using _hold = admin.slot.take('llm', 'someone');
  const response = await get(admin, '/admin/api/metrics');
  assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
  const { uptime_sec, window_sec, slot, categories } = await json(response);
  assert(uptime_sec >= 0);
  assert.equal(window_sec, 3600);
  assert.equal(slot.holder, 'llm');
  assert.deepEqual(Object.keys(categories), ['asr']);
  assert.equal(categories.asr.recent[0].request_id, 'aaaabbbbccccdddd');
});

test('the series have a value a second, and a value a step of the hour unless only the rate is wanted', async () => {
  await using admin = await startAdmin();
  admin.setClock(100);
  admin.metrics.record(exchange({ latencyMs: 812.44, rtf: 0.07123 }));
  admin.setClock(102);
  const all = await json(await get(admin, '/admin/api/series'));
  assert.equal(all.rate.counts['2xx'].length, 180);
  assert.equal(all.rate.counts['2xx'].at(-2), 1);
  assert.equal(all.history.step_sec, 10);
  assert.equal(all.history.categories.asr.latency_ms.p95.length, 360);
  assert.equal(all.history.categories.asr.latency_ms.p95.at(-1), 812);
  assert.equal(all.history.categories.asr.rtf_p50.at(-1), 0.071);
  const rate = await json(await get(admin, '/admin/api/series?only=rate'));
  assert.deepEqual(Object.keys(rate), ['now_sec', 'rate']);
});

test('a toggle takes every key in every spelling of on and off', async () => {
  await using admin = await startAdmin();
  for (const key of TOGGLE_KEYS) {
    for (const word of ['1', 'on', 'true', 'yes', 'y']) {
      for (const value of [word, word.toUpperCase(), ` ${word} `]) {
        admin.toggles.set(key, false);
        const text = await fragment(await toggle(admin, { key, value }));
        assert.equal(admin.toggles.get(key), true, `${key}=${value}`);
        assert.equal(shown(text, key), 'true');
      }
    }
    for (const value of ['0', 'off', 'false', 'no', 'n', '', 'onn', '2', 'null', EVIL]) {
      admin.toggles.set(key, true);
      const text = await fragment(await toggle(admin, { key, value }));
      assert.equal(admin.toggles.get(key), false, `${key}=${value}`);
      assert.equal(shown(text, key), 'false');
      assert(!text.includes('<img'));
    }
  }
  const body = new URLSearchParams({ key: 'payload', value: 'on' });
  await fragment(await post(admin, '/admin/api/observability/toggle', { body }));
  assert.equal(admin.toggles.get('payload'), true);
});

test('a toggle that is missing or wrong is refused by its name', async () => {
  await using admin = await startAdmin();
  const before = admin.toggles.all();
  for (const values of [
    {},
    { value: 'on' },
    { key: 'Metrics', value: 'on' },
    { key: 'toString', value: 'on' },
  ]) {
    const { kind, message } = await refusal(await toggle(admin, values as never), 400, 'key');
    assert.equal(kind, 'malformed');
    assert.match(message, /metrics, access_log, payload/);
  }
  await refusal(await toggle(admin, { key: 'metrics' }), 400, 'value');
  const twice = fields({ key: 'metrics', value: 'on' });
  twice.append('value', 'off');
  const path = '/admin/api/observability/toggle';
  await refusal(await post(admin, path, { body: twice }), 400, 'value');
  await refusal(await post(admin, path), 400, 'key');
  const headers = { 'Content-Type': 'application/json' };
  const json = { body: '{"key":"metrics","value":"on"}', headers };
  assert.equal((await refusal(await post(admin, path, json), 415)).code, 'unsupported_media_type');
  const broken = { 'Content-Type': 'multipart/form-data; boundary=x' };
  const { code } = await refusal(await post(admin, path, { body: '--x\r\nnonsense', headers: broken }), 400);
  assert.equal(code, 'invalid_form');
  const large = fields({ key: 'metrics', value: 'y'.repeat(20_000) });
  await refusal(await post(admin, path, { body: large }), 400, 'value');
  const largeToo = new URLSearchParams({ key: 'metrics', value: 'y'.repeat(20_000) });
  await refusal(await post(admin, path, { body: largeToo }), 400);
  const withFile = fields({ key: 'metrics', value: 'on' });
  withFile.append('file', new Blob(['x']), 'x');
  await refusal(await post(admin, path, { body: withFile }), 400);
  assert.deepEqual(admin.toggles.all(), before);
});

test('a toggle serves a client that waits for 100 Continue', async () => {
  await using admin = await startAdmin();
  const body = 'key=payload&value=yes';
  const status = await new Promise((resolve, reject) => {
    const headers = { Expect: '100-continue', 'Content-Type': 'application/x-www-form-urlencoded' };
    const asked = request(`${admin.base}/admin/api/observability/toggle`, {
      ...{ method: 'POST', headers: { ...headers, 'Content-Length': body.length } },
    });
    asked.on('continue', () => asked.end(body));
    asked.on('response', (response) => resolve(response.resume().statusCode));
    asked.on('error', reject);
    asked.flushHeaders();
  });
  assert.equal(status, 200);
  assert.equal(admin.toggles.get('payload'), true);
});

test('clear-payload says how many captures it deleted', async () => {
  await using admin = await startAdmin();
  admin.captured.add('one').add('two');
  assert.match(
    await fragment(await get(admin, '/admin/fragments/observability')),
    /2 captures.*4\.8 MiB[\s\S]*Delete all/,
  );
  const text = await fragment(await post(admin, '/admin/api/observability/clear-payload'));
  assert.match(text, /2 captures deleted\./);
  assert.match(text, /<b>0 captures<\/b>/);
  assert(!text.includes('Delete all'));
});

test('reset-asr-state answers htmx with a fragment and others with counts', async () => {
  await using admin = await startAdmin();
  const counts = await post(admin, '/admin/api/reset-asr-state');
  assert.deepEqual(await json(counts), { evicted: 2, remaining: 0 });
  const text = await fragment(await post(admin, '/admin/api/reset-asr-state', { headers: HTMX }));
  assert.match(text, /0 models unloaded\./);
  assert.match(text, /0 in memory/);
});

test('a model can be pulled, loaded and unloaded', async () => {
  await using admin = await startAdmin();
  const ask = async (path: string) => json(await post(admin, `/admin/api/models/${path}`));
  assert.deepEqual(await ask('multilingual-tiny/load'), { id: 'multilingual-tiny', state: 'loading' });
  assert.deepEqual(await ask('multilingual-base/unload'), { id: 'multilingual-base', state: 'absent' });
  const text = await fragment(await post(admin, '/admin/api/models/cjk/pull', { headers: HTMX }));
  assert.match(text, /<progress aria-label="cjk: downloading" max="262000000" value="0">/);
  assert.match(text, /every 2s/, 'drawn more often while something is under way');
  assert.deepEqual(admin.asked, ['load multilingual-tiny', 'unload multilingual-base', 'pull cjk']);
  const error = await refusal(await post(admin, '/admin/api/models/none/pull', { headers: HTMX }), 404, 'id');
  assert.equal(error.kind, 'not_found');
});

test('the slot shows who holds it, and stop ends only the request that is named', async () => {
  await using admin = await startAdmin();
  const stop = async (body?: FormData) =>
    json(await post(admin, '/admin/api/slot/stop', body === undefined ? {} : { body }));
  assert.match(await fragment(await get(admin, '/admin/fragments/slot')), /Free/);
  assert.deepEqual(await stop(), { stopped: false });
  using hold = admin.slot.take('tts', 'abc:1');
  assert.match(await fragment(await get(admin, '/admin/fragments/slot')), /Busy: speech[\s\S]*abc:1/);
  assert.deepEqual(await stop(fields({ request_id: 'another' })), { stopped: false });
  const asJson = { body: '{"request_id":"another"}', headers: { 'Content-Type': 'application/json' } };
  await refusal(await post(admin, '/admin/api/slot/stop', asJson), 415);
  assert.equal(hold.signal.aborted, false);
  const body = fields({ request_id: 'abc:1' });
  const text = await fragment(await post(admin, '/admin/api/slot/stop', { body, headers: HTMX }));
  assert.match(text, /told to stop/);
  assert.equal(hold.signal.aborted, true);
});

test('a capture has a page, two files to keep, and a replay', async () => {
  await using admin = await startAdmin();
  admin.captured.add('req:1');
  const page = await get(admin, '/admin/captures/req:1');
  assert.equal(page.status, 200);
  const text = await page.text();
  assert.match(text, /&lt;b&gt;bold&lt;\/b&gt;/);
  assert.match(text, /Request, 25 B/);
  for (const [file, body] of [
    ['req.bin', '<script>alert(1)</script>'],
    ['resp.bin', '{"text":"Hello."}'],
  ]) {
    const response = await get(admin, `/admin/captures/req:1/${file}`);
    assert.equal(response.headers.get('content-type'), 'application/octet-stream');
    assert.match(response.headers.get('content-disposition') ?? '', /^attachment; filename=/);
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
    assert.equal(await response.text(), body);
    const beyond = await get(admin, `/admin/captures/req:1/${file}`, { headers: { Range: 'bytes=900-' } });
    assert.deepEqual([beyond.status, beyond.headers.get('content-disposition')], [416, null]);
    assert.equal((await json(beyond)).error.code, 'range_not_satisfiable');
  }
  const report = await json(await post(admin, '/admin/captures/req:1/replay'));
  assert.equal(report.same, false);
  const shownReport = await fragment(await post(admin, '/admin/captures/req:1/replay', { headers: HTMX }));
  assert.match(shownReport, /&lt;i&gt;The answers differ/);
  for (const path of ['none', 'none/req.bin', '..%2f..%2fetc', '%2e%2e%00', 'x'.repeat(129)]) {
    const response = await get(admin, `/admin/captures/${path}`);
    assert.equal(response.status, 404, path);
  }
  await refusal(await post(admin, '/admin/captures/none/replay'), 404);
});

test('every name that a client can choose is shown as text', async () => {
  await using admin = await startAdmin();
  admin.toggles.set('payload', true);
  admin.metrics.record(exchange({ model: EVIL, route: EVIL }));
  admin.models.push(model('m', { family: EVIL, failure: `"${EVIL}'` }));
  admin.crashes.push(crash({ message: EVIL, requestId: EVIL }));
  const problem = { kind: 'unreachable', says: EVIL } as const;
  admin.upstreams.push({ category: 'llm', problem, isAbsent: false, since: new Date() });
  for (const name of ['requests', 'models', 'summary', 'crashes', 'upstreams']) {
    const text = await fragment(await get(admin, `/admin/fragments/${name}`));
    assert(!text.includes('<img'), name);
    assert.equal(text.includes('&lt;img src=x onerror=alert(1)&gt;'), name !== 'summary', name);
  }
});

test('requests of all kinds are listed by time, and lead to captures only while these are kept', async () => {
  await using admin = await startAdmin();
  const at = (sec: number) => new Date(Date.UTC(2026, 0, 1, 10, 0, sec));
  for (let n = 0; n < 40; n++) {
    admin.metrics.record(exchange({ requestId: `a${n}`, at: at(n) }));
    admin.metrics.record(exchange({ requestId: `l${n}`, at: at(n), category: 'llm', rtf: undefined }));
  }
  const ids = (text: string) => [...text.matchAll(/<code[^>]*>([al]\d+)<\/code>/g)].map((m) => m[1]);
  const text = await fragment(await get(admin, '/admin/fragments/requests'));
  assert.equal(ids(text).length, 50);
  assert.deepEqual(ids(text).slice(0, 4), ['a39', 'l39', 'a38', 'l38']);
  assert(!text.includes('/admin/captures/'));
  admin.toggles.set('payload', true);
  assert.match(await fragment(await get(admin, '/admin/fragments/requests')), /href="admin\/captures\/a39"/);
});

test('a crash is shown with its end, its request and its last words, and is JSON for programs', async () => {
  await using admin = await startAdmin();
  const shown = async () => fragment(await get(admin, '/admin/fragments/crashes'));
  assert.match(await shown(), /has never ended without being asked to/);
  admin.crashes.push(
    crash(),
    crash({ signal: null, exitCode: 3, requestId: null, lines: ['one', 'last line'] }),
  );
  const text = await shown();
  for (const part of ['2 records', 'SIGABRT', 'exit 3', 'req-1', 'GGML_ASSERT', 'last line'])
    assert(text.includes(part), part);
  const response = await get(admin, '/admin/api/crashes');
  const { crashes } = (await response.json()) as { crashes: unknown[] };
  assert.equal(crashes.length, 2);
  for (const each of crashes)
    assert.deepEqual(Object.keys(crashSchema.parse(each)).sort(), Object.keys(crashSchema.shape).sort());
});

test('an upstream that does not serve has a row with the cause in words, and since when', async () => {
  await using admin = await startAdmin();
  const rows = async () => {
    const text = await fragment(await get(admin, '/admin/fragments/upstreams'));
    const cells = (row: string) =>
      row
        .replace(/<[^>]*>/g, ' ')
        .replace(/\s+/g, ' ')
        .trim();
    return text
      .split('<tr data-key')
      .slice(1)
      .map((row) => cells(row.replace(/^[^>]*>/, '')));
  };
  assert.deepEqual(await rows(), [
    'Speech none nothing is at the default address, and no setting names another 1 min 5 s',
    'Chat serves – 1 min 5 s',
  ]);
  const problem = { kind: 'tls', says: 'has a certificate that is not trusted (CERT)' } as const;
  const since = new Date();
  admin.upstreams[1] = { category: 'llm', problem, isAbsent: false, since };
  assert.equal((await rows())[1], 'Chat down has a certificate that is not trusted (CERT) 0 s');
  const text = await fragment(await get(admin, '/admin/fragments/upstreams'));
  assert(text.includes(`title="since ${since.toISOString()}"`));
});

function crash(differing: Partial<CrashRecord> = {}): CrashRecord {
  return {
    ...{ at: '2026-01-01T10:00:00.000Z', pid: 7, uptimeSec: 65.4, exitCode: null, signal: 'SIGABRT' },
    ...{ message: 'GGML_ASSERT(x) failed', requestId: 'req-1', lines: [] },
    ...differing,
  };
}

test('an empty dashboard says what to do', async () => {
  await using admin = await startAdmin();
  for (const name of ['requests', 'summary']) {
    assert.match(await fragment(await get(admin, `/admin/fragments/${name}`)), /href="playground"/);
  }
});

test('a wrong method is a 405 that names the right ones', async () => {
  await using admin = await startAdmin();
  for (const [method, path, allow] of [
    ['POST', '/admin', 'GET, HEAD'],
    ['POST', '/admin/api/metrics', 'GET, HEAD'],
    ['GET', '/admin/api/observability/toggle', 'POST'],
    ['GET', '/admin/api/observability/clear-payload', 'POST'],
    ['DELETE', '/admin/api/reset-asr-state', 'POST'],
    ['PUT', '/admin/api/models/cjk/pull', 'POST'],
    ['POST', '/admin/fragments/slot', 'GET, HEAD'],
    ['GET', '/admin/captures/a/replay', 'POST'],
  ] as const) {
    const response = await get(admin, path, { method });
    assert.equal(response.status, 405, path);
    assert.equal(response.headers.get('allow'), allow);
    assert.equal((await json(response)).error.kind, 'method_not_allowed');
  }
  assert.equal((await get(admin, '/admin', { method: 'HEAD' })).status, 200);
});

test('the page holds no data, and has the same top bar as the playground', async () => {
  await using admin = await startAdmin();
  admin.metrics.record(exchange());
  const page = await (await get(admin, '/admin')).text();
  assert(!page.includes('multilingual-'));
  assert(!/<script(?![^>]* src=)|<style|style=|\son\w+=/.test(page), 'nothing inline');
  assert.match(page, /<button id="sign-out" class="small" type="button" hidden>/);
  const bar = (text: string) =>
    /<header[\s\S]*?<\/nav>/.exec(text)?.[0].replaceAll(' aria-current="page"', '').replace(/\s+/g, ' ');
  const playground = readFileSync(new URL('../../assets/playground.html', import.meta.url), 'utf8');
  assert.equal(bar(page), bar(playground));
  assert.match(page, /<a href="admin" aria-current="page">/);
});

test('only the files of the packages that the page needs are served', async () => {
  await using admin = await startAdmin();
  for (const name of ['htmx.min.js', 'uPlot.iife.min.js', 'uPlot.min.css']) {
    const response = await get(admin, `/assets/vendor/${name}`);
    assert.equal(response.status, 200, name);
    assert(response.headers.get('etag'));
  }
  for (const name of ['', 'htmx.js', '..%2fpackage.json', 'htmx.min.js/../htmx.js']) {
    assert.equal((await get(admin, `/assets/vendor/${name}`)).status, 404, name);
  }
});

test('the html tag escapes values but no templates, and writes absent values as nothing', () => {
  const inner = html`<b>${'"<&>\''}</b>`;
  assert.equal(inner.text, '<b>&quot;&lt;&amp;&gt;&#39;</b>');
  assert.equal(html`${inner}${[inner, 0]}${null}${undefined}${false}`.text, `${inner}${inner}0`);
});

test('the dashboard says that a pull or a load failed, and the log says why', async () => {
  await using gateway = await startGateway({
    ensure: async (id) => {
      if (id === 'cjk') throw new Error('EACCES: /srv/models/cjk.gguf');
    },
  });
  const act = (verb: string) => fetch(`${gateway.base}/admin/api/models/cjk/${verb}`, { method: 'POST' });
  const page = async () => (await fetch(`${gateway.base}/admin/fragments/models`)).text();
  await act('load');
  await until('the log has it', () => gateway.logged.some((line) => line.includes('/srv/models/cjk.gguf')));
  assert.match(await page(), /the log says why/);
  assert.doesNotMatch(await page(), /EACCES|srv/);
});

test('the dashboard names the instructions that the CPU computes with', async () => {
  await using admin = await startAdmin();
  const summary = await (await get(admin, '/admin/fragments/summary')).text();
  assert.match(summary, /The CPU computes with <code>avx2<\/code>\./);
});
