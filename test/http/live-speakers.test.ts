/** Who says what in a live session: the events, labels that stay, and a session without the model for it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conversation, type Said, scriptedVoices } from '../voices.ts';
import { heard, json, type Script, startGateway, until } from './harness.ts';
import { at16kHz, COMPLETED, connectLive, silence } from './realtime.ts';

const SEGMENT = 'conversation.item.input_audio_transcription.segment';
const DIARIZE = { transcription: { model: 'gpt-4o-transcribe-diarize', delay: 'xhigh' } };

/** One word for each half second of the audio. */
const words = (samples: Float32Array) => {
  const count = Math.ceil(samples.length / 8000);
  return heard(Array.from({ length: count }, (_, i) => ` w${i}${i === count - 1 ? '.' : ''}`).join(''), 500);
};
const withSpeakers = (script: Script = {}) =>
  startGateway({ speakers: scriptedVoices(), transcribe: async (samples) => words(samples), ...script });

/** What one utterance is made of: the speaker and the seconds, one after the other. */
const said = (...turns: [speaker: number, seconds: number][]) => {
  let at = 0;
  const spoken: Said[] = turns.map(([speaker, seconds]) => {
    const start = at;
    at += seconds;
    return { speaker, start, end: at };
  });
  return conversation(spoken, at);
};

test('each utterance has segments with who says them, before it is completed, and labels stay over the session', async () => {
  await using gateway = await withSpeakers();
  await using client = await connectLive(gateway);
  client.send(at16kHz(DIARIZE));
  const { session } = await client.event('session.updated');
  assert.equal(session.warnings, undefined);
  let sent = 0;
  const starts: number[] = [];
  for (const utterance of [said([0, 4]), said([1, 4]), said([0, 3]), said([1, 3], [0, 4]), said([1, 3])]) {
    starts.push(sent / 16_000);
    client.speak(utterance);
    client.speak(silence(1));
    sent += utterance.length + 16_000;
  }
  await client.event(COMPLETED, 5);
  const items = client.events.filter(({ type }) => type === COMPLETED).map(({ item_id }) => item_id);
  const segments = client.events.filter(({ type }) => type === SEGMENT);
  const of = (item: string) => segments.filter(({ item_id }) => item_id === item);
  assert.deepEqual(
    items.map((item) => of(item).map(({ speaker }) => speaker)),
    [['A'], ['B'], ['A'], ['B', 'A'], ['B']],
  );
  assert.deepEqual(Object.keys(segments[0] ?? {}).sort(), [
    ...['content_index', 'end', 'event_id', 'id', 'item_id', 'speaker', 'start', 'text', 'type'],
  ]);
  assert.deepEqual(
    segments.map(({ id, content_index }) => [id, content_index]),
    [1, 2, 3, 4, 5, 6].map((number) => [`seg_00${number}`, 0]),
  );
  for (const [i, item] of items.entries()) {
    const begin = of(item)[0]?.start;
    assert(Math.abs(begin - (starts[i] ?? 0)) < 0.7, `${i} begins at ${begin}, not ${starts[i]}`);
    const completed = client.events.findIndex(({ type, item_id }) => type === COMPLETED && item_id === item);
    const last = client.events.findLastIndex(({ type, item_id }) => type === SEGMENT && item_id === item);
    assert(last < completed, 'the segments come first');
    const text = of(item)
      .map((segment) => segment.text)
      .join(' ');
    assert.equal(text, client.events[completed]?.transcript);
  }
  assert.equal(gateway.app.slot.status().holder, null);
});

test('the field diarize asks for speakers with any model, and turns them off with that of OpenAI', async () => {
  await using gateway = await withSpeakers();
  for (const [transcription, expected] of [
    [{ model: 'whisper-1', diarize: true }, ['A']],
    [{ model: 'gpt-4o-transcribe-diarize', diarize: false }, []],
    [{ model: 'whisper-1' }, []],
  ] as const) {
    await using client = await connectLive(gateway);
    client.send(at16kHz({ transcription }));
    client.speak(said([0, 3]));
    client.speak(silence(1));
    await client.event(COMPLETED);
    const segments = client.events.filter(({ type }) => type === SEGMENT);
    assert.deepEqual(
      segments.map(({ speaker }) => speaker),
      expected,
    );
  }
});

test('without the model for it the session has the text, no speakers, and a warning that says so', async () => {
  await using gateway = await startGateway();
  const query = '?model=gpt-4o-transcribe-diarize';
  await using client = await connectLive(gateway, { query });
  for (const type of ['created', 'updated']) {
    if (type === 'updated') client.send(at16kHz());
    const { session } = await client.event(`session.${type}`);
    assert.equal(session.warnings.length, 1, type);
    assert.equal(session.warnings[0].code, 'speakers_unavailable');
    assert.match(session.warnings[0].message, /voxgate models pull diarization/);
  }
  client.speak(said([0, 2]));
  client.speak(silence(1));
  assert.equal((await client.event(COMPLETED)).transcript, 'Hello there.');
  assert(!client.events.some(({ type }) => type === SEGMENT || type === 'error'));
  assert(!gateway.loads.includes('diarization'));
  client.send(at16kHz({ transcription: { model: 'whisper-1' } }));
  assert.equal((await client.event('session.updated', 2)).session.warnings, undefined);
  const secret = await fetch(`${gateway.base}/v1/realtime/client_secrets`, {
    method: 'POST',
    body: JSON.stringify({ session: { audio: { input: DIARIZE } } }),
  });
  assert.equal((await json(secret)).session.warnings[0].code, 'speakers_unavailable');
});

test('where the speakers of an utterance cannot be told, that is an error, its text comes, and the session goes on', async () => {
  const voices = scriptedVoices();
  let isBroken = true;
  await using gateway = await withSpeakers({
    speakers: {
      ...voices,
      segmentation: (...args) => {
        if (isBroken) throw new Error('no speakers now');
        return voices.segmentation(...args);
      },
    },
  });
  await using client = await connectLive(gateway);
  client.send(at16kHz(DIARIZE));
  client.speak(said([0, 3]));
  client.speak(silence(1));
  await client.event(COMPLETED);
  assert.equal(client.events.filter(({ type }) => type === 'error').length, 1);
  isBroken = false;
  client.speak(said([0, 3]));
  client.speak(silence(1));
  await client.event(COMPLETED, 2);
  assert.deepEqual(
    client.events.filter(({ type }) => type === SEGMENT).map(({ speaker }) => speaker),
    ['A'],
  );
});

test('a client that leaves while speakers are told apart frees the slot', async () => {
  let began: () => void = () => undefined;
  const hasBegun = new Promise<void>((resolve) => {
    began = resolve;
  });
  await using gateway = await withSpeakers({
    speakers: {
      ...scriptedVoices(),
      segmentation: (_samples, _options, hooks) =>
        new Promise((_resolve, reject) => {
          began();
          hooks?.signal?.addEventListener('abort', () => reject(hooks.signal?.reason));
        }),
    },
  });
  const client = await connectLive(gateway);
  client.send(at16kHz(DIARIZE));
  client.speak(said([0, 3]));
  client.speak(silence(1));
  await hasBegun;
  assert.equal(gateway.app.slot.status().holder, 'asr');
  client.socket.terminate();
  await until('the slot is free', () => gateway.app.slot.status().holder === null);
});
