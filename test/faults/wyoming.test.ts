/** Wyoming when something goes wrong: each fault has an `error` event and an end, and leaves nothing behind. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import {
  type Gateway,
  heard,
  type Script,
  startGateway,
  until,
  untilAborted,
  untilWaiting,
} from '../http/harness.ts';
import { connectLive, silence, tone } from '../http/realtime.ts';
import { connectWyoming, FORMAT, message, pcm16, type WyomingClient } from '../http/wyoming.ts';

const start = (script: Script = {}) =>
  startGateway({ ...script, env: { SVC_WYOMING_PORT: '0', ...script.env } });
const isFree = (gateway: Gateway) => gateway.app.slot.status().holder === null;
const isIdle = (gateway: Gateway) => isFree(gateway) && gateway.running() === 0;

/** The connections that are open, after the gateway had a moment. */
async function connections({ app }: Gateway): Promise<number> {
  await sleep(5);
  return await promisify(app.wyoming.getConnections.bind(app.wyoming))();
}

/** The error event comes, the connection ends, and the gateway still serves others. */
async function refused(gateway: Gateway, client: WyomingClient, code: string): Promise<string> {
  const error = await client.event('error');
  assert.equal(error.code, code, error.text);
  await until('the connection ends', () => client.closed());
  await until('nothing is left', () => isIdle(gateway));
  await using next = await connectWyoming(gateway);
  next.say(tone(0.5));
  assert.equal((await next.event('transcript')).text, 'Hello there.');
  return error.text;
}

const speak = (client: WyomingClient, seconds = 0.5) => {
  client.send('audio-start', FORMAT);
  client.send('audio-chunk', FORMAT, pcm16(tone(seconds)));
};

test('garbage is an error event and the end of the connection', async () => {
  await using gateway = await start();
  for (const bytes of [
    ...['GET / HTTP/1.1\r\nHost: x\r\n\r\n', '\n', 'null\n', '[]\n', '{}\n', '{"type":7}\n', '"describe"\n'],
    ...[
      '{"type":"ping","data":[]}\n',
      '{"type":"ping","data_length":-1}\n',
      '{"type":"ping","data_length":1.5}\n',
    ],
    ...[
      '{"type":"ping","data_length":"2"}\n{}',
      '{"type":"ping","data_length":2}\n[]',
      '{"type":"ping","data_length":3}\nx{}',
    ],
    Buffer.from([0x16, 0x03, 0x01, 0x0a, 0x00]), // a client that wants TLS
    `{"type":"${'x'.repeat(200)}"}\n`,
  ]) {
    await using client = await connectWyoming(gateway);
    client.socket.write(bytes);
    const error = await client.event('error');
    assert.equal(error.code, 'invalid_message', String(bytes));
    await until('the connection ends', () => client.closed());
  }
  assert(gateway.exchanges.every(({ status, path }) => status === 400 && path === 'message'));
  await using client = await connectWyoming(gateway);
  client.send('ping');
  await client.event('pong');
});

test('a line, data and a payload have a largest size, which is refused before it comes', async () => {
  const wyoming = { lineBytes: 300, dataBytes: 300, values: 20, payloadBytes: 300 };
  await using gateway = await start({ budgets: { wyoming } });
  for (const bytes of [
    'x'.repeat(301), // without its end
    '{"type":"ping","data_length":301}\n',
    '{"type":"audio-chunk","payload_length":301}\n',
    `{"type":"x","data":{"y":[${'1,'.repeat(20)}1]}}\n`,
    `{"type":"x","data_length":50}\n{"y":[${'1,'.repeat(20)}1]}  `,
  ]) {
    await using client = await connectWyoming(gateway);
    client.socket.write(bytes);
    assert.equal((await client.event('error')).code, 'invalid_message');
    await until('the connection ends', () => client.closed());
  }
  await using client = await connectWyoming(gateway);
  client.send('ping', { text: 'x'.repeat(280) }, Buffer.alloc(300));
  await client.event('pong');
});

test('events out of their order are refused by name', async () => {
  await using gateway = await start();
  for (const [sent, says] of [
    [[message('audio-chunk', FORMAT, pcm16(tone(0.1)))], '"audio-chunk" comes before audio-start'],
    [[message('audio-stop')], '"audio-stop" comes before audio-start'],
    [
      [message('audio-start', FORMAT), message('audio-start', FORMAT)],
      '"audio-start" comes before audio-stop',
    ],
    [[message('audio-start', FORMAT), message('transcribe')], '"transcribe" comes before audio-stop'],
  ] as const) {
    await using client = await connectWyoming(gateway);
    client.socket.write(Buffer.concat(sent));
    const text = await refused(gateway, client, 'unexpected_event');
    assert(text.includes(says), text);
  }
});

test('what cannot be heard is refused by its field', async () => {
  await using gateway = await start();
  const format = (other: object) => message('audio-start', { ...FORMAT, ...other });
  for (const [sent, code, says] of [
    [format({ rate: 16_001 }), 'invalid_value', '"rate"'],
    [format({ rate: '16000' }), 'invalid_value', '"rate"'],
    [format({ width: 0 }), 'invalid_value', '"width"'],
    [format({ channels: 9 }), 'invalid_value', '"channels"'],
    [message('audio-start'), 'invalid_value', '"rate"'],
    [message('transcribe', { name: 'nonsense' }), 'unknown_model', 'nonsense'],
    [message('transcribe', { name: 7 }), 'invalid_value', '"name"'],
    [message('transcribe', { language: 'Klingonish' }), 'invalid_value', '"language"'],
    [message('transcribe', { language: ['en'] }), 'invalid_value', '"language"'],
    [message('transcribe', { transcript_names: 'one' }), 'invalid_value', '"transcript_names"'],
    [message('transcribe', { transcript_terms: [1] }), 'invalid_value', '"transcript_terms"'],
  ] as const) {
    await using client = await connectWyoming(gateway);
    client.socket.write(sent);
    const text = await refused(gateway, client, code);
    assert(text.includes(says), text);
    const named = gateway.exchanges.some(({ model }) => model === says);
    assert.equal(named, code === 'unknown_model', 'the line of an unknown model has its name');
  }
});

test('a transcription waits for a busy slot, and has its text when the slot is free', async () => {
  await using gateway = await start();
  await using client = await connectWyoming(gateway);
  const hold = gateway.app.slot.take('tts', 'other');
  client.say(tone(1));
  await untilWaiting(gateway, 1); // the dashboard shows who waits
  assert.equal(gateway.begun(), 0);
  hold[Symbol.dispose]();
  assert.equal((await client.event('transcript')).text, 'Hello there.');
  assert((gateway.exchanges.find(({ method }) => method === 'WYOMING')?.slotWaitMs ?? 0) > 0);
});

test('a slot that stays busy is an error event with slot_busy, and counts as such', async () => {
  await using gateway = await start({ env: { SVC_LIVE_WAIT_SEC: '0.2' } });
  await using client = await connectWyoming(gateway);
  const hold = gateway.app.slot.take('tts', 'other');
  client.say(tone(1));
  const error = await client.event('error');
  assert.equal(error.code, 'slot_busy');
  hold[Symbol.dispose]();
  assert.equal(gateway.exchanges[0]?.class, '503-busy');
  await refused(gateway, client, 'slot_busy');
});

test('a client that vanishes frees everything at once, whatever it was at', async () => {
  await using gateway = await start({ transcribe: untilAborted });
  for (const leave of ['destroy', 'resetAndDestroy', 'end'] as const)
    for (const where of ['within a message', 'while speaking', 'while its text is computed'] as const) {
      await using client = await connectWyoming(gateway);
      const seen = gateway.exchanges.length;
      if (where === 'while its text is computed') {
        client.say(tone(1));
        await until('it is computed', () => gateway.running() > 0);
      } else {
        speak(client, 1);
        await until('someone speaks', () => gateway.running() > 0);
        if (where === 'within a message') client.socket.write('{"type":"audio-chunk","data_length":10}\n{');
      }
      client.socket[leave]();
      const since = performance.now();
      await until(`nothing is left after ${leave} ${where}`, () => isIdle(gateway));
      await until('it is noted', () => gateway.exchanges.length === seen + 1);
      assert(performance.now() - since < 2000);
      const last = gateway.exchanges.at(-1);
      assert.deepEqual([last?.status, last?.class, last?.category], [499, 'client-disconnect', 'asr']);
    }
});

test('a client that falls silent within its audio or a message is given up, and one that trickles is, too', async () => {
  for (const [wyoming, trickles] of [
    [{ stallMs: 200 }, false],
    [{ unfinishedMs: 300 }, true],
  ] as const) {
    await using gateway = await start({ budgets: { wyoming } });
    for (const begin of [
      (client: WyomingClient) => speak(client),
      (client: WyomingClient) => void client.socket.write('{"type":"pi'),
      (client: WyomingClient) => void client.socket.write('{"type":"ping","data_length":9999}\n{'),
      (client: WyomingClient) => void client.socket.write('{"type":"ping","payload_length":9999}\nx'),
    ]) {
      await using client = await connectWyoming(gateway);
      begin(client);
      const trickle = setInterval(() => trickles && client.socket.write('x'), 50);
      const error = await client.event('error');
      clearInterval(trickle);
      assert.equal(error.code, 'client_stalled');
      await until('the connection ends', () => client.closed());
    }
  }
});

test('a connection on which nothing is asked for is closed after a time, and so is one that lasts too long', async () => {
  for (const [live, code] of [
    [{ idleMs: 150 }, 'session_idle'],
    [{ sessionMs: 150 }, 'session_expired'],
  ] as const) {
    await using gateway = await start({ budgets: { live, wyoming: { stallMs: 400 } } });
    await using client = await connectWyoming(gateway);
    assert.equal((await client.event('error')).code, code);
    await until('the connection ends', () => client.closed());
    assert.deepEqual(gateway.exchanges, [], 'nothing was asked for');
  }
});

test('audio without an end is heard up to a length and no further', async () => {
  await using gateway = await start({ budgets: { live: { utteranceMs: 2000 } } });
  await using client = await connectWyoming(gateway);
  speak(client, 1.9);
  client.send('audio-stop');
  await client.event('transcript');
  speak(client, 2.1);
  const text = await refused(gateway, client, 'speech_too_long');
  assert.match(text, /^No audio-stop came within 2 s/);
});

test('a client that reads nothing is cut off', async () => {
  await using gateway = await start({ budgets: { live: { unreadBytes: 100_000, closeMs: 50 } } });
  await using client = await connectWyoming(gateway);
  client.socket.pause();
  let open = 1;
  for (let i = 0; i < 20_000 && open > 0; i += 1) {
    client.send('describe');
    if (i % 50 === 0) open = await connections(gateway);
  }
  assert.equal(open, 0);
});

test('a client that does not close its side is not waited for', async () => {
  await using gateway = await start({ budgets: { live: { closeMs: 100 } } });
  await using client = await connectWyoming(gateway);
  client.socket.pause();
  client.socket.write('no message\n');
  let open = 1;
  for (let i = 0; i < 200 && open > 0; i += 1) {
    open = await connections(gateway);
  }
  assert.equal(open, 0);
});

test('what is sent ahead of the text waits, is read up to a bound, and is heard in its turn', async () => {
  const release: (() => void)[] = [];
  await using gateway = await start({
    budgets: { live: { aheadBytes: 10_000 } },
    transcribe: async () => {
      await new Promise<void>((resolve) => release.push(resolve));
      return heard(` Text ${release.length}.`);
    },
  });
  let [read, isPaused] = [() => 0, () => false];
  gateway.app.wyoming.once('connection', (socket) => {
    [read, isPaused] = [() => socket.bytesRead, () => socket.isPaused()];
  });
  await using client = await connectWyoming(gateway);
  const whole = (seconds: number) => [
    message('audio-start', FORMAT),
    message('audio-chunk', FORMAT, pcm16(silence(seconds))),
    message('audio-chunk', FORMAT, pcm16(tone(1))),
    message('audio-stop'),
  ];
  client.socket.write(Buffer.concat([...whole(0), ...whole(60), message('ping')]));
  await until('the first is computed', () => release.length > 0 && isPaused());
  assert(read() < 200_000, `${read()} bytes were read ahead`);
  const timer = setInterval(() => release.at(-1)?.(), 20);
  await client.event('pong');
  clearInterval(timer);
  assert.equal(client.events.filter(({ type }) => type === 'transcript').length, 2);
});

test('a transcription gives way to a live session of an address that has none', async () => {
  await using gateway = await start({ env: { SVC_MAX_LIVE_SESSIONS: '2', SVC_TRUST_PROXY: 'loopback' } });
  await using first = await connectWyoming(gateway);
  await using second = await connectWyoming(gateway);
  for (const client of [first, second]) {
    client.send('audio-start', FORMAT);
    client.send('ping');
    await client.event('pong');
  }
  await using other = await connectLive(gateway, { headers: { 'X-Forwarded-For': '192.0.2.2' } });
  await other.event('session.created');
  assert.equal((await first.event('error')).code, 'too_many_sessions');
  second.send('audio-stop');
  await second.event('transcript');
});

test('only so many transcriptions are under way at once, those of other live sessions included', async () => {
  await using gateway = await start({ env: { SVC_MAX_LIVE_SESSIONS: '1' } });
  await using first = await connectWyoming(gateway);
  first.send('audio-start', FORMAT);
  first.send('ping');
  await first.event('pong');
  await using second = await connectWyoming(gateway);
  second.send('describe');
  await second.event('info');
  second.send('audio-start', FORMAT);
  assert.equal((await second.event('error')).code, 'too_many_sessions');
  await assert.rejects(connectLive(gateway), /too_many_sessions/);
  first.send('audio-stop');
  await first.event('transcript');
  await using third = await connectWyoming(gateway);
  third.say(tone(0.5));
  await third.event('transcript');
});

test('at the limit of connections those that ask for nothing give way, and those that speak stay', async () => {
  await using gateway = await start({
    budgets: { wyoming: { connections: 2 }, connection: { sparedMs: 0 } },
  });
  await using speaks = await connectWyoming(gateway);
  speak(speaks);
  speaks.send('ping');
  await speaks.event('pong');
  await using idle = await connectWyoming(gateway);
  idle.send('describe');
  await idle.event('info');
  await using comes = await connectWyoming(gateway);
  await until('the idle one gives way', () => idle.closed());
  comes.send('describe');
  await comes.event('info');
  speaks.send('audio-stop');
  await speaks.event('transcript');
});

test('a failure of the engine is an error event that tells no secret', async () => {
  let fails = true;
  await using gateway = await start({
    transcribe: async () => {
      if (fails) throw new Error('a secret path');
      return heard(' Hello there.');
    },
  });
  await using client = await connectWyoming(gateway);
  client.say(tone(1));
  await client.event('error');
  fails = false;
  const text = await refused(gateway, client, 'internal_error');
  assert(!text.includes('secret'));
  assert(
    gateway.logged.some((line) => line.includes('a secret path')),
    'the log has it',
  );
  assert.equal(gateway.exchanges[0]?.status, 500);
});

test('without the voice activity model audio is an error event', async () => {
  await using gateway = await start({
    ensure: async (id) => {
      if (id === 'voice-activity') throw new Error('the disk is gone');
    },
  });
  await using client = await connectWyoming(gateway);
  client.say(tone(1));
  assert.equal((await client.event('error')).code, 'internal_error');
  await until('the connection ends', () => client.closed());
});

test('a stop lets audio that has ended become text, and ends all else at once', async () => {
  const release: (() => void)[] = [];
  await using gateway = await start({
    transcribe: async () => {
      await new Promise<void>((resolve) => release.push(resolve));
      return heard(' The last words.');
    },
  });
  await using spoken = await connectWyoming(gateway);
  spoken.say(tone(0.24)); // too short for words before its end, so what is computed is the whole
  await until('it is computed', () => release.length > 0);
  await using speaking = await connectWyoming(gateway);
  speaking.send('audio-start', FORMAT);
  await using idle = await connectWyoming(gateway);
  for (const client of [speaking, idle]) {
    client.send('ping');
    await client.event('pong');
  }
  const closing = gateway.app.close(10_000);
  for (const client of [speaking, idle]) assert.equal((await client.event('error')).code, 'shutting_down');
  assert(!spoken.closed());
  for (const go of release) go();
  assert.equal((await spoken.event('transcript')).text, 'The last words.');
  await closing;
  await until('all are closed', () => [spoken, speaking, idle].every((client) => client.closed()));
});

test('a stop lets audio that has ended and waits for the slot become text', async () => {
  await using gateway = await start({ transcribe: async () => heard(' The last words.') });
  const held = gateway.app.slot.take('tts', 'holder');
  await using client = await connectWyoming(gateway);
  client.say(tone(0.24));
  await untilWaiting(gateway, 1);
  const closing = gateway.app.close(10_000);
  held[Symbol.dispose]();
  assert.equal((await client.event('transcript')).text, 'The last words.');
  await closing;
});

test('a stop without time ends a text that is computed', async () => {
  await using gateway = await start({ transcribe: untilAborted });
  await using client = await connectWyoming(gateway);
  client.say(tone(1));
  await until('it is computed', () => gateway.running() > 0);
  const closing = gateway.app.close();
  assert.equal((await client.event('error')).code, 'shutting_down');
  await closing;
  assert.equal(gateway.running(), 0);
});
