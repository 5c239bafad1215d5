/** Live sessions as OpenAI's clients speak them: every event of the protocol, with its fields. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { wav } from '../wav.ts';
import { form, heard, post, startGateway, until } from './harness.ts';
import { append, at16kHz, COMPLETED, connectLive, DELTA, type Received, silence, tone } from './realtime.ts';

test('an utterance has the events of the protocol, in their order, with their fields', async () => {
  await using gateway = await startGateway({ transcribe: async () => heard(' Hello there.') });
  await using client = await connectLive(gateway);
  const created = await client.event('session.created');
  assert.match(created.event_id, /^event_/);
  assert.equal(created.session.type, 'transcription');
  assert.deepEqual(created.session.audio.input.format, { type: 'audio/pcm', rate: 24_000 });
  assert.deepEqual(created.session.audio.input.turn_detection, {
    ...{ type: 'server_vad', threshold: 0.5, prefix_padding_ms: 300, silence_duration_ms: 500 },
  });
  client.send(at16kHz({ transcription: { model: 'whisper-1', delay: 'xhigh' } }));
  const { session } = await client.event('session.updated');
  assert.equal(session.audio.input.transcription.model, 'whisper-1');
  client.speak(silence(1));
  client.speak(tone(1));
  client.speak(silence(1));
  const completed = await client.event(COMPLETED);
  assert.deepEqual(
    client.events.slice(2).map(({ type }) => type.replace('conversation.item.', '')),
    [
      ...['input_audio_buffer.speech_started', 'input_audio_buffer.speech_stopped'],
      ...['input_audio_buffer.committed', 'added', 'done'],
      ...['input_audio_transcription.delta', 'input_audio_transcription.completed'],
    ],
  );
  const [started, stopped, committed, added, , delta] = client.events.slice(2);
  const item = started?.item_id;
  assert.match(item, /^item_/);
  assert(Math.abs(started?.audio_start_ms - 700) <= 64, `${started?.audio_start_ms}: with the padding`);
  assert(Math.abs(stopped?.audio_end_ms - 2500) <= 64, `${stopped?.audio_end_ms}: with the silence`);
  assert.deepEqual([committed?.item_id, committed?.previous_item_id], [item, null]);
  assert.deepEqual([added?.item.id, added?.item.role], [item, 'user']);
  assert.deepEqual([delta?.item_id, delta?.content_index, delta?.delta], [item, 0, 'Hello there.']);
  assert.deepEqual(
    [completed.item_id, completed.content_index, completed.transcript, completed.languages],
    [item, 0, 'Hello there.', [{ code: 'en' }]],
  );
  assert.deepEqual(completed.usage, { type: 'duration', seconds: 2 });
  assert.equal(new Set(client.events.map(({ event_id }) => event_id)).size, client.events.length);
  client.speak(tone(1));
  client.speak(silence(1));
  assert.equal((await client.event('input_audio_buffer.committed', 2)).previous_item_id, item);
});

test('a client that ends its turns itself commits and clears, and an empty buffer is an error', async () => {
  await using gateway = await startGateway();
  await using client = await connectLive(gateway);
  client.send({ ...at16kHz({ turn_detection: null }), event_id: 'mine' });
  client.send({ type: 'input_audio_buffer.commit', event_id: 'early' });
  const { error } = await client.event('error');
  assert.deepEqual(
    [error.type, error.code, error.event_id],
    ['invalid_request_error', 'input_audio_buffer_commit_empty', 'early'],
  );
  client.speak(tone(1));
  client.send({ type: 'input_audio_buffer.append', audio: 'AA==' }); // half a sample
  client.send({ type: 'input_audio_buffer.clear' });
  await client.event('input_audio_buffer.cleared');
  client.speak(tone(2));
  client.send({ type: 'input_audio_buffer.commit' });
  const completed = await client.event(COMPLETED);
  assert.deepEqual([completed.transcript, completed.usage.seconds], ['Hello there.', 2]);
  assert(!client.events.some(({ type }) => type.includes('speech_')));
});

test('a commit ends what is said at the moment, also where it is too short to be found as speech', async () => {
  await using gateway = await startGateway();
  await using client = await connectLive(gateway);
  client.send(at16kHz());
  client.speak(silence(0.5));
  client.send({ type: 'input_audio_buffer.commit', event_id: 'silent' });
  assert.equal((await client.event('error')).error.event_id, 'silent');
  client.speak(tone(0.2));
  client.send({ type: 'input_audio_buffer.commit' });
  client.send({ type: 'input_audio_buffer.commit', event_id: 'second' });
  const { item_id } = await client.event('input_audio_buffer.committed');
  assert.equal((await client.event(COMPLETED)).item_id, item_id);
  assert.equal((await client.event('error', 2)).error.event_id, 'second');
  const longest = 'e'.repeat(512);
  client.send({ type: 'input_audio_buffer.commit', event_id: longest });
  assert.equal((await client.event('error', 3)).error.event_id, longest);
  client.send({ type: 'input_audio_buffer.commit', event_id: `${longest}e` });
  const { error } = await client.event('error', 4);
  assert.deepEqual([error.event_id, error.code, error.param], [null, 'invalid_value', 'event_id']);
  assert(!client.events.some(({ type }) => type.includes('speech_')));
});

test('a commit in which the silence ends the turn commits once', async () => {
  await using gateway = await startGateway();
  const WINDOW = 512;
  const spoken = new Float32Array(4 * 16_000);
  spoken.set(tone(1), 16_000);
  await using whole = await connectLive(gateway);
  whole.send(at16kHz());
  whole.speak(spoken);
  const { audio_end_ms } = await whole.event('input_audio_buffer.speech_stopped');
  const last = Math.round((audio_end_ms * 16) / WINDOW) - 1; // the window that completes the silence
  await using client = await connectLive(gateway);
  client.send(at16kHz());
  client.speak(spoken.subarray(0, last * WINDOW + 100));
  client.send({ type: 'input_audio_buffer.commit' });
  client.send({ type: 'input_audio_buffer.commit', event_id: 'second' });
  assert.equal((await client.event('error')).error.code, 'input_audio_buffer_commit_empty');
  await client.event(COMPLETED);
  assert.equal(client.events.filter(({ type }) => type === 'input_audio_buffer.committed').length, 1);
  const lines = () => gateway.exchanges.filter(({ audioSec }) => audioSec !== undefined);
  await until('they were observed', () => lines().length === 2);
  assert(lines().every(({ audioSec = 0 }) => audioSec > 1));
});

test('with a model of OpenAI that detects no turns the client commits, unless it asks for turns', async () => {
  await using gateway = await startGateway();
  const shown = ({ session }: Received) => session.audio.input.turn_detection;
  for (const model of [
    'gpt-realtime-whisper',
    'gpt-live-transcribe',
    'openai/gpt-live-transcribe-2026-01-31',
  ]) {
    await using client = await connectLive(gateway, { query: `?intent=transcription&model=${model}` });
    assert.equal(shown(await client.event('session.created')), null);
    client.send(at16kHz({ transcription: { model } })); // as LiveKit's agents, which then commit
    assert.equal(shown(await client.event('session.updated')), null);
    client.speak(tone(1));
    client.speak(silence(1));
    client.send({ type: 'input_audio_buffer.commit' });
    assert.equal((await client.event(COMPLETED)).usage.seconds, 2);
    assert(!client.events.some(({ type }) => type === 'error' || type.includes('speech_')));
    client.send(at16kHz({ turn_detection: { type: 'server_vad' } }));
    assert.equal(shown(await client.event('session.updated', 2)).silence_duration_ms, 500);
  }
  await using client = await connectLive(gateway);
  client.send(at16kHz({ transcription: { model: 'gpt-live-transcribe' } }));
  assert.equal(shown(await client.event('session.updated')), null);
  client.send(at16kHz({ transcription: { model: 'gpt-4o-transcribe' } }));
  assert.equal(shown(await client.event('session.updated', 2)).type, 'server_vad');
});

test('a flat detection of turns is the beta’s, and is not lost', async () => {
  await using gateway = await startGateway();
  await using client = await connectLive(gateway);
  client.send({ type: 'session.update', session: { type: 'transcription', turn_detection: null } });
  assert.equal((await client.event('transcription_session.updated')).session.turn_detection, null);
  client.send({ type: 'input_audio_buffer.append', audio: Buffer.alloc(48_000).toString('base64') });
  client.send({ type: 'input_audio_buffer.commit' });
  await client.event('input_audio_buffer.committed');
  await using mixed = await connectLive(gateway);
  const { session } = at16kHz({ transcription: { language: 'de' } });
  mixed.send({ type: 'session.update', session: { ...session, turn_detection: null } });
  const { input } = (await mixed.event('session.updated')).session.audio;
  assert.equal(input.transcription.language, 'de', 'a stray flat field loses nothing');
});

test('a page names the beta as a subprotocol, as OpenAI’s client for browsers does', async () => {
  await using gateway = await startGateway();
  const protocols = ['realtime', 'openai-insecure-api-key.none', 'openai-beta.realtime-v1'];
  await using client = await connectLive(gateway, { protocols });
  await client.event('transcription_session.created');
});

test('the beta of the protocol has its own names and flat fields', async () => {
  await using gateway = await startGateway();
  await using client = await connectLive(gateway, { headers: { 'OpenAI-Beta': 'realtime=v1' } });
  await client.event('transcription_session.created');
  client.send({
    type: 'transcription_session.update',
    session: {
      input_audio_format: 'pcm16',
      input_audio_transcription: { model: 'gpt-4o-transcribe', language: 'en', prompt: '' },
      input_audio_noise_reduction: { type: 'near_field' },
      turn_detection: { type: 'server_vad', silence_duration_ms: 200 },
      include: ['item.input_audio_transcription.logprobs'],
    },
  });
  const { session } = await client.event('transcription_session.updated');
  assert.deepEqual([session.input_audio_format, session.turn_detection.silence_duration_ms], ['pcm16', 200]);
  client.speak(tone(1.5)); // 24 kHz: one second
  client.speak(silence(1.5));
  assert.equal((await client.event(COMPLETED)).logprobs.length, 2);
  await client.event('conversation.item.created');
});

test('telephony is heard at 8 kHz in both laws', async () => {
  await using gateway = await startGateway();
  for (const [type, loud, quiet] of [
    ['audio/pcmu', [0x80, 0x00], 0xff],
    ['audio/pcma', [0xaa, 0x2a], 0xd5],
  ] as const) {
    await using client = await connectLive(gateway);
    client.send({
      type: 'session.update',
      session: { audio: { input: { format: { type } } } },
    });
    const square = Uint8Array.from({ length: 8000 }, (_, i) => loud[(i >> 3) & 1] as number);
    const still = new Uint8Array(8000).fill(quiet);
    for (const part of [square, still]) {
      const audio = Buffer.from(part).toString('base64');
      client.send({ type: 'input_audio_buffer.append', audio });
    }
    assert.equal((await client.event(COMPLETED)).transcript, 'Hello there.', type);
  }
});

test('words that stay the same are sent while the speaker goes on, and are never taken back', async () => {
  let calls = 0;
  await using gateway = await startGateway({
    transcribe: async () => {
      calls += 1;
      return heard(calls === 1 ? ' One too' : ' One two three four five six.');
    },
  });
  await using client = await connectLive(gateway);
  client.send(at16kHz({ transcription: { delay: 'minimal' } }));
  const wasSent = () => client.events.some(({ type }) => type === DELTA);
  for (let i = 0; i < 250 && !wasSent(); i += 1) {
    client.send(append(tone(0.1)));
    await sleep(20); // people speak on meanwhile, if not as fast
  }
  const early = await client.event(DELTA);
  assert(!client.events.some(({ type }) => type === 'input_audio_buffer.speech_stopped'), 'while one speaks');
  assert.match(early.delta, /^One/);
  client.speak(silence(1));
  const { transcript } = await client.event(COMPLETED);
  const deltas = client.events.filter(({ type }) => type === DELTA).map(({ delta }) => delta);
  assert.equal(transcript, 'One two three four five six.');
  assert.equal(deltas.join(''), transcript);
});

test('the soonest words are sought more often until the first one was sent', async () => {
  const heardSec: number[] = [];
  await using gateway = await startGateway({
    transcribe: async (samples) => {
      heardSec.push(samples.length / 16_000);
      return heard(` ${heardSec.length < 4 ? `Once${heardSec.length}` : 'One'} two three.`);
    },
  });
  await using client = await connectLive(gateway);
  client.send(at16kHz({ transcription: { delay: 'minimal' } }));
  const wasSent = () => client.events.some(({ type }) => type === DELTA);
  let before = 0;
  for (let i = 0; i < 250 && (before === 0 || heardSec.length < before + 3); i += 1) {
    client.send(append(tone(0.032)));
    await sleep(20);
    if (before === 0 && wasSent()) before = heardSec.length;
  }
  const newMs = heardSec.slice(1).map((sec, i) => Math.round(1000 * (sec - (heardSec[i] as number))));
  // A machine that is busy takes longer, and never less.
  assert.equal(Math.min(...newMs.slice(0, before - 1)), 128, String(newMs));
  assert(Math.min(...newMs.slice(before)) >= 200, `fewer after the first ${before}: ${newMs}`);
});

test('settings that cannot be are an error event with the field, and change nothing', async () => {
  await using gateway = await startGateway();
  await using client = await connectLive(gateway);
  const bad: [object, string][] = [
    [
      { audio: { input: { turn_detection: { type: 'semantic_vad' } } } },
      'session.audio.input.turn_detection',
    ],
    [{ audio: { input: { format: { type: 'audio/pcm', rate: 96_000 } } } }, 'session.audio.input.format'],
    [{ audio: { input: { transcription: { model: 'nonsense' } } } }, 'model'],
    [{ audio: { input: { transcription: { language: 'klingon' } } } }, 'language'],
    [{ include: ['everything'] }, 'include'],
  ];
  for (const [i, [session, param]] of bad.entries()) {
    client.send({ type: 'session.update', event_id: `bad ${i}`, session });
    const { error } = await client.event('error', i + 1);
    assert.equal(error.event_id, `bad ${i}`);
    assert(error.param.startsWith(param), `${error.param} for ${JSON.stringify(session)}`);
  }
  client.send({ type: 'session.update', session: {} });
  assert.equal((await client.event('session.updated')).session.audio.input.transcription, null);
});

test('a session that transcribes has no conversation, and no third type there is', async () => {
  await using gateway = await startGateway();
  await using client = await connectLive(gateway, { query: '?intent=transcription&model=gpt-realtime' });
  client.send({ type: 'session.update', event_id: 'bad', session: { type: 'translation' } });
  const { error } = await client.event('error');
  assert.deepEqual([error.event_id, error.param, error.code], ['bad', 'session.type', 'invalid_value']);
  assert.match(error.message, /"translation": Expected transcription, realtime/);
  for (const [i, type] of ['response.create', 'conversation.item.create', 'response.cancel'].entries()) {
    client.send({ type, event_id: type });
    const wrong = (await client.event('error', i + 2)).error;
    assert.deepEqual([wrong.event_id, wrong.code, wrong.param], [type, 'unknown_event', 'type']);
  }
  assert(!client.events.some(({ type }) => type.endsWith('.updated')));
  client.send(at16kHz());
  client.speak(tone(1));
  client.speak(silence(1));
  assert.equal((await client.event(COMPLETED)).transcript, 'Hello there.');
  client.send({ type: 'session.update', session: { type: 'realtime' } });
  assert.equal((await client.event('error', 5)).error.param, 'session.type', 'not after something was heard');
});

test('each utterance is a line of the access log and of the metrics, and the connection is no request', async () => {
  await using gateway = await startGateway();
  await using client = await connectLive(gateway);
  client.send(at16kHz());
  client.speak(tone(1));
  client.speak(silence(1));
  const { item_id } = await client.event(COMPLETED);
  const [utterance] = gateway.exchanges;
  assert.equal(utterance?.requestId, item_id);
  assert.deepEqual(
    [utterance?.category, utterance?.path, utterance?.status, utterance?.model, utterance?.language],
    ['asr', '/v1/realtime', 200, 'multilingual-base', 'en'],
  );
  client.socket.close();
  await until('the connection is over', () => gateway.exchanges.length === 2);
  assert.deepEqual([gateway.exchanges[1]?.status, gateway.exchanges[1]?.category], [101, undefined]);
  assert.equal(gateway.app.slot.status().holder, null);
});

test('a text of speech that goes on is decoded once, however doubtful it is, and the final one as files are', async () => {
  const calls: boolean[] = [];
  await using gateway = await startGateway({
    transcribe: async (_samples, { times }) => {
      calls.push(times);
      return heard(' Hello there.').map((segment) => ({
        ...segment,
        tokens: segment.tokens.map((token) => ({ ...token, logprob: -2 })),
      }));
    },
  });
  await using client = await connectLive(gateway);
  client.send(at16kHz({ transcription: { delay: 'minimal' } }));
  for (let i = 0; calls.length < 3; i += 1) {
    assert(i < 100, 'no text of speech that goes on');
    client.speak(tone(0.25));
    await sleep(100);
  }
  assert(calls.every((times) => !times));
  client.speak(silence(1));
  await client.event(COMPLETED);
  assert(calls.some((times) => times));
});

test('speech has as much silence before it as in a file, whatever prefix the client wants', async () => {
  const leads: number[] = [];
  await using gateway = await startGateway({
    transcribe: async (samples) => {
      leads.push(samples.findIndex((sample) => sample !== 0));
      return heard(' Hello there.');
    },
  });
  const all = new Float32Array(3 * 16_000);
  all.set(tone(1), 16_000);
  await (await post(gateway, form(wav(all)))).text();
  const [inFile = 0] = leads.splice(0);
  assert(inFile > 5000, `${inFile}`);
  for (const prefix_padding_ms of [0, 300]) {
    await using client = await connectLive(gateway);
    client.send(
      at16kHz({
        transcription: { delay: 'xhigh' },
        turn_detection: { type: 'server_vad', prefix_padding_ms },
      }),
    );
    client.speak(all);
    await client.event(COMPLETED);
    for (const lead of leads.splice(0))
      assert(Math.abs(lead - inFile) <= 512, `${lead} samples, ${inFile} in a file`);
  }
});

test('a word behind the cut in speech without a pause is heard', async () => {
  await using gateway = await startGateway();
  await using client = await connectLive(gateway);
  client.send(at16kHz({ turn_detection: { type: 'server_vad' } }));
  const windows = (count: number) => tone((count * 512) / 16_000);
  for (const part of [windows(870), silence(512 / 16_000), windows(7), silence(1)]) client.speak(part);
  const texts = [await client.event(COMPLETED), await client.event(COMPLETED, 2)];
  assert.deepEqual(
    texts.map(({ transcript }) => transcript),
    ['Hello there.', 'Hello there.'],
  );
});

test('the times of turns are those of all audio that was sent, also after commits and clears', async () => {
  await using gateway = await startGateway();
  await using client = await connectLive(gateway);
  client.send(at16kHz({ turn_detection: null }));
  for (let i = 0; i < 20; i += 1) {
    client.speak(tone(0.11));
    client.send({ type: i % 2 === 0 ? 'input_audio_buffer.commit' : 'input_audio_buffer.clear' });
  }
  client.send(at16kHz({ turn_detection: { type: 'server_vad', prefix_padding_ms: 0 } }));
  client.speak(silence(1));
  client.speak(tone(1));
  client.speak(silence(1));
  const { audio_start_ms } = await client.event('input_audio_buffer.speech_started');
  assert(Math.abs(audio_start_ms - (20 * 110 + 1000)) <= 64, `${audio_start_ms}`);
});

test('a tenth of a second can be committed at every rate', async () => {
  await using gateway = await startGateway();
  for (const rate of [8000, 12_000, 16_000, 24_000, 44_100, 48_000]) {
    await using client = await connectLive(gateway);
    const format = { type: 'audio/pcm', rate };
    const input = { format, turn_detection: null };
    client.send({ type: 'session.update', session: { type: 'transcription', audio: { input } } });
    const audio = Buffer.alloc((2 * rate) / 10, 1).toString('base64');
    client.send({ type: 'input_audio_buffer.append', audio });
    client.send({ type: 'input_audio_buffer.commit' });
    await client.event('input_audio_buffer.committed');
  }
});

test('models for settings that change are loaded one at a time, and of those that wait the newest', async () => {
  const sizes = ['tiny', 'small', 'medium', 'large-v3'];
  const begun: string[] = [];
  const loaded: (() => void)[] = [];
  await using gateway = await startGateway({
    installed: ['voice-activity', ...['base', ...sizes].map((size) => `multilingual-${size}`)],
    async loadModel({ path }) {
      begun.push(path);
      await new Promise<void>((resolve) => loaded.push(resolve));
      throw new Error('nobody needs it');
    },
  });
  await using client = await connectLive(gateway);
  client.speak(silence(1));
  await until('a model is loaded', () => loaded.length === 1);
  for (const size of sizes) client.send(at16kHz({ transcription: { model: `multilingual-${size}` } }));
  await client.event('session.updated', sizes.length);
  assert.equal(loaded.length, 1);
  loaded[0]?.();
  await until('the next model is loaded', () => loaded.length === 2);
  loaded[1]?.();
  assert.deepEqual(begun, ['/nowhere/multilingual-small', '/nowhere/multilingual-large-v3']);
});
