/** Live sessions when something goes wrong: each fault has an event or a close code, and leaves nothing behind. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import {
  form,
  type Gateway,
  heard,
  json,
  post,
  startGateway,
  toneWav,
  until,
  untilWaiting,
} from '../http/harness.ts';
import {
  append,
  at16kHz,
  COMPLETED,
  connectLive,
  DELTA,
  FAILED,
  type LiveClient,
  silence,
  tone,
} from '../http/realtime.ts';

const say = (client: LiveClient) => {
  client.speak(tone(1));
  client.speak(silence(1));
};
const isFree = (gateway: Gateway) => gateway.app.slot.status().holder === null;

/** Holds the slot like a request until it is told to end. */
async function busy(gateway: Gateway) {
  await until('the slot is free', () => isFree(gateway));
  return gateway.app.slot.take('tts', 'other');
}

test('an utterance waits for a busy slot, and has its text when the slot is free', async () => {
  await using gateway = await startGateway();
  await using client = await connectLive(gateway);
  const hold = await busy(gateway);
  client.send(at16kHz());
  say(client);
  await client.event('input_audio_buffer.committed');
  assert.equal(gateway.begun(), 0);
  hold[Symbol.dispose]();
  await client.event(COMPLETED);
  assert((gateway.exchanges[0]?.slotWaitMs ?? 0) > 0);
});

test('an utterance that waits for too long fails with slot_busy, and the session goes on', async () => {
  await using gateway = await startGateway({ env: { SVC_LIVE_WAIT_SEC: '0.2' } });
  await using client = await connectLive(gateway);
  client.send(at16kHz());
  {
    using _hold = await busy(gateway);
    say(client);
    const { error, item_id } = await client.event(FAILED);
    assert.deepEqual([error.type, error.code], ['server_error', 'slot_busy']);
    assert.equal(gateway.exchanges[0]?.class, '503-busy');
    assert.equal(item_id, gateway.exchanges[0]?.requestId);
  }
  say(client);
  await client.event(COMPLETED);
  assert(!client.events.some(({ type }) => type === 'error'));
});

test('what is heard while someone speaks gives way to every request at once', async () => {
  let partials = 0;
  await using gateway = await startGateway({
    transcribe: (samples, _options, { signal }) => {
      if (samples.length > 3 * 16_000) return Promise.resolve(heard(' The file.'));
      partials += 1;
      return new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason));
      });
    },
  });
  await using client = await connectLive(gateway);
  client.send(at16kHz({ transcription: { delay: 'minimal' } }));
  client.speak(tone(1));
  await until('a partial text is computed', () => partials === 1);
  assert.equal(gateway.app.slot.status().holder, 'asr');
  const answer = await post(gateway, form(toneWav(5)));
  assert.equal(answer.status, 200);
  assert.equal((await json(answer)).text, 'The file.');
  assert(!client.events.some(({ type }) => type === DELTA || type === FAILED));
});

test('a client that vanishes within an utterance leaves nothing running and the slot free', async () => {
  let calls = 0;
  await using gateway = await startGateway({
    transcribe: (_samples, _options, { signal }) => {
      calls += 1;
      return new Promise((_resolve, reject) =>
        signal?.addEventListener('abort', () => reject(signal.reason)),
      );
    },
  });
  for (const leave of ['while speaking', 'while its text is computed']) {
    calls = 0;
    await using client = await connectLive(gateway);
    client.send(at16kHz({ transcription: { delay: leave === 'while speaking' ? 'minimal' : 'xhigh' } }));
    client.speak(tone(1));
    if (leave !== 'while speaking') client.speak(silence(1));
    await until(`it is computed ${leave}`, () => calls > 0 && gateway.running() > 0);
    client.socket.terminate();
    await until(`nothing is left ${leave}`, () => isFree(gateway) && gateway.running() === 0);
  }
});

test('a half-open connection is ended when it answers no ping', async () => {
  await using gateway = await startGateway({ budgets: { live: { pingMs: 50 } } });
  await using client = await connectLive(gateway);
  await client.event('session.created');
  client.socket.pause(); // as if the network swallowed everything
  await until('the gateway gives it up', () => gateway.exchanges.length === 1);
  assert(gateway.logged.some((line) => /answered no ping/.test(line) && line.includes('"code":1008')));
  client.socket.resume();
  await until('it is told, should it come back', () => client.closed() === 1008);
});

test('garbage is an error event or a close code, and what comes after an event still works', async () => {
  await using gateway = await startGateway();
  await using client = await connectLive(gateway);
  for (const text of ['', 'no json', '[]', '{}', '{"type":7}', '{"type":"response.create"}', '"x"'])
    client.socket.send(text);
  client.socket.send(Buffer.from([1, 2, 3]));
  client.send({ type: 'input_audio_buffer.append', audio: '%%%' });
  client.send({ type: 'input_audio_buffer.append' });
  client.send({ type: 'session.update', session: 'none' });
  await client.event('error', 11);
  client.send(at16kHz());
  say(client);
  await client.event(COMPLETED);
  assert.equal(client.events.filter(({ type }) => type === 'error').length, 11);
  (client.socket as unknown as { _socket: { write(bytes: Buffer): void } })._socket.write(
    Buffer.from('GET /'),
  );
  await until('a frame that is none ends the session', () => client.closed() === 1002);
});

test('a message with millions of values is refused at once, and the session goes on', async () => {
  await using gateway = await startGateway();
  await using client = await connectLive(gateway);
  const update = (list: string) => `{"type":"session.update","session":{"type":"transcription",${list}}}`;
  const lists = ['"include":[', '"audio":{"input":{"transcription":{"keywords":['];
  const started = performance.now();
  for (const list of lists) {
    client.socket.send(update(`${list}${'1,'.repeat(120_000)}1]${'}'.repeat(list.split('{').length - 1)}`));
    client.socket.send(update(`${list}${'1,'.repeat(1_000_000)}1]${'}'.repeat(list.split('{').length - 1)}`));
  }
  client.socket.send(`{"type":"input_audio_buffer.commit","x":${'['.repeat(1_000_000)}`);
  await client.event('error', 5);
  assert.ok(performance.now() - started < 5000, `${performance.now() - started} ms`);
  assert.deepEqual(
    new Set(client.events.filter(({ type }) => type === 'error').map(({ error }) => error.code)),
    new Set(['invalid_value']),
  );
  client.send(at16kHz());
  say(client);
  await client.event(COMPLETED);
});

test('a value of 100,000 levels is an invalid_value, and the session goes on', async () => {
  await using gateway = await startGateway();
  await using client = await connectLive(gateway);
  const deep = '['.repeat(100_000) + ']'.repeat(100_000);
  const updates = [deep, `{"type":"transcription","include":[${deep}]}`, `{"input_audio_format":${deep}}`];
  for (const [i, session] of updates.entries()) {
    client.socket.send(`{"type":"session.update","session":${session}}`);
    assert.equal((await client.event('error', i + 1)).error.code, 'invalid_value', session.slice(0, 50));
  }
  client.send(at16kHz());
  say(client);
  await client.event(COMPLETED);
});

test('a message that is too large ends the session with 1009', async () => {
  await using gateway = await startGateway({ budgets: { live: { messageBytes: 1000 } } });
  await using client = await connectLive(gateway);
  client.send(append(tone(1)));
  await until('it is closed', () => client.closed() === 1009);
});

test('a buffer that is never committed is full at its limit, and is empty again after a clear', async () => {
  await using gateway = await startGateway({ budgets: { live: { utteranceMs: 2000 } } });
  await using client = await connectLive(gateway);
  client.send(at16kHz({ turn_detection: null }));
  client.speak(tone(4));
  assert.equal((await client.event('error')).error.code, 'input_audio_buffer_full');
  client.send({ type: 'input_audio_buffer.clear' });
  client.speak(tone(1));
  client.send({ type: 'input_audio_buffer.commit' });
  assert.equal((await client.event(COMPLETED)).usage.seconds, 1);
});

test('silence without end is not kept in a buffer which the client commits', async () => {
  await using gateway = await startGateway({ budgets: { live: { utteranceMs: 3000 } } });
  await using client = await connectLive(gateway);
  client.send(at16kHz({ turn_detection: null }));
  client.speak(silence(20));
  client.speak(tone(1));
  client.send({ type: 'input_audio_buffer.commit' });
  assert((await client.event(COMPLETED)).usage.seconds <= 3);
  assert(!client.events.some(({ type }) => type === 'error'));
});

test('a client that sends faster than its speech is heard is read no further, and loses nothing', async () => {
  let most = 0;
  await using gateway = await startGateway({
    budgets: { live: { pendingMs: 1000 } },
    transcribe: async (samples) => {
      most = Math.max(most, samples.length);
      return heard(' Hello there.');
    },
  });
  await using client = await connectLive(gateway);
  client.send(at16kHz({ transcription: { delay: 'xhigh' } }));
  for (let i = 0; i < 10; i += 1) say(client);
  await client.event(COMPLETED, 10);
  assert(most < 2 * 16_000);
});

test('an utterance that is committed while another is computed has its own text, in order', async () => {
  const release: (() => void)[] = [];
  await using gateway = await startGateway({
    transcribe: async () => {
      const n = release.length + 1;
      await new Promise<void>((resolve) => release.push(resolve));
      return heard(` Text ${n}.`);
    },
  });
  await using client = await connectLive(gateway);
  client.send(at16kHz({ turn_detection: null, transcription: { delay: 'xhigh' } }));
  for (const nth of [1, 2]) {
    client.speak(tone(1));
    client.send({ type: 'input_audio_buffer.commit' });
    await client.event('input_audio_buffer.committed', nth);
  }
  for (const nth of [1, 2]) {
    await until(`text ${nth} is computed`, () => release.length === nth);
    release[nth - 1]?.();
    assert.equal((await client.event(COMPLETED, nth)).transcript, `Text ${nth}.`);
  }
});

test('a model that is unloaded between two utterances is loaded again', async () => {
  await using gateway = await startGateway();
  await using client = await connectLive(gateway);
  client.send(at16kHz());
  say(client);
  await client.event(COMPLETED);
  const loads = gateway.loads.length;
  const answer = await fetch(`${gateway.base}/admin/api/models/multilingual-base/unload`, { method: 'POST' });
  assert(answer.ok, await answer.text());
  say(client);
  await client.event(COMPLETED, 2);
  assert(gateway.loads.length > loads);
});

test('a failure of the engine fails its utterance, and the next one is heard', async () => {
  let fails = true;
  await using gateway = await startGateway({
    transcribe: async () => {
      if (fails) throw new Error('a secret path');
      return heard(' Hello.');
    },
  });
  await using client = await connectLive(gateway);
  client.send(at16kHz());
  say(client);
  const { error } = await client.event(FAILED);
  assert.equal(error.code, 'internal_error');
  assert(!JSON.stringify(error).includes('secret'));
  fails = false;
  say(client);
  assert.equal((await client.event(COMPLETED)).transcript, 'Hello.');
});

test('a stop lets what was said have its text, and closes the session with 1001', async () => {
  const release: (() => void)[] = [];
  await using gateway = await startGateway({
    transcribe: async () => {
      await new Promise<void>((resolve) => release.push(resolve));
      return heard(' The last words.');
    },
  });
  await using client = await connectLive(gateway);
  client.send(at16kHz({ transcription: { delay: 'xhigh' } }));
  say(client);
  await client.event('input_audio_buffer.committed');
  await until('it is computed', () => release.length > 0);
  const closing = gateway.app.close(10_000);
  release[0]?.();
  assert.equal((await client.event(COMPLETED)).transcript, 'The last words.');
  await until('it is closed', () => client.closed() === 1001);
  await closing;
});

test('a stop lets what waits for the slot have its text', async () => {
  await using gateway = await startGateway({ transcribe: async () => heard(' The last words.') });
  const held = gateway.app.slot.take('tts', 'holder');
  await using client = await connectLive(gateway);
  client.send(at16kHz({ transcription: { delay: 'xhigh' } }));
  say(client);
  await client.event('input_audio_buffer.committed');
  await untilWaiting(gateway, 1);
  const closing = gateway.app.close(10_000);
  held[Symbol.dispose]();
  assert.equal((await client.event(COMPLETED)).transcript, 'The last words.');
  await until('it is closed', () => client.closed() === 1001);
  await closing;
});

test('a session in which nothing is said for long is closed, and so is one that lasts too long', async () => {
  for (const live of [{ pingMs: 30, idleMs: 100 }, { sessionMs: 100 }]) {
    await using gateway = await startGateway({ budgets: { live } });
    await using client = await connectLive(gateway);
    await until('it is closed', () => [1001, 1008].includes(client.closed() ?? 0));
  }
});

test('a session is idle without samples, whatever else its client sends', async () => {
  await using gateway = await startGateway({ budgets: { live: { pingMs: 1000, idleMs: 1500 } } });
  await using idle = await connectLive(gateway);
  await using busy = await connectLive(gateway);
  const sending = setInterval(() => {
    for (const client of [idle, busy]) client.send(at16kHz());
    idle.send({ type: 'input_audio_buffer.append', audio: '' });
    idle.send({ type: 'response.create' }); // which a session that transcribes does not know
    busy.speak(silence(0.01));
  }, 20);
  try {
    await until('it is closed', () => idle.closed() === 1008);
    assert.equal(busy.closed(), null);
  } finally {
    clearInterval(sending);
  }
});

test('a client that reads nothing is cut off, and one that closes no side is not waited for', async () => {
  await using gateway = await startGateway({ budgets: { live: { unreadBytes: 1000, closeMs: 50 } } });
  await using client = await connectLive(gateway);
  await client.event('session.created');
  client.socket.pause();
  const garbage = 'x'.repeat(100);
  const flood = setInterval(() => {
    for (let i = 0; i < 2000 && client.socket.bufferedAmount < 1e6; i += 1) client.socket.send(garbage);
  }, 5);
  try {
    await until('it is cut off', () => gateway.exchanges.length === 1, 30_000);
  } finally {
    clearInterval(flood);
  }
  assert(gateway.logged.some((line) => /unread/.test(line) && line.includes('"code":1008')));
  await using patient = await connectLive(gateway);
  await patient.event('session.created');
  patient.socket.pause();
  await gateway.app.close();
});

test('only so many sessions are open at once', async () => {
  await using gateway = await startGateway({ env: { SVC_MAX_LIVE_SESSIONS: '1' } });
  const first = await connectLive(gateway);
  await assert.rejects(connectLive(gateway), { status: 503, message: /too_many_sessions/ });
  first.socket.close();
  await until('its place is free', () => gateway.exchanges.some(({ status }) => status === 101));
  await using second = await connectLive(gateway);
  await second.event('session.created');
});

test('an address that holds all places gives up the session that is idle for longest', async () => {
  await using gateway = await startGateway({
    env: { SVC_MAX_LIVE_SESSIONS: '3', SVC_TRUST_PROXY: 'loopback' },
  });
  const from = (address: string) => connectLive(gateway, { headers: { 'X-Forwarded-For': address } });
  const greedy = [await from('192.0.2.1'), await from('192.0.2.1'), await from('192.0.2.1')] as const;
  for (const [i, client] of greedy.entries()) {
    client.send(at16kHz({ turn_detection: null }));
    if (i !== 1) client.speak(tone(0.1));
    client.send({ type: 'input_audio_buffer.append', audio: '' });
    client.send({ type: 'input_audio_buffer.clear' });
    await client.event('input_audio_buffer.cleared');
  }
  await using other = await from('192.0.2.2');
  await other.event('session.created');
  assert.equal((await greedy[1].event('error')).error.code, 'too_many_sessions');
  await until('it is closed', () => greedy[1].closed() === 1013);
  await assert.rejects(from('192.0.2.2'), { status: 503, message: /too_many_sessions/ });
  await assert.rejects(from('192.0.2.1'), { status: 503, message: /too_many_sessions/ });
  assert.deepEqual([greedy[0].closed(), greedy[2].closed(), other.closed()], [null, null, null]);
  greedy[0].socket.close();
  await until(
    'its place is free',
    () => gateway.exchanges.filter(({ status }) => status === 101).length === 2,
  );
  await using last = await from('192.0.2.1');
  await last.event('session.created');
});

test('a session needs a key like every request, in a header or in the subprotocol of browsers', async () => {
  await using gateway = await startGateway({ env: { SVC_API_KEY: 'right' } });
  await assert.rejects(connectLive(gateway), { status: 401 });
  const wrong = { protocols: ['realtime', 'openai-insecure-api-key.wrong'] };
  await assert.rejects(connectLive(gateway, wrong), { status: 401 });
  await using header = await connectLive(gateway, { headers: { Authorization: 'Bearer right' } });
  await header.event('session.created');
  const protocols = ['realtime', 'openai-insecure-api-key.right'];
  await using page = await connectLive(gateway, { protocols });
  assert.equal(page.socket.protocol, 'realtime');
  await page.event('session.created');
});

test('a key that is no name of a subprotocol comes in base64url', async () => {
  const key = 'a/b+c==, ü';
  await using gateway = await startGateway({ env: { SVC_API_KEY: 'x"y/=' } });
  const named = (given: string) => ({
    protocols: ['realtime', `voxgate-api-key-base64url.${Buffer.from(given).toString('base64url')}`],
  });
  await assert.rejects(connectLive(gateway, named(key)), { status: 401 });
  await using page = await connectLive(gateway, named('x"y/='));
  assert.equal(page.socket.protocol, 'realtime');
  await page.event('session.created');
});

test('a page of another site may not open a session, and one that may use the API may', async () => {
  await using gateway = await startGateway({ env: { SVC_CORS_ORIGINS: 'https://friend.example' } });
  await assert.rejects(connectLive(gateway, { headers: { Origin: 'https://evil.example' } }), {
    status: 403,
    message: /cross_site/,
  });
  for (const Origin of ['https://friend.example', gateway.base]) {
    await using client = await connectLive(gateway, { headers: { Origin } });
    await client.event('session.created');
  }
});

test('an address of sessions without a WebSocket is a 426, and an unknown model a 400', async () => {
  await using gateway = await startGateway();
  const answer = await fetch(`${gateway.base}/v1/realtime`);
  const { error } = await json(answer);
  assert.deepEqual([answer.status, error.code], [426, 'upgrade_required']);
  assert.match(error.message, /has no Upgrade header.*reverse proxy.*docs\/proxies\.md/);
  await assert.rejects(connectLive(gateway, { query: '?model=nonsense' }), { status: 400 });
  const raw = await rawAnswer(gateway, [
    'GET /v1/realtime HTTP/1.1',
    'Upgrade: websocket',
    'Connection: Upgrade',
  ]);
  assert.match(raw, /^HTTP\/1.1 400 [\s\S]*"bad_request"/);
  for (const names of ['realtime, realtime', '', 'a,,b', 'a b'])
    assert.match(
      await rawAnswer(gateway, [
        ...['GET /v1/realtime HTTP/1.1', 'Upgrade: websocket', 'Connection: Upgrade'],
        ...['Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version: 13'],
        `Sec-WebSocket-Protocol: ${names}`,
      ]),
      /^HTTP\/1.1 400 [\s\S]*"bad_request"/,
      names,
    );
});

async function rawAnswer(gateway: Gateway, head: string[]): Promise<string> {
  const socket = connect(Number(new URL(gateway.base).port), '127.0.0.1');
  let answer = '';
  socket.on('data', (bytes) => {
    answer += bytes;
  });
  socket.write([...head, 'Host: localhost', '', ''].join('\r\n'));
  await new Promise((resolve) => socket.once('close', resolve));
  return answer;
}

test('a wish for another protocol is ignored, also with a body that comes later', async () => {
  await using gateway = await startGateway();
  const { port } = new URL(gateway.base);
  const body = '{"key":"k"}';
  const socket = connect(Number(port), '127.0.0.1');
  let answer = '';
  socket.on('data', (bytes) => {
    answer += bytes;
  });
  socket.write(
    [
      ...['POST /admin/session HTTP/1.1', 'Host: localhost', 'Content-Type: application/json'],
      ...['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk'],
      ...[`Content-Length: ${body.length}`, '', body.slice(0, 4)],
    ].join('\r\n'),
  );
  await until('the head is there', () => gateway.arrived() === 1);
  socket.write(body.slice(4));
  await until('it is answered', () => answer.startsWith('HTTP/1.1 204'));
  socket.write(
    'GET /health HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
  );
  await until('the next one, too', () => /HTTP\/1.1 (200|404)/.test(answer));
  socket.destroy();
});
