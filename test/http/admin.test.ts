/** These tests call the admin endpoints as htmx and as programs do. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { test } from 'node:test';
import { crashSchema } from '../../src/admin/openapi.ts';
import { html } from '../../src/admin/views/html.ts';
import type { CrashRecord } from '../../src/crashes/crashes.ts';
import { TOGGLE_KEYS } from '../../src/observability/toggles.ts';
import { type Admin, exchange, live, model, startAdmin, upload } from './admin-fixture.ts';
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
        admin.toggles[key] = false;
        const text = await fragment(await toggle(admin, { key, value }));
        assert.equal(admin.toggles[key], true, `${key}=${value}`);
        assert.equal(shown(text, key), 'true');
      }
    }
    for (const value of ['0', 'off', 'false', 'no', 'n', '', 'onn', '2', 'null', EVIL]) {
      admin.toggles[key] = true;
      const text = await fragment(await toggle(admin, { key, value }));
      assert.equal(admin.toggles[key], false, `${key}=${value}`);
      assert.equal(shown(text, key), 'false');
      assert(!text.includes('<img'));
    }
  }
  const body = new URLSearchParams({ key: 'payload', value: 'on' });
  await fragment(await post(admin, '/admin/api/observability/toggle', { body }));
  assert.equal(admin.toggles.payload, true);
});

test('a toggle that is missing or wrong is refused by its name', async () => {
  await using admin = await startAdmin();
  const before = { ...admin.toggles };
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
  const { code: ofJson, message } = await refusal(await post(admin, path, json), 415);
  assert.equal(ofJson, 'unsupported_media_type');
  assert.match(message, /"application\/json".*Expected multipart\/form-data or/);
  const coded = { 'Content-Type': 'application/x-www-form-urlencoded', 'Content-Encoding': 'zip' };
  const zipped = await post(admin, path, { body: 'key=metrics', headers: coded });
  assert.equal(zipped.headers.get('Accept-Encoding'), 'gzip, deflate, br, identity');
  assert.match((await refusal(zipped, 415)).message, /"zip".*Expected none, gzip, deflate, br/);
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
  assert.deepEqual(admin.toggles, before);
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
  assert.equal(admin.toggles.payload, true);
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
  assert.match(text, /Stopping the request/);
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

test('the sound of a capture is played by its own type and never shown as a page, and its fields are text', async () => {
  await using admin = await startAdmin();
  admin.captured.add('form').add('req:1');
  const page = await (await get(admin, '/admin/captures/form')).text();
  assert.match(page, /<dt>language<\/dt><dd>&lt;b&gt;de&lt;\/b&gt;<\/dd>/);
  assert.match(page, /<dt>file<\/dt><dd>a&lt;i&gt;\.html, \d+ bytes<\/dd>/);
  assert.equal(page.match(/<audio /g)?.length, 2);
  const whole = Buffer.from(await (await get(admin, '/admin/captures/form/resp.bin')).arrayBuffer());
  for (const file of ['req.sound', 'resp.sound']) {
    const response = await get(admin, `/admin/captures/form/${file}`);
    assert.equal(response.headers.get('content-type'), 'audio/wav');
    assert.match(response.headers.get('content-disposition') ?? '', /^attachment;/);
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
    assert.equal(response.headers.get('content-security-policy'), "sandbox; default-src 'none'");
    assert(Buffer.from(await response.arrayBuffer()).equals(whole), file);
    const part = await get(admin, `/admin/captures/form/${file}`, { headers: { Range: 'bytes=4-9' } });
    assert.deepEqual([part.status, part.headers.get('content-range')], [206, `bytes 4-9/${whole.length}`]);
    assert(Buffer.from(await part.arrayBuffer()).equals(whole.subarray(4, 10)));
    const beyond = { headers: { Range: 'bytes=9999999-' } };
    assert.equal((await get(admin, `/admin/captures/form/${file}`, beyond)).status, 416);
  }
  const text = await (await get(admin, '/admin/captures/req:1')).text();
  assert(text.includes('&lt;script&gt;alert(1)&lt;/script&gt;') && !text.includes('<script>alert'), text);
  assert.match(text, /&quot;text&quot;: &quot;Hello\.&quot;/);
  for (const path of ['req:1/req.sound', 'none/req.sound', '..%2f..%2fform/req.sound', 'form/..%2freq.bin'])
    assert.equal((await get(admin, `/admin/captures/${path}`)).status, 404, path);
});

test('the last lines of the log are shown as text, with their level', async () => {
  await using admin = await startAdmin();
  const shown = async () => fragment(await get(admin, '/admin/fragments/log'));
  assert.match(await shown(), /Nothing logged/);
  admin.logLines.push(
    { number: 2, level: 'warn', text: EVIL },
    { number: 1, level: 'info', text: 'started' },
  );
  const text = await shown();
  assert(!text.includes('<img'));
  assert.match(text, /2 lines, newest first[\s\S]*badge warn">warn<[\s\S]*&lt;img[\s\S]*started/);
});

test('every setting is shown with its value and its source, without secrets, and they can be searched', async () => {
  await using admin = await startAdmin();
  const asked = async (search: string) => {
    const text = await fragment(await get(admin, `/admin/fragments/settings?search=${search}`));
    assert.doesNotMatch(text, /hush|<b>captures/);
    return [...text.matchAll(/<tr data-key="([A-Z]\w+)">(.*?)<\/tr>/gs)].map(([, name, row = '']) =>
      [name, ...row.matchAll(/<td.*?<\/td>/gs)].map((cell) => String(cell).replace(/<[^>]*>/g, '')),
    );
  };
  const all = await asked('');
  assert(all.length > 50, String(all.length));
  const of = (wanted: string) => all.find(([name]) => name === wanted)?.slice(1);
  assert.deepEqual(of('SVC_PORT'), ['9000', 'environment']);
  assert.deepEqual(of('SVC_API_KEY'), ['set', 'environment']);
  assert.deepEqual(of('SVC_ADMIN_KEY'), ['–', 'not set']);
  assert.deepEqual(of('SVC_HOST'), ['127.0.0.1', 'default']);
  assert.equal(of('SVC_THREADS')?.[1], 'this machine');
  assert.deepEqual(
    (await asked('ENVIRONMENT')).map(([name]) => name),
    ['SVC_PORT', 'SVC_API_KEY', 'SVC_OBS_PAYLOAD_DIR'],
  );
  assert.deepEqual(await asked('nothing-like-this'), []);
});

test('every name that a client can choose is shown as text', async () => {
  await using admin = await startAdmin();
  admin.toggles.payload = true;
  admin.metrics.record(exchange({ model: EVIL, route: EVIL }));
  admin.models.push(model('m', { family: EVIL, failure: `"${EVIL}'` }));
  admin.crashes.push(crash({ message: EVIL, requestId: EVIL }));
  const problem = { kind: 'unreachable', says: EVIL } as const;
  admin.upstreams.push({ category: 'llm', problem, isAbsent: false, since: new Date() });
  admin.metrics.record(exchange({ errorMessage: EVIL, status: 400, class: '4xx' }));
  for (const name of ['state', 'requests', 'models', 'summary', 'crashes', 'upstreams']) {
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
  admin.toggles.payload = true;
  assert.match(await fragment(await get(admin, '/admin/fragments/requests')), /href="admin\/captures\/a39"/);
});

test('requests show code, message, client and key, and are filtered and searched among all that are kept', async () => {
  await using admin = await startAdmin();
  const failure = { status: 400, class: '4xx', errorCode: 'invalid_value', errorMessage: EVIL } as const;
  admin.metrics.record(exchange({ requestId: 'wrong', ...failure, clientIp: '10.1.2.3', key: 'anna' }));
  admin.metrics.record(
    exchange({ requestId: 'refused', status: 503, class: '503-busy', errorCode: 'slot_busy' }),
  );
  admin.metrics.record(exchange({ requestId: 'chat', category: 'llm', model: 'qwen' }));
  for (let n = 0; n < 100; n++) admin.metrics.record(exchange({ requestId: `good${n}` }));
  const asked = async (query: string) => fragment(await get(admin, `/admin/fragments/requests${query}`));
  const ids = async (query: string) =>
    [...(await asked(query)).matchAll(/<code data-key="id">(\w+)<\/code>/g)].map((match) => match[1]);
  assert.deepEqual(await ids('?show=failed'), ['wrong']);
  assert.deepEqual(await ids('?show=busy'), ['refused']);
  assert.deepEqual(await ids('?show=llm&search='), ['chat']);
  assert.deepEqual(await ids('?show=tts'), []);
  for (const search of ['10.1.2', 'ANNA', 'invalid_val', 'onerror', '400'])
    assert.deepEqual(await ids(`?search=${search}`), ['wrong'], search);
  assert.deepEqual(await ids('?show=llm&search=anna'), []);
  assert.equal((await ids('?show=nonsense&search=a&search=b')).length, 50);
  const text = await asked('?show=failed');
  for (const part of [
    'invalid_value',
    '&lt;img src=x',
    '10.1.2.3',
    'key anna',
    '1 request, of the latest 103',
  ])
    assert(text.includes(part), part);
  assert(!text.includes('<img'));
  assert.match(await asked('?search=nothing'), /No matching requests/);
  const { categories } = await json(await get(admin, '/admin/api/metrics'));
  assert.equal(categories.asr.recent.length, 50);
  const { code, client_ip: client } = admin.metrics.recent('asr').at(-1) ?? {};
  assert.deepEqual([code, client], ['invalid_value', '10.1.2.3']);
});

test('live sessions and uploads are counted and listed beside the slot', async () => {
  await using admin = await startAdmin();
  const shown = async () =>
    (await fragment(await get(admin, '/admin/fragments/slot'))).replace(/<[^>]*>/g, '');
  assert.doesNotMatch(await shown(), /session|upload/i);
  const stages = [
    { name: 'text', ms: 210 },
    { name: 'chat', ms: 1500 },
  ];
  const lastError = { code: 'slot_busy', says: EVIL, at: new Date(Date.now() - 5000) };
  admin.live.push(live({ state: 'answering', lastError, lastAnswer: { status: 'completed', stages } }));
  for (let n = 0; n < 9; n++) admin.uploads.push(upload(EVIL, n === 0));
  const text = await shown();
  for (const part of [
    '1 live session, 9 uploads',
    'Realtime conversation answering from 10.0.0.7, last audio 3 s ago',
    'Last answer: completed, transcription 210 ms, first word 1.50 s',
    'Last error: slot_busy 5 s ago. &lt;img',
    'and 2 more',
  ])
    assert(text.includes(part), text);
  assert.match(text, /Upload received from &lt;img [\s\S]*Upload receiving from &lt;img/);
});

test('models on disk come first, and are removed only with the word of the dashboard', async () => {
  await using admin = await startAdmin();
  const text = await fragment(await get(admin, '/admin/fragments/models'));
  assert.match(
    text,
    /multilingual-small[\s\S]*cjk[\s\S]*<details[\s\S]*2 other models to pull[\s\S]*european/,
  );
  const path = '/admin/api/models/multilingual-base/remove';
  await refusal(await post(admin, path), 400, 'sure');
  await refusal(await post(admin, path, { body: fields({ sure: 'no' }) }), 400, 'sure');
  assert.deepEqual(admin.asked, []);
  const body = fields({ sure: 'yes' });
  const after = await fragment(await post(admin, path, { body, headers: HTMX }));
  assert.match(after, /Removing multilingual-base from disk[\s\S]*3 other models to pull/);
  assert.deepEqual(admin.asked, ['remove multilingual-base']);
});

test('a crash is shown with its end, its request and its last words, and is JSON for programs', async () => {
  await using admin = await startAdmin();
  const shown = async () => fragment(await get(admin, '/admin/fragments/crashes'));
  assert.match(await shown(), /No crashes recorded/);
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

/** The troubles of the first line, worst first, as text, and what the tab shows. */
async function stateOf(admin: Admin) {
  const text = await fragment(await get(admin, '/admin/fragments/state'));
  const [, tab, title] = /data-tab="(\w+)" data-title="([^"]*)"/.exec(text) ?? [];
  const said = [...text.matchAll(/<p class="trouble (\w+)"[^>]*>(.*?)<\/p>/gs)].map(
    ([, level, says = '']) => `${level}: ${says.replace(/<[^>]*>/g, '').replace(/\s+/g, ' ')}`,
  );
  return { tab, title, said };
}

test('the first line says that all is well, or what is wrong and since when, the worst first', async () => {
  await using admin = await startAdmin();
  admin.models.length = 0;
  assert.deepEqual(await stateOf(admin), { tab: 'ok', title: '', said: ['ok: All is well.'] });
  using _hold = admin.slot.take('asr', 'held');
  assert.deepEqual(await stateOf(admin), { tab: 'busy', title: 'Busy', said: ['ok: All is well.'] });
  const since = new Date('2026-01-02T03:04:05Z');
  admin.models.push(model('cjk', { failure: 'It could not be loaded', failedAt: since }));
  admin.captureFailure = { at: since, why: 'ENOSPC' };
  const disk = { level: 'bad', says: 'The disk is full', short: 'disk full', detail: '0 B free' } as const;
  admin.troubles.push({ key: 'disk', ...disk, since });
  admin.onCpu.push({ model: 'cjk', why: 'The GPU failed: out of memory', since });
  assert.deepEqual(await stateOf(admin), {
    tab: 'bad',
    title: 'Disk full +3',
    said: [
      'bad: The disk is full since 03:04:05 0 B free',
      'warn: Payload capture turned itself off after a disk error since 03:04:05 ENOSPC; it is tried again by itself',
      'warn: It could not be loaded since 03:04:05',
      'warn: cjk runs on the CPU: The GPU failed: out of memory since 03:04:05 a full GPU is tried again, up to five times; a lost one needs a restart',
    ],
  });
  admin.toggles.payload = true;
  admin.troubles.pop();
  admin.models.pop();
  admin.onCpu.pop();
  assert.equal((await stateOf(admin)).tab, 'busy');
});

test('the first line names upstreams that are set and down, and crashes of the last day', async () => {
  await using admin = await startAdmin();
  admin.models.length = 0;
  const problem = { kind: 'refused', says: 'refuses the connection' } as const;
  const [speech] = admin.upstreams;
  assert(speech?.isAbsent, 'one that nobody has set is no trouble');
  admin.upstreams[1] = { category: 'llm', problem, isAbsent: false, since: new Date(0) };
  admin.crashes.push(crash({ at: new Date(Date.now() - 1000).toISOString() }), crash());
  const { tab, title, said } = await stateOf(admin);
  assert.deepEqual([tab, title], ['bad', 'Chat down +1']);
  assert.equal(
    said[0],
    'bad: The chat daemon refuses the connection since 00:00:00 voxgate doctor says what to do',
  );
  assert.match(said[1] ?? '', /^warn: The server crashed \(SIGABRT\) and was restarted since .*req-1/);
  await using other = await startAdmin();
  other.models.length = 0;
  other.crashes.push(crash({ at: new Date(Date.now() - 25 * 3_600_000).toISOString() }));
  assert.equal((await stateOf(other)).tab, 'ok');
});

test('the first line says that no model is on disk where requests may download none', async () => {
  await using admin = await startAdmin();
  admin.models.splice(0, admin.models.length, model('cjk'));
  const models = () => get(admin, '/admin/fragments/models').then(fragment);
  assert.equal((await stateOf(admin)).tab, 'ok');
  assert.match(await models(), /Pull one below, or the first request downloads one\./);
  await using other = await startAdmin();
  other.models.splice(0, other.models.length, model('cjk'));
  other.downloads = false;
  const { tab, title, said } = await stateOf(other);
  assert.deepEqual([tab, title], ['bad', 'No model']);
  assert.match(said[0] ?? '', /^bad: Transcription is off: no model is on disk, .* pull one below$/);
  assert.match(await fragment(await get(other, '/admin/fragments/models')), /Pull one below\.</);
});

test('a slot that is held for longer than requests take is called stuck', async (t) => {
  await using admin = await startAdmin();
  admin.models.length = 0;
  admin.metrics.record(exchange({ latencyMs: 100_000 }));
  let heldForMs = 149_000;
  t.mock.method(admin.slot, 'status', () => ({ holder: 'asr', heldForMs, requestId: 'stuck' }));
  assert.equal((await stateOf(admin)).tab, 'busy');
  heldForMs = 151_000;
  const { title, said } = await stateOf(admin);
  assert.equal(title, 'Slot stuck');
  assert.match(
    said[0] ?? '',
    /^bad: A speech to text request has held the slot unusually long since .*stuck/,
  );
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
  const time = (at: number) => admin.upstreams[at]?.since.toISOString().slice(11, 19);
  assert.deepEqual(await rows(), [
    `Speech none no server at the default address, and none is set 1 min 5 s since ${time(0)}`,
    `Chat up 1 min 5 s since ${time(1)}`,
  ]);
  const problem = { kind: 'tls', says: 'has a certificate that is not trusted (CERT)' } as const;
  const since = new Date();
  admin.upstreams[1] = { category: 'llm', problem, isAbsent: false, since };
  assert.equal(
    (await rows())[1],
    `Chat down has a certificate that is not trusted (CERT) 0 s since ${time(1)}`,
  );
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
  const [requests, summary] = await Promise.all(
    ['requests', 'summary'].map(async (name) => fragment(await get(admin, `/admin/fragments/${name}`))),
  );
  assert.match(requests ?? '', /No requests yet\. Try the <a href="playground">/);
  assert.doesNotMatch(summary ?? '', /No requests/, 'it is said once');
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
  const log = await (await fetch(`${gateway.base}/admin/fragments/log`)).text();
  assert.match(log, /\/srv\/models\/cjk\.gguf/, 'and it is on the page');
  assert.doesNotMatch(await page(), /EACCES|srv/);
});

test('the dashboard names the instructions that the CPU computes with', async () => {
  await using admin = await startAdmin();
  const summary = await (await get(admin, '/admin/fragments/summary')).text();
  assert.match(summary, /CPU instructions: <code>avx2<\/code>\./);
});
