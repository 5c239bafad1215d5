/** Short-lived keys for live sessions: what they open, what their sessions begin with, and what may not make one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startHostileUpstream, wholeAnswer } from '../faults/hostile-upstream.ts';
import { type Gateway, json, startGateway } from './harness.ts';
import { at16kHz, COMPLETED, connectLive, silence, tone } from './realtime.ts';

const SECRETS = '/v1/realtime/client_secrets';
const BETA = '/v1/realtime/transcription_sessions';
const KEY = 'the-right-key';
const env = { SVC_API_KEY: KEY };
const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });

const ask = ({ base }: Gateway, body: unknown, { path = SECRETS, key = KEY, ip = '127.0.0.1' } = {}) =>
  fetch(base + path, {
    method: 'POST',
    headers: { ...bearer(key), 'Content-Type': 'application/json', 'X-Forwarded-For': ip },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });

async function secretOf(gateway: Gateway, body: unknown = {}, options = {}): Promise<string> {
  const response = await ask(gateway, body, options);
  assert.equal(response.status, 200, await response.clone().text());
  return (await json(response)).value;
}

const german = {
  type: 'transcription',
  audio: {
    input: {
      format: { type: 'audio/pcm', rate: 16_000 },
      transcription: { model: 'whisper-1', language: 'de', keywords: ['voxgate'] },
      turn_detection: { type: 'server_vad', silence_duration_ms: 300 },
    },
  },
  include: ['item.input_audio_transcription.logprobs'],
};

/** Whether a live session opens with this key. */
const opens = async (gateway: Gateway, key: string) => {
  try {
    await using client = await connectLive(gateway, { headers: bearer(key) });
    return (await client.event('session.created')).type;
  } catch (error) {
    return (error as { status?: number }).status;
  }
};

test('a secret opens live sessions with the settings that it was made with, several times, by header and by subprotocol', async () => {
  await using gateway = await startGateway({ env });
  const startedAt = Math.floor(Date.now() / 1000);
  const response = await ask(gateway, {
    expires_after: { anchor: 'created_at', seconds: 60 },
    session: german,
  });
  assert.equal(response.headers.get('cache-control'), 'no-store');
  const { value, expires_at, session } = await json(response);
  assert.match(value, /^ek_[\w-]+$/);
  assert(expires_at >= startedAt + 60 && expires_at <= startedAt + 62, `${expires_at - startedAt}`);
  assert.deepEqual([session.type, session.object], ['transcription', 'realtime.transcription_session']);
  assert.match(session.id, /^sess_/);
  for (const access of [
    { headers: bearer(value) },
    { protocols: ['realtime', `openai-insecure-api-key.${value}`] },
  ]) {
    await using client = await connectLive(gateway, { ...access, query: '?model=gpt-realtime' });
    const created = await client.event('session.created');
    const { id, expires_at: end, ...begun } = created.session;
    assert.notEqual(id, session.id);
    assert(end > expires_at, 'a session may go on after its secret has expired');
    assert.deepEqual({ id: session.id, ...begun }, session);
    assert.deepEqual(begun.audio.input.transcription, german.audio.input.transcription);
    client.speak(tone(1));
    client.speak(silence(1));
    const { transcript, logprobs } = await client.event(COMPLETED);
    assert.deepEqual([transcript, logprobs.length > 0], ['Hello there.', true]);
  }
});

test('a secret of the beta for a conversation opens one, with its settings and the names of the beta', async () => {
  await using gateway = await startGateway({ env });
  const asked = {
    model: 'gpt-4o-realtime-preview',
    voice: 'verse',
    modalities: ['text'],
    instructions: 'Hm.',
  };
  const response = await ask(gateway, asked, { path: '/v1/realtime/sessions' });
  assert.equal(response.status, 200, await response.clone().text());
  const { client_secret: secret, ...session } = await json(response);
  for (const [name, value] of Object.entries(asked)) assert.deepEqual(session[name], value, name);
  const protocols = ['realtime', `openai-insecure-api-key.${secret.value}`, 'openai-beta.realtime-v1'];
  await using client = await connectLive(gateway, { protocols, query: '?model=gpt-4o-realtime-preview' });
  const { session: begun } = await client.event('session.created');
  for (const [name, value] of Object.entries(asked)) assert.deepEqual(begun[name], value, name);
  const bad = await ask(gateway, { modalities: ['smell'] }, { path: '/v1/realtime/sessions' });
  assert.deepEqual([bad.status, (await json(bad)).error.code], [400, 'invalid_value']);
});

test('what a secret sets are defaults, which the session may change', async () => {
  await using gateway = await startGateway({ env });
  await using client = await connectLive(gateway, {
    headers: bearer(await secretOf(gateway, { session: german })),
  });
  client.send(at16kHz({ transcription: { language: 'en' } }));
  const { input } = (await client.event('session.updated')).session.audio;
  assert.deepEqual(input.transcription, { ...german.audio.input.transcription, language: 'en' });
  const bare = await secretOf(gateway, {
    session: { audio: { input: { transcription: { language: 'fr' } } } },
  });
  await using other = await connectLive(gateway, {
    headers: bearer(bare),
    query: '?model=gpt-4o-transcribe',
  });
  assert.deepEqual((await other.event('session.created')).session.audio.input.transcription, {
    language: 'fr',
    model: 'gpt-4o-transcribe',
  });
});

test('a secret opens nothing but live sessions, and those of another gateway or of nobody open none', async () => {
  await using gateway = await startGateway({ env, budgets: { access: { wrongKeys: 3 } } });
  const value = await secretOf(gateway);
  for (const path of ['/v1/models', '/metrics', '/admin/api/metrics', SECRETS, BETA, '/v1/audio/voices'])
    for (const method of ['GET', 'POST']) {
      const response = await fetch(gateway.base + path, { method, headers: bearer(value) });
      assert.equal(response.status, 401, `${method} ${path}`);
      assert.equal((await json(response)).error.code, 'invalid_client_secret');
      assert.match(response.headers.get('www-authenticate') ?? '', /^Bearer/);
    }
  for (const wrong of ['ek_', `${value}x`, value.slice(0, -1), value.toUpperCase(), `ek_${value}`])
    assert.equal(await opens(gateway, wrong), 401, wrong);
  // Wrong secrets are not counted as wrong keys.
  assert.equal(await opens(gateway, value), 'session.created');
  assert.equal((await fetch(`${gateway.base}/v1/models`, { headers: bearer(KEY) })).status, 200);
  assert.equal((await ask(gateway, {}, { key: 'wrong' })).status, 401, 'it takes a key to make one');
});

test('a secret works also where no key is needed, is never passed on, and one that is unknown is refused there', async () => {
  await using upstream = await startHostileUpstream();
  upstream.behave(wholeAnswer('{}', '200 OK', { 'Content-Type': 'application/json' }));
  await using gateway = await startGateway({ env: { SVC_LLM_BACKEND_URL: upstream.url } });
  const value = await secretOf(gateway, { session: german });
  await using client = await connectLive(gateway, { headers: bearer(value) });
  const { session } = await client.event('session.created');
  assert.equal(session.audio.input.transcription.language, 'de');
  for (const headers of [bearer(value), { 'X-Api-Key': value }, { 'Api-Key': value }] as Record<
    string,
    string
  >[]) {
    const response = await fetch(`${gateway.base}/v1/chat/completions`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ model: 'x', messages: [] }),
    });
    assert.equal(response.status, 200);
    await response.text();
  }
  const heads = upstream.heads.filter((head) => head.startsWith('POST'));
  assert.equal(heads.length, 3);
  for (const head of heads) assert(!head.includes(value), head);
  assert(!gateway.logged.join('').includes(value));
  assert.equal(await opens(gateway, `${value}x`), 401);
  assert.equal(await opens(gateway, 'none'), 'session.created');
});

test('a secret of a conversation opens a session with its settings', async () => {
  await using gateway = await startGateway({ env });
  const audio = { output: { voice: 'nova', speed: 1.5 } };
  const session = { type: 'realtime', instructions: 'Be short.', output_modalities: ['audio'], audio };
  const made = await json(await ask(gateway, { session }));
  assert.deepEqual([made.session.type, made.session.instructions], ['realtime', 'Be short.']);
  const access = { headers: { Authorization: `Bearer ${made.value}` }, query: '?model=gpt-realtime' };
  await using client = await connectLive(gateway, access);
  const opened = (await client.event('session.created')).session;
  assert.deepEqual(
    [opened.type, opened.model, opened.instructions, opened.audio.output.voice, opened.audio.output.speed],
    ['realtime', 'gpt-realtime', 'Be short.', 'nova', 1.5],
  );
});

test('a session, a lifetime or a body that cannot be is a 400 that names the field', async () => {
  await using gateway = await startGateway({ env });
  const bad: [string | object, string | null, string][] = [
    [{ expires_after: { anchor: 'created_at', seconds: 9 } }, 'expires_after.seconds', 'invalid_value'],
    [{ expires_after: { anchor: 'created_at', seconds: 7201 } }, 'expires_after.seconds', 'invalid_value'],
    [{ expires_after: { seconds: 60.5 } }, 'expires_after.seconds', 'invalid_value'],
    [{ expires_after: { seconds: '60' } }, 'expires_after.seconds', 'invalid_value'],
    [{ expires_after: { anchor: 'now' } }, 'expires_after.anchor', 'invalid_value'],
    [{ session: { type: 'translation', model: 'gpt-realtime' } }, 'session.type', 'invalid_value'],
    [{ session: { type: 'realtime', output_modalities: [] } }, 'session.output_modalities', 'invalid_value'],
    [{ session: 'transcription' }, 'session', 'invalid_value'],
    [
      { session: { audio: { input: { format: { type: 'audio/pcm', rate: 1 } } } } },
      'session.audio.input.format.rate',
      'invalid_value',
    ],
    [{ session: { audio: { input: { transcription: { model: 'nope' } } } } }, 'model', 'unknown_model'],
    [
      { session: { audio: { input: { turn_detection: { type: 'semantic_vad' } } } } },
      'session.audio.input.turn_detection.type',
      'invalid_value',
    ],
    [[], 'body', 'invalid_value'],
    ['{', null, 'bad_request'],
    ['"text"', null, 'bad_request'],
  ];
  for (const [body, param, code] of bad) {
    const response = await ask(gateway, body);
    const { error } = await json(response);
    assert.deepEqual(
      [response.status, error.kind, error.param, error.code],
      [400, 'malformed', param, code],
      JSON.stringify(body),
    );
  }
  const beta = await json(
    await ask(gateway, { client_secret: { expires_at: { seconds: 1 } } }, { path: BETA }),
  );
  assert.equal(beta.error.param, 'client_secret.expires_at.seconds');
  const long = await ask(gateway, { session: { instructions: 'a'.repeat(16 * 1024) } });
  assert.equal(long.status, 413);
  assert.equal((await json(long)).error.code, 'body_too_large');
});

test('a body without a type, and no body at all, make a secret, too', async () => {
  await using gateway = await startGateway();
  const named = await fetch(gateway.base + SECRETS, {
    method: 'POST',
    body: JSON.stringify({ session: german }),
  });
  assert.equal((await json(named)).session.audio.input.transcription.language, 'de');
  const bare = await fetch(gateway.base + SECRETS, { method: 'POST' });
  assert.equal((await json(bare)).session.type, 'transcription');
});

test('the beta makes a secret with flat fields, and shows it within its session', async () => {
  await using gateway = await startGateway({ env });
  const response = await ask(
    gateway,
    {
      input_audio_format: 'g711_ulaw',
      input_audio_transcription: { model: 'gpt-4o-transcribe', language: 'en' },
      client_secret: { expires_at: { anchor: 'created_at', seconds: 30 } },
    },
    { path: BETA },
  );
  const { client_secret: secret, ...session } = await json(response);
  assert(Math.abs(secret.expires_at - Date.now() / 1000 - 30) <= 2);
  assert.equal(session.input_audio_format, 'g711_ulaw');
  const protocols = ['realtime', `openai-insecure-api-key.${secret.value}`, 'openai-beta.realtime-v1'];
  await using client = await connectLive(gateway, { protocols });
  const created = await client.event('transcription_session.created');
  assert.deepEqual(
    [created.session.input_audio_format, created.session.input_audio_transcription.language],
    ['g711_ulaw', 'en'],
  );
});

test('only so many secrets are kept, and one address cannot take those of another', async () => {
  await using gateway = await startGateway({
    env: { ...env, SVC_TRUST_PROXY: 'loopback' },
    budgets: { clientSecrets: { most: 4 } },
  });
  const first = await secretOf(gateway, {}, { ip: '127.0.0.5' });
  const many: string[] = [];
  for (let count = 0; count < 8; count += 1) many.push(await secretOf(gateway, {}, { ip: '127.0.0.9' }));
  assert.equal(await opens(gateway, first), 'session.created');
  assert.equal(await opens(gateway, many[4] ?? ''), 401, 'the oldest has ended');
  assert.equal(await opens(gateway, many[5] ?? ''), 'session.created');
});
