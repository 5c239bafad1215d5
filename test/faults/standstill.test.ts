/**
 * A gateway that could not run for a while, as on a machine with other work: its timers are late, and what clients have
 * sent is still unread. No client is blamed for that.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { heard, startGateway, until } from '../http/harness.ts';
import { at16kHz, COMPLETED, connectLive, silence, tone } from '../http/realtime.ts';
import { connectWyoming, FORMAT, pcm16 } from '../http/wyoming.ts';

const PING_MS = 100;

/** Nothing runs in this process meanwhile: no timer, no reading, no writing. */
const standStill = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

test('a live session whose pong and audio wait to be read is not ended', async () => {
  await using gateway = await startGateway({ budgets: { live: { pingMs: PING_MS } } });
  await using client = await connectLive(gateway);
  client.send(at16kHz());
  for (let round = 1; round <= 3; round += 1) {
    await new Promise((resolve) => client.socket.once('ping', resolve));
    // The pong has left, and now the audio.
    client.speak(tone(1));
    client.speak(silence(1));
    standStill(4 * PING_MS);
    await client.event(COMPLETED, round);
  }
  assert.equal(client.closed(), null);
});

test('a live session is not idle whose audio waits to be read', async () => {
  const idleMs = 500;
  await using gateway = await startGateway({ budgets: { live: { pingMs: PING_MS, idleMs } } });
  await using client = await connectLive(gateway);
  client.send(at16kHz());
  await client.event('session.updated', 1);
  client.speak(tone(1));
  client.speak(silence(1));
  standStill(2 * idleMs);
  await client.event(COMPLETED);
  assert.equal(client.closed(), null);
  await until('it is idle when nothing comes', () => client.closed() === 1008);
});

test('a client of Wyoming is not silent whose audio waits to be read', async () => {
  const stallMs = 400;
  await using gateway = await startGateway({
    env: { SVC_WYOMING_PORT: '0' },
    budgets: { wyoming: { stallMs } },
  });
  await using client = await connectWyoming(gateway);
  client.send('audio-start', FORMAT);
  await sleep(stallMs / 4); // the gateway has it, and waits for the audio
  client.send('audio-chunk', FORMAT, pcm16(tone(1)));
  client.send('audio-stop');
  standStill(2 * stallMs);
  assert.equal((await client.event('transcript')).text, 'Hello there.');
});

test('a client that is not read for long does not owe the gateway many pongs', async () => {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  await using gateway = await startGateway({
    budgets: { live: { pingMs: 1000, unreadPingMs: 5, pendingMs: 1000, aheadBytes: 4096 } },
    async transcribe() {
      await released;
      return heard(' Hello there.');
    },
  });
  await using client = await connectLive(gateway);
  client.send(at16kHz({ transcription: { delay: 'xhigh' } }));
  let [pings, signs] = [0, 0];
  client.socket.on('ping', () => (pings += 1));
  for (const sign of ['ping', 'pong']) client.socket.on(sign, () => (signs += 1));
  try {
    for (let i = 0; i < 100; i += 1) {
      client.speak(tone(1));
      client.speak(silence(1));
    }
    // By default `ws` ends a connection when 60 pongs wait to be sent.
    await until('the gateway has looked for it often', () => signs > 100 || client.closed() !== null);
    assert.equal(client.closed(), null, `${pings} pings`);
    assert(pings < 10, `${pings} pings`);
  } finally {
    release();
  }
  await client.event(COMPLETED, 10);
});
