/** Turns that a model ends: `turn_detection` of type `semantic_vad`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Gateway, heard, type Script, startGateway, until } from './harness.ts';
import { append, at16kHz, COMPLETED, connectLive, type LiveClient, silence, tone } from './realtime.ts';

const STARTED = 'input_audio_buffer.speech_started';
const STOPPED = 'input_audio_buffer.speech_stopped';

/** A gateway whose model always gives this probability, and what it was asked. */
async function gatewayOf(probability: number, script: Script = {}) {
  const asked: Float32Array[] = [];
  const gateway = await startGateway({
    turns(samples) {
      asked.push(samples);
      return probability;
    },
    ...script,
  });
  return { gateway, asked };
}

async function connect(gateway: Gateway, eagerness?: string): Promise<LiveClient> {
  const client = await connectLive(gateway);
  client.send(at16kHz({ turn_detection: { type: 'semantic_vad', ...(eagerness && { eagerness }) } }));
  await client.event('session.updated');
  return client;
}

/** The silence, ms, after which the nth turn was over; `spoken` is the time at which its speech ended. */
async function silenceOf(client: LiveClient, spoken: number, nth = 1): Promise<number> {
  return (await client.event(STOPPED, nth)).audio_end_ms - spoken;
}

test('a turn that is complete ends after a short silence, and its text follows', async () => {
  const { gateway, asked } = await gatewayOf(0.9);
  await using _gateway = gateway;
  await using client = await connect(gateway);
  client.speak(silence(1));
  client.speak(tone(1));
  client.speak(silence(0.5));
  assert.equal((await client.event(COMPLETED)).transcript, 'Hello there.');
  const ended = await silenceOf(client, 2000);
  assert(ended > 150 && ended < 300, `${ended} ms`);
  // It heard the turn with the padding before it, and a pause of 192 ms after it.
  const [heard = new Float32Array()] = asked;
  assert.equal(asked.length, 1);
  assert(Math.abs(heard.length / 16 - 1500) < 64, `${heard.length / 16} ms`);
  assert(heard.subarray(-3000).every((sample) => sample === 0));
  assert(Math.abs(heard[heard.length - 3600] ?? 0) > 0 || Math.abs(heard[heard.length - 3590] ?? 0) > 0);
});

test('a turn that is not complete goes on until the longest silence of its eagerness', async () => {
  for (const [eagerness, seconds] of [
    ['high', 2],
    ['medium', 4],
    ['auto', 4],
    ['low', 8],
  ] as const) {
    const { gateway, asked } = await gatewayOf(0.1);
    await using _gateway = gateway;
    await using client = await connect(gateway, eagerness);
    client.speak(tone(1));
    client.speak(silence(seconds - 0.2));
    client.speak(tone(1));
    client.speak(silence(seconds + 0.2));
    await client.event(COMPLETED);
    const ended = await silenceOf(client, 2000 + (seconds - 0.2) * 1000);
    assert(Math.abs(ended - seconds * 1000) < 100, `${eagerness}: ${ended} ms`);
    assert.equal(
      client.events.filter(({ type }) => type === STARTED).length,
      1,
      'the first pause ended nothing',
    );
    assert.equal(asked.length, 2, 'once in each pause');
  }
});

test('an eager session takes a turn for complete sooner, and a patient one later', async () => {
  for (const [probability, eagerness, ends] of [
    [0.4, 'high', true],
    [0.4, 'auto', false],
    [0.6, 'medium', true],
    [0.6, 'low', false],
    [0.8, 'low', true],
  ] as const) {
    const { gateway, asked } = await gatewayOf(probability);
    await using _gateway = gateway;
    await using client = await connect(gateway, eagerness);
    client.speak(tone(1));
    client.speak(silence(0.6));
    client.send({ type: 'input_audio_buffer.clear' });
    await client.event('input_audio_buffer.cleared');
    const wasEnded = client.events.some(({ type }) => type === STOPPED);
    assert.deepEqual([wasEnded, asked.length], [ends, 1], `${probability} at ${eagerness}`);
  }
});

test('turns are the same however the audio is sent, and the model hears eight seconds at most', async () => {
  const audio = Float32Array.from([
    ...[...tone(10), ...silence(0.4)],
    ...[...tone(0.5), ...silence(1.5), ...tone(0.5), ...silence(2.5)],
  ]);
  const ends: number[][] = [];
  for (const size of [audio.length, 1600, 100]) {
    const asked: Float32Array[] = [];
    await using gateway = await startGateway({
      turns(samples) {
        asked.push(samples);
        return asked.length === 1 ? 0.9 : 0.1;
      },
    });
    await using client = await connect(gateway, 'high');
    for (let at = 0; at < audio.length; at += size) client.send(append(audio.subarray(at, at + size)));
    await client.event(STOPPED, 2);
    ends.push(client.events.filter(({ type }) => type === STOPPED).map(({ audio_end_ms }) => audio_end_ms));
    assert.equal(asked[0]?.length, 128_000);
    assert.equal(asked.length, 3);
  }
  assert.deepEqual(ends[1], ends[0]);
  assert.deepEqual(ends[2], ends[0]);
});

test('the settings are shown in both shapes, and either type may follow the other', async () => {
  const { gateway } = await gatewayOf(0.9);
  await using _gateway = gateway;
  await using client = await connect(gateway, 'low');
  const shown = (nth: number) =>
    client.event('session.updated', nth).then(({ session }) => session.audio.input.turn_detection);
  assert.deepEqual(await shown(1), { type: 'semantic_vad', eagerness: 'low' });
  client.send(at16kHz({ turn_detection: { type: 'server_vad', threshold: 0.7 } }));
  assert.deepEqual(await shown(2), {
    ...{ type: 'server_vad', threshold: 0.7, prefix_padding_ms: 300, silence_duration_ms: 500 },
  });
  client.send(at16kHz({ turn_detection: { type: 'semantic_vad' } }));
  assert.deepEqual(await shown(3), { type: 'semantic_vad', eagerness: 'auto' });
  client.send(at16kHz({ turn_detection: { type: 'semantic_vad', eagerness: 'eager' } }));
  const { error } = await client.event('error');
  assert.equal(error.param, 'session.audio.input.turn_detection.eagerness');
  assert.match(error.message, /Expected auto, low, medium, high/);

  await using beta = await connectLive(gateway, { headers: { 'OpenAI-Beta': 'realtime=v1' } });
  const turn_detection = { type: 'semantic_vad', eagerness: 'high' };
  beta.send({
    type: 'transcription_session.update',
    session: { input_audio_format: 'pcm16', turn_detection },
  });
  const { session } = await beta.event('transcription_session.updated');
  assert.deepEqual(session.turn_detection, turn_detection);
});

test('without its model the error names the command that fetches it, and the session goes on', async () => {
  await using gateway = await startGateway();
  await using client = await connectLive(gateway);
  client.send(at16kHz({ turn_detection: { type: 'semantic_vad' } }));
  const { error } = await client.event('error');
  assert.deepEqual([error.param, error.code], ['session.audio.input.turn_detection.type', 'invalid_value']);
  assert.match(error.message, /voxgate models pull turn-detection/);
  client.send(at16kHz());
  const { session } = await client.event('session.updated');
  assert.equal(session.audio.input.turn_detection.type, 'server_vad');
  client.speak(tone(1));
  client.speak(silence(1));
  assert.equal((await client.event(COMPLETED)).transcript, 'Hello there.');
});

test('turns end while the slot is busy, and their texts wait for it', async () => {
  const { gateway } = await gatewayOf(0.9);
  await using _gateway = gateway;
  using hold = gateway.app.slot.take('tts', 'busy');
  await using client = await connect(gateway);
  client.speak(tone(1));
  client.speak(silence(0.5));
  await client.event(STOPPED);
  await client.event('input_audio_buffer.committed');
  assert(!client.events.some(({ type }) => type === COMPLETED));
  hold[Symbol.dispose]();
  await client.event(COMPLETED);
});

test('a client that leaves while the model is asked stops it', async () => {
  let signal: AbortSignal | undefined;
  await using gateway = await startGateway({
    turns: (_samples, given) =>
      new Promise((_resolve, reject) => {
        signal = given;
        given?.addEventListener('abort', () => reject(given.reason));
      }),
  });
  await using client = await connect(gateway);
  client.speak(tone(1));
  client.speak(silence(0.5));
  await until('the model is asked', () => signal !== undefined);
  client.socket.terminate();
  await until('the model is stopped', () => signal?.aborted === true);
  await until('the session is over', () => gateway.exchanges.some(({ path }) => path === '/v1/realtime'));
});

test('nothing is heard for a client that left while the model was asked', async () => {
  const asked: { signal: AbortSignal | undefined; answer(probability: number): void }[] = [];
  let heardAfter = 0;
  await using gateway = await startGateway({
    turns: (_samples, signal) => new Promise((answer) => asked.push({ signal, answer })),
    async transcribe() {
      if (asked[0]?.signal?.aborted) heardAfter += 1;
      return heard(' So far.');
    },
  });
  await using client = await connect(gateway);
  client.speak(tone(1));
  client.speak(silence(0.5));
  await until('the model is asked', () => asked.length > 0);
  client.socket.terminate();
  await until('the client is gone', () => asked[0]?.signal?.aborted === true);
  asked[0]?.answer(0); // the call was over before it could be stopped
  await until('the session is over', () => gateway.exchanges.some(({ path }) => path === '/v1/realtime'));
  await sleep(50); // a text would be computed by then
  assert.equal(heardAfter, 0);
  assert.equal(gateway.app.slot.status().holder, null);
});

test('a model that fails ends the session with an error', async () => {
  await using gateway = await startGateway({
    turns() {
      throw new Error('no such tensor');
    },
  });
  await using client = await connect(gateway);
  client.speak(tone(1));
  client.speak(silence(0.5));
  const { error } = await client.event('error');
  assert.deepEqual([error.type, error.message.includes('tensor')], ['server_error', false]);
  await until('the connection is closed', () => client.closed() === 1011);
});
