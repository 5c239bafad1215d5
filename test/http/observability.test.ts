/** Metrics, access log and captures of real requests say the right things, and say the same. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { metricsSchema } from '../../src/admin/openapi.ts';
import { VERSION } from '../../src/version.ts';
import { startHostileUpstream, wholeAnswer } from '../faults/hostile-upstream.ts';
import { scriptedVoices } from '../voices.ts';
import { form, type Gateway, heard, json, post, startGateway, toneWav, until } from './harness.ts';
import { rawClient } from './raw-client.ts';
import { connectLive } from './realtime.ts';

const day = (at = new Date()) =>
  [at.getFullYear(), at.getMonth() + 1, at.getDate()].map((n) => String(n).padStart(2, '0')).join('-');

/** Reads the lines on disk once there are `count`. */
async function accessLog({ config }: Gateway, count: number): Promise<any[]> {
  const file = join(config.observability.logDir, `access-${day()}.jsonl`);
  const lines = () => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : []);
  await until(`${count} lines`, () => lines().length >= count, 5000);
  return lines().map((line) => JSON.parse(line));
}

const metricsOf = async (gateway: Gateway) => json(await fetch(`${gateway.base}/admin/api/metrics`));
const captureOf = ({ config }: Gateway, id: string) => join(config.observability.payloadDir, day(), id);
const meta = async (gateway: Gateway, id: string) => {
  const file = join(captureOf(gateway, id), 'meta.json');
  await until(`the capture ${id}`, () => existsSync(file));
  return JSON.parse(readFileSync(file, 'utf8'));
};

const ask = async (gateway: Gateway, id: string) =>
  (await post(gateway, form(toneWav(0.5)), { headers: { 'X-Request-ID': id } })).text();
const toggle = (gateway: Gateway, key: string, value: string) => {
  const data = new FormData();
  data.append('key', key);
  data.append('value', value);
  return fetch(`${gateway.base}/admin/api/observability/toggle`, { method: 'POST', body: data });
};

/** Takes the nearest rank. */
const percentile = (values: number[], p: number) =>
  values.toSorted((a, b) => a - b)[Math.ceil((p / 100) * values.length) - 1];

test('the line of a request for an unknown model has the name that it asked for, cut', async () => {
  await using gateway = await startGateway();
  const long = 'x'.repeat(1000);
  for (const model of ['whisper-9', long, 'base'])
    await (await post(gateway, form(toneWav(0.3), { model }))).text();
  const upgrade = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': '13' };
  const live = request(`${gateway.base}/v1/realtime?model=whisper-8`, {
    headers: { ...upgrade, 'Sec-WebSocket-Key': Buffer.alloc(16).toString('base64') },
  });
  const [refused] = await once(live.end(), 'response');
  refused.resume();
  const lines = (await accessLog(gateway, 4)).map(({ status, model }) => [status, model]);
  assert.deepEqual(lines, [
    [400, 'whisper-9'],
    [400, `${'x'.repeat(512)}…`],
    [200, 'multilingual-base'],
    [400, 'whisper-8'],
  ]);
  const { recent } = (await metricsOf(gateway)).categories.asr;
  const named = recent.map(({ model }: any) => model);
  for (const model of ['whisper-9', 'x'.repeat(128), 'multilingual-base'])
    assert(named.includes(model), model);
  const series = await (await fetch(`${gateway.base}/metrics`)).text();
  assert(!/whisper-9|xxx/.test(series), 'a client cannot make a series');
});

test('percentiles of the metrics are those of the access log', async () => {
  await using upstream = await startHostileUpstream();
  const url = upstream.url;
  await using gateway = await startGateway({ env: { SVC_TTS_UPSTREAM_URL: url, SVC_LLM_BACKEND_URL: url } });
  for (let i = 0; i < 40; i++) {
    await (await post(gateway, form(toneWav(0.3 + (i % 5) / 10)))).text();
    await (await fetch(`${gateway.base}/v1/chat/completions`, { method: 'POST', body: '{}' })).text();
    await (await fetch(`${gateway.base}/v1/audio/voices`)).text();
  }
  await (await post(gateway, form(Buffer.from('no audio')))).text();
  const snapshot = await metricsOf(gateway);
  metricsSchema.parse(snapshot);
  const lines = await accessLog(gateway, 122);
  assert.equal(snapshot.window_sec, 3600);
  for (const category of ['asr', 'tts', 'llm']) {
    const latencies = lines.filter((line) => line.category === category).map((line) => line.latency_ms);
    const { latency_ms, total, counts, error_rate } = snapshot.categories[category];
    for (const p of [50, 95, 99])
      assert.equal(latency_ms[`p${p}`], percentile(latencies, p), `${category} p${p}`);
    assert.equal(total, latencies.length);
    assert.equal(counts['2xx'], 40);
    assert.equal(error_rate, category === 'asr' ? 1 / 41 : 0);
  }
  assert.equal(snapshot.categories.asr.audio_seconds > 10, true);
  assert.equal(snapshot.categories.asr.recent.length, 41);
});

test('every request has one line, with the decided fields', async () => {
  await using gateway = await startGateway();
  const headers = { 'X-Request-ID': 'my:id-1', 'User-Agent': 'tests/1' };
  await (await post(gateway, form(toneWav(1), { language: 'en' }), { headers })).text();
  await (await fetch(`${gateway.base}/v1/models?x=1`, { headers })).text();
  await (await fetch(`${gateway.base}/v1/audio/speech`, { method: 'POST', body: '{}' })).text();
  const [asr, models, tts] = await accessLog(gateway, 3);
  assert.deepEqual(
    [asr.request_id, asr.method, asr.path, asr.category, asr.model, asr.status, asr.class, asr.level],
    ['my:id-1', 'POST', '/v1/audio/transcriptions', 'asr', 'multilingual-base', 200, '2xx', 'info'],
  );
  assert.deepEqual(Object.keys(asr.extra).sort(), [
    'audio_sec',
    'language',
    'provider',
    'route',
    'rtf',
    'slot_wait_ms',
  ]);
  assert(
    asr.bytes_in > 32_000 &&
      asr.bytes_out > 10 &&
      asr.client_ip === '127.0.0.1' &&
      asr.user_agent === 'tests/1',
  );
  assert.equal(asr.extra.provider, 'multilingual');
  assert.deepEqual([models.path, models.status, 'category' in models], ['/v1/models', 200, false]);
  assert.deepEqual([tts.status, tts.extra.provider, tts.extra.error_kind], [503, 'tts', 'network']);
});

test('every request that the parser refuses has one line, whatever comes behind it, and is no inference', async () => {
  await using gateway = await startGateway();
  const unclear =
    'POST /x HTTP/1.1\r\nHost: a\r\nUser-Agent: tests/1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n';
  const expected: object[] = [];
  for (const [bytes, status, known] of [
    ['junk\r\n\r\n', 400, {}],
    [`GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431, {}],
    [unclear, 400, { method: 'POST', path: '/x', user_agent: 'tests/1' }],
  ] as const) {
    using client = rawClient(gateway.base, bytes);
    await until('it is answered', () => client.said().endsWith('}'));
    client.write('more\r\n\r\n'.repeat(100));
    await until('it is closed', client.closed);
    const [head = '', body = ''] = client.said().split('\r\n\r\n');
    const [, id] = /^X-Request-ID: (.*)$/m.exec(head) ?? [];
    expected.push({
      ...{ level: 'warn', request_id: id, status, class: '4xx', latency_ms: 0, bytes_in: 0 },
      ...{ bytes_out: body.length, client_ip: '127.0.0.1', ...known },
      extra: { provider: 'voxgate', error_kind: 'malformed' },
    });
  }
  const series = await (await fetch(`${gateway.base}/metrics`)).text();
  assert.doesNotMatch(series, /^voxgate_requests_total\{/m);
  await (await fetch(`${gateway.base}/admin`)).text();
  const lines = await accessLog(gateway, 4);
  assert.deepEqual(
    lines.slice(0, 3).map(({ ts, ...line }) => line),
    expected,
  );
  assert.deepEqual([lines.length, lines[3].path], [4, '/admin']);
});

test('a probe has a line when it fails, and always where a setting wants it', async () => {
  const key = { Authorization: 'Bearer k' };
  const linesWith = async (env: Record<string, string>) => {
    await using gateway = await startGateway({ env: { SVC_API_KEY: 'k', ...env } });
    const ask = async (path: string, init: RequestInit = {}) =>
      (await fetch(gateway.base + path, init)).text();
    for (const path of ['/health', '/ready?why=probe', '/metrics']) {
      await ask(path, { headers: key });
      await ask(path, { headers: key, method: 'HEAD' });
    }
    await ask('/metrics');
    await ask('/health', { method: 'POST' });
    await ask('/v1/models', { headers: key });
    await accessLog(gateway, 3);
    await gateway.app.close();
    return (await accessLog(gateway, 3)).map(({ method, path, status }) => `${method} ${path} ${status}`);
  };
  const others = ['GET /metrics 401', 'POST /health 405', 'GET /v1/models 200'];
  assert.deepEqual(await linesWith({}), others);
  assert.deepEqual(await linesWith({ SVC_OBS_LOG_PROBES: 'on' }), [
    ...['/health', '/ready', '/metrics'].flatMap((path) => [`GET ${path} 200`, `HEAD ${path} 200`]),
    ...others,
  ]);
});

test('the line of a european transcription has the language of its words', async () => {
  await using gateway = await startGateway({
    installed: ['european', 'voice-activity'],
    transcribe: async () => heard(' Je ne sais pas pourquoi le train est en retard.'),
  });
  for (const stream of ['true', 'false'])
    await (await post(gateway, form(toneWav(1), { model: 'european', stream }))).text();
  const lines = await accessLog(gateway, 2);
  assert.deepEqual(
    lines.map((line) => line.extra.language),
    ['fr', 'fr'],
  );
});

test('a toggle stops and starts each instrument', async () => {
  await using gateway = await startGateway();
  for (const key of ['metrics', 'access_log']) assert.equal((await toggle(gateway, key, 'off')).status, 200);
  await ask(gateway, 'unseen');
  for (const key of ['metrics', 'access_log', 'payload']) await (await toggle(gateway, key, 'YES')).text();
  await ask(gateway, 'seen');
  await meta(gateway, 'seen');
  assert(!existsSync(captureOf(gateway, 'unseen')));
  const { asr } = (await metricsOf(gateway)).categories;
  assert.deepEqual([asr.total, asr.recent[0].request_id], [1, 'seen']);
  const lines = await accessLog(gateway, 4); // These are two toggles, the request `seen`, and the metrics.
  assert(
    lines.some((line) => line.request_id === 'seen') && !lines.some((line) => line.request_id === 'unseen'),
  );
});

test('a capture has the bodies as they were and the headers without secrets, and a busy refusal has none', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave(wholeAnswer('spoken', '200 OK', { 'Set-Cookie': 'secret=1' }));
  await using gateway = await startGateway({
    env: { SVC_TTS_UPSTREAM_URL: upstream.url, SVC_OBS_PAYLOAD_ENABLED: '1' },
  });
  const say = (id: string) =>
    fetch(`${gateway.base}/v1/audio/speech?v=2`, {
      method: 'POST',
      body: '{"input":"hello","model":"tts-1"}',
      headers: {
        ...{ 'X-Request-ID': id, 'Content-Type': 'application/json', Authorization: 'Bearer s3cret' },
        ...{ 'X-Api-Key': 's3cret', Cookie: 's3cret=1', 'X-Kept': 'yes' },
      },
    });
  for (let i = 0; i < 3; i++) assert.equal(await (await say('..')).text(), 'spoken');
  const first = await meta(gateway, '%2E%2E');
  await meta(gateway, '%2E%2E-2');
  await meta(gateway, '%2E%2E-3');
  const folder = captureOf(gateway, '%2E%2E');
  assert.equal(readFileSync(join(folder, 'req.bin'), 'utf8'), '{"input":"hello","model":"tts-1"}');
  assert.equal(readFileSync(join(folder, 'resp.bin'), 'utf8'), 'spoken');
  assert(!JSON.stringify(first).includes('s3cret') && !JSON.stringify(first).includes('secret=1'));
  assert.equal(first.request_headers['x-kept'], 'yes');
  assert.deepEqual(
    [first.method, first.url, first.status, first.model],
    ['POST', '/v1/audio/speech?v=2', 200, 'tts-1'],
  );

  const audio = toneWav(0.5);
  const response = await post(gateway, form(audio), { headers: { 'X-Request-ID': 'asr-1' } });
  const answer = Buffer.from(await response.arrayBuffer());
  await meta(gateway, 'asr-1');
  assert.deepEqual(readFileSync(join(captureOf(gateway, 'asr-1'), 'resp.bin')), answer);
  assert(
    readFileSync(join(captureOf(gateway, 'asr-1'), 'req.bin')).includes(audio),
    'the form as it was sent',
  );

  {
    using _held = gateway.app.slot.take('llm', 'x');
    assert.equal((await say('refused')).status, 503);
    assert.equal((await post(gateway, form(audio), { headers: { 'X-Request-ID': 'refused' } })).status, 503);
  }
  // Captures are written in the order of the requests: once this one is there, theirs would be too.
  await ask(gateway, 'after');
  await meta(gateway, 'after');
  assert(!existsSync(captureOf(gateway, 'refused')));
});

test('a folder that cannot be written switches capture off and harms no request, and capture can be switched on again', async () => {
  await using gateway = await startGateway({ env: { SVC_OBS_PAYLOAD_ENABLED: '1' } });
  const { payloadDir } = gateway.config.observability;
  const shown = async () => {
    const page = await (await fetch(`${gateway.base}/admin/fragments/observability`)).text();
    return /aria-checked="(true|false)" aria-labelledby="switch-payload"/.exec(page)?.[1];
  };
  mkdirSync(join(payloadDir, '..'), { recursive: true });
  writeFileSync(payloadDir, 'a file where the folder should be');
  assert.equal(await shown(), 'true');
  for (let i = 0; i < 3; i++) assert.equal((await post(gateway, form(toneWav(0.5)))).status, 200);
  await until('the switch shows that it is off', async () => (await shown()) === 'false');

  rmSync(payloadDir);
  await ask(gateway, 'while-off');
  await (await toggle(gateway, 'payload', 'on')).text();
  await ask(gateway, 'again');
  assert.equal((await meta(gateway, 'again')).status, 200);
  assert.deepEqual(readdirSync(join(payloadDir, day())), ['again']);
});

test('a capture is replayed and compared from the page and by the replay itself', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave(wholeAnswer('one answer'));
  await using gateway = await startGateway({
    env: { SVC_LLM_BACKEND_URL: upstream.url, SVC_OBS_PAYLOAD_ENABLED: '1' },
  });
  const headers = { 'X-Request-ID': 'again' };
  await (
    await fetch(`${gateway.base}/v1/chat/completions`, { method: 'POST', body: '{"a":1}', headers })
  ).text();
  await (await post(gateway, form(toneWav(0.5)), { headers: { 'X-Request-ID': 'asr' } })).text();
  await meta(gateway, 'again');
  await meta(gateway, 'asr');
  const page = (id: string) =>
    fetch(`${gateway.base}/admin/captures/${id}/replay`, { method: 'POST' }).then((response) =>
      json(response),
    );
  assert.equal((await page('again')).same, true);
  assert.equal((await page('asr')).same, true);
  upstream.behave(wholeAnswer('one other'));
  assert.equal((await page('again')).same, false);
  const { replay } = await import('../../src/capture/replay.ts');
  const report = await replay(captureOf(gateway, 'again'), gateway.base);
  assert.match(report.summary, /differ from byte 4 on/);
  await using below = await startHostileUpstream();
  below.behave(wholeAnswer('one other'));
  await replay(captureOf(gateway, 'again'), `${below.url}/voice/`);
  assert.match(below.heads[0] ?? '', /^POST \/voice\/v1\/chat\/completions /);
  assert.equal((await fetch(`${gateway.base}/admin/captures/none`)).status, 404);
});

test('a replay leaves out the headers in which a browser described its page', async () => {
  await using upstream = await startHostileUpstream();
  await using gateway = await startGateway({
    env: { SVC_LLM_BACKEND_URL: upstream.url, SVC_OBS_PAYLOAD_ENABLED: '1' },
  });
  const { port } = new URL(gateway.base);
  const context = {
    ...{ Origin: gateway.base, Referer: `${gateway.base}/playground`, 'Sec-Fetch-Site': 'same-origin' },
    ...{ 'Sec-Fetch-Mode': 'cors', 'Sec-CH-UA': '"Chromium"', 'X-Custom': 'kept', 'X-Request-ID': 'page' },
    ...{
      'X-Forwarded-For': '203.0.113.7',
      'X-Forwarded-Host': 'speech.example',
      Forwarded: 'for=203.0.113.7',
    },
  };
  await new Promise<void>((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path: '/v1/chat/completions', method: 'POST', agent: false };
    const req = request({ ...options, headers: context }, (res) => res.resume().on('end', resolve));
    req.on('error', reject);
    req.end('{}');
  });
  await meta(gateway, 'page');
  // The replay goes to another gateway, as from the command line, for which the page's site is a foreign one.
  await using elsewhere = await startGateway({ env: { SVC_LLM_BACKEND_URL: upstream.url } });
  const { replay } = await import('../../src/capture/replay.ts');
  const report = await replay(captureOf(gateway, 'page'), elsewhere.base);
  assert.deepEqual([report.status.now, report.same], [200, true]);
  const again = upstream.heads[1] ?? '';
  assert.match(again, /^x-custom: kept/im);
  // fetch adds a Sec-Fetch-Mode of its own, but the one that the page sent must not come with it.
  assert.doesNotMatch(again, /^(origin|referer|sec-fetch-site|sec-ch-ua|x-forwarded|forwarded)/im);
});

test('client_ip is the address of the socket, unless a trusted proxy names the client’s', async () => {
  const forwarded = 'made up, 203.0.113.7';
  for (const [trust, header, expected] of [
    ['', forwarded, '127.0.0.1'],
    ['1', forwarded, '203.0.113.7'],
    ['1', 'not an address', '127.0.0.1'],
    ['1', '', '127.0.0.1'],
    ['2', '203.0.113.7, 10.1.2.3', '203.0.113.7'],
    ['10.0.0.0/8', forwarded, '127.0.0.1'],
    ['loopback, 10.0.0.0/8', `${forwarded}, 10.1.2.3`, '203.0.113.7'],
  ] as const) {
    await using gateway = await startGateway({ env: { SVC_TRUST_PROXY: trust } });
    await (await fetch(`${gateway.base}/v1/models`, { headers: { 'X-Forwarded-For': header } })).text();
    const [line] = await accessLog(gateway, 1);
    assert.equal(line.client_ip, expected, `${trust}: ${header}`);
  }
});

test('a request refused at the door counts in the category it would have had, and is not captured', async () => {
  await using gateway = await startGateway({
    env: { SVC_API_KEY: 'k', SVC_OBS_PAYLOAD_ENABLED: '1' },
  });
  const { port } = new URL(gateway.base);
  const ask = (path: string, method: string, headers: Record<string, string>) =>
    new Promise<number>((resolve, reject) => {
      const options = { host: '127.0.0.1', port, path, method, headers, agent: false };
      const req = request(options, (res) => res.resume().on('end', () => resolve(res.statusCode ?? 0)));
      req.on('error', reject);
      req.end();
    });
  const key = { Authorization: 'Bearer k' };
  for (const [path, category] of [
    ['/v1/audio/transcriptions', 'asr'],
    ['/v1/audio/translations', 'asr'],
    ['/v1/audio/speech', 'tts'],
    ['/v1/audio/transcriptions/below', 'asr'],
    ['/v1/audio/voices/%E0%A4%A', 'tts'],
    ['/v1/chat/completions', 'llm'],
  ] as const) {
    const before = gateway.exchanges.length;
    assert.equal(await ask(path, 'POST', {}), 401);
    assert.equal(await ask(path, 'POST', { ...key, Origin: 'https://evil.example' }), 403);
    assert.equal(await ask(path, 'POST', { ...key, Host: 'evil.example' }), 403);
    assert.equal(await ask(path, 'POST', { ...key, Expect: 'more' }), 417);
    await ask(path, 'OPTIONS', key);
    await until('all were observed', () => gateway.exchanges.length === before + 5);
    const categories = gateway.exchanges.slice(before).map((exchange) => exchange.category);
    assert.deepEqual(categories, [category, category, category, category, undefined], path);
  }
  assert.equal(await ask('/v1/audio/transcriptions', 'GET', { ...key, 'X-Request-ID': 'last' }), 405);
  const response = await fetch(`${gateway.base}/admin/api/metrics`, { headers: key });
  const { asr, tts, llm } = (await json(response)).categories;
  assert.deepEqual([asr.counts['4xx'], tts.counts['4xx'], llm.counts['4xx']], [13, 8, 4]);
  const lines = await accessLog(gateway, 32);
  const refused = lines.filter((line) => [401, 403].includes(line.status));
  assert.equal(refused.length, 18);
  assert(refused.every((line) => ['asr', 'tts', 'llm'].includes(line.category)));
  await meta(gateway, 'last');
  for (const { request_id } of refused) assert(!existsSync(captureOf(gateway, request_id)));
});

test('Prometheus counts the same requests as the metrics', async () => {
  await using gateway = await startGateway();
  await (await post(gateway, form(toneWav(1)))).text();
  await (await post(gateway, form(Buffer.from('no')))).text();
  const text = await (await fetch(`${gateway.base}/metrics`)).text();
  assert.match(text, /voxgate_requests_total\{category="asr",class="2xx",model="multilingual-base"\} 1/);
  assert.match(text, /voxgate_requests_total\{category="asr",class="4xx",model="multilingual-base"\} 1/);
  const dashboard = readFileSync(new URL('../../deploy/grafana-dashboard.json', import.meta.url), 'utf8');
  const asked = new Set([...dashboard.matchAll(/(?:voxgate|nodejs|process)_\w+/g)].map(([name]) => name));
  assert(asked.size > 8);
  for (const name of asked) {
    const histogram = /^(.*)_(?:bucket|sum|count)$/.exec(name)?.[1];
    const type = histogram === undefined ? `# TYPE ${name} ` : `# TYPE ${histogram} histogram\n`;
    assert(text.includes(type), `the Grafana dashboard asks for ${name}`);
  }
  const conversations = [...text.matchAll(/^# TYPE (voxgate_conversation_\w+) (\w+)$/gm)];
  assert(conversations.length > 0);
  for (const [, name, type] of conversations) {
    const shown = type === 'histogram' ? `${name}_bucket` : (name ?? '');
    assert(asked.has(shown), `no panel of the Grafana dashboard shows ${name}`);
  }
  const [, errors, served] = /"(sum by \S+ \(rate\(\S*4xx\|5xx\S*) \/ (.*)",$/m.exec(dashboard) ?? [];
  assert(errors);
  assert.equal(served, errors.replace('4xx|5xx', '2xx|4xx|5xx'), 'its error rate is that of the metrics');
});

test('calls of upstreams are counted by the models that these list, and what runs is told', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave(wholeAnswer('{"data":[{"id":"llama3:latest"},{"id":"kokoro"},{"id":"e5"}]}'));
  const url = upstream.url;
  await using gateway = await startGateway({ env: { SVC_TTS_UPSTREAM_URL: url, SVC_LLM_BACKEND_URL: url } });
  const series = async () => await (await fetch(`${gateway.base}/metrics`)).text();
  await series(); // reads the lists
  for (const [path, model] of [
    ['chat/completions', 'llama3'],
    ['completions', 'llama3:latest'],
    ['embeddings', 'e5'],
    ['embeddings', 'made-up'],
    ['audio/speech', 'kokoro'],
  ]) {
    const headers = { 'Content-Type': 'application/json' };
    const init = { method: 'POST', headers, body: JSON.stringify({ model }) };
    await (await fetch(`${gateway.base}/v1/${path}`, init)).text();
  }
  await using _live = await connectLive(gateway);
  const text = await series();
  for (const line of [
    'voxgate_requests_total{category="llm",class="2xx",model="llama3:latest"} 2',
    'voxgate_requests_total{category="llm",class="2xx",model="e5"} 1',
    'voxgate_requests_total{category="llm",class="2xx",model="other"} 1',
    'voxgate_requests_total{category="tts",class="2xx",model="kokoro"} 1',
    'voxgate_upstream_up{upstream="llm"} 1',
    'voxgate_live_sessions{protocol="realtime"} 1',
    `voxgate_build_info{version="${VERSION}",`,
  ])
    assert(text.includes(line), `missing: ${line}\n${text}`);
});

test('a stop loses no line', async () => {
  await using gateway = await startGateway();
  const { logDir } = gateway.config.observability;
  for (let i = 0; i < 50; i++) await (await fetch(`${gateway.base}/openapi.json`)).text();
  const lines: string[] = [];
  const { app } = gateway;
  await app.close();
  for (const name of readdirSync(logDir))
    lines.push(...readFileSync(join(logDir, name), 'utf8').split('\n').slice(0, -1));
  assert.equal(lines.length, 50);
});

test('reset-asr-state takes models out of memory, and a request under way keeps its own', async () => {
  let go: () => void = () => undefined;
  const waiting = new Promise<void>((resolve) => {
    go = resolve;
  });
  await using gateway = await startGateway({ transcribe: () => waiting.then(() => heard(' Still here.')) });
  const reset = () => fetch(`${gateway.base}/admin/api/reset-asr-state`, { method: 'POST' });
  assert.deepEqual(await json(await reset()), { evicted: 0, remaining: 0 });
  const running = post(gateway, form(toneWav(1)));
  await until('it runs', () => gateway.running() === 1);
  assert.equal(gateway.loads.at(-1), 'multilingual-base');
  assert.deepEqual(await json(await reset()), { evicted: 1, remaining: 1 }, 'in use, so still in memory');
  assert.deepEqual(await json(await reset()), { evicted: 0, remaining: 1 });
  const loaded = async () => (await json(await fetch(`${gateway.base}/v1/models/multilingual-base`))).loaded;
  assert.equal(await loaded(), false);
  go();
  assert.equal((await json(await running)).text, 'Still here.');
  assert.deepEqual(await json(await reset()), { evicted: 0, remaining: 0 });
  await (await post(gateway, form(toneWav(0.5)))).text();
  assert.equal(await loaded(), true, 'the next request loads it again');
});

test('reset-asr-state takes the models of voice activity and of speakers out of memory too', async () => {
  await using gateway = await startGateway({ speakers: scriptedVoices() });
  const reset = async () =>
    json(await fetch(`${gateway.base}/admin/api/reset-asr-state`, { method: 'POST' }));
  for (const round of [1, 2]) {
    const fields = { diarize: 'true', response_format: 'verbose_json' };
    await (await post(gateway, form(toneWav(0.5), fields))).text();
    for (const helper of ['voice-activity', 'diarization'])
      assert.equal(gateway.loads.filter((id) => id === helper).length, round, helper);
    assert.deepEqual(await reset(), { evicted: 1, remaining: 0 }, 'recognition models are counted');
  }
});

test('the sweeper removes at the start what is too old, then the oldest above the size, and leaves the rest', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'voxgate-sweep-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const yesterday = day(new Date(Date.now() - 86_400_000));
  for (const [date, name, bytes] of [
    ['2020-01-01', 'old', 1],
    [yesterday, 'large', 4000],
    [day(), 'new', 1],
  ] as const) {
    mkdirSync(join(dir, date, name), { recursive: true });
    writeFileSync(join(dir, date, name, 'req.bin'), Buffer.alloc(bytes));
  }
  {
    await using _gateway = await startGateway({ env: { SVC_OBS_PAYLOAD_DIR: dir } });
    await until('the old one is swept', () => !existsSync(join(dir, '2020-01-01')));
    assert.deepEqual(readdirSync(dir).sort(), [yesterday, day()]);
  }
  const env = { SVC_OBS_PAYLOAD_DIR: dir, SVC_OBS_PAYLOAD_MAX_GB: '0.00002' };
  await using _gateway = await startGateway({ env });
  await until('the large one is swept', () => !existsSync(join(dir, yesterday)));
  assert(existsSync(join(dir, day(), 'new')));
});
