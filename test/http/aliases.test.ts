/** A name of the settings (`SVC_MODEL_ALIASES`) does what it stands for, also where that is more than its weights. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { conversation, inTurns, scriptedVoices } from '../voices.ts';
import { wav } from '../wav.ts';
import { form, type Gateway, heard, json, post, startGateway } from './harness.ts';
import { at16kHz, COMPLETED, connectLive, silence } from './realtime.ts';
import { connectWyoming } from './wyoming.ts';

const ALIASES = [
  'who=gpt-4o-transcribe-diarize',
  'which=gpt-transcribe',
  'waits=gpt-live-transcribe',
  'gpt-4o-transcribe-diarize-2027-01-01=multilingual-tiny',
];
/** Two speakers, one after the other. */
const SPOKEN = conversation(inTurns(2, 8), 8);
const WORDS = Array.from({ length: 16 }, (_, i) => ` w${i}${i === 15 ? '.' : ''}`).join('');

const withAliases = () =>
  startGateway({
    speakers: scriptedVoices(),
    transcribe: async () => heard(WORDS, 500),
    env: { SVC_MODEL_ALIASES: ALIASES.join(','), SVC_WYOMING_PORT: '0' },
  });

const transcribe = async (gateway: Gateway, fields: Record<string, string>) =>
  json(await post(gateway, form(wav(SPOKEN), fields)));

test('an alias of the model that tells speakers apart does so, and one of its name changes the weights only', async () => {
  await using gateway = await withAliases();
  for (const [model, used] of [
    ['gpt-4o-transcribe-diarize', 'multilingual-base'],
    ['who', 'multilingual-base'],
    ['gpt-4o-transcribe-diarize-2027-01-01', 'multilingual-tiny'],
  ] as const) {
    const { segments } = await transcribe(gateway, { model, response_format: 'verbose_json' });
    const speakers = segments.map(({ speaker }: { speaker?: string }) => speaker);
    assert.deepEqual([...new Set(speakers)], ['A', 'B'], model);
    assert.equal(gateway.exchanges.at(-1)?.model, used);
  }
  const body = new FormData();
  body.set('audio_file', new Blob([wav(SPOKEN)]));
  const asr = await fetch(`${gateway.base}/asr?model=who&output=json`, { method: 'POST', body });
  assert.equal((await json(asr)).segments.at(-1).speaker, 'B');
});

test('an alias of the model that lists languages does so', async () => {
  await using gateway = await withAliases();
  for (const model of ['gpt-transcribe', 'which'])
    assert.equal((await transcribe(gateway, { model })).languages.length, 1, model);
  assert.equal((await transcribe(gateway, { model: 'who' })).languages, undefined);
});

test('a live session tells speakers apart with an alias, and waits for commits with another', async () => {
  await using gateway = await withAliases();
  await using client = await connectLive(gateway, { query: '?intent=transcription&model=who' });
  client.send(at16kHz({ transcription: { delay: 'xhigh' } }));
  client.speak(SPOKEN);
  client.speak(silence(1));
  await client.event(COMPLETED);
  assert(client.events.some(({ type, speaker }) => type.endsWith('.segment') && speaker === 'B'));

  const shown = ({ session }: any) => session.audio.input.turn_detection;
  await using waiting = await connectLive(gateway, { query: '?intent=transcription&model=waits' });
  assert.equal(shown(await waiting.event('session.created')), null);
  waiting.send(at16kHz({ transcription: { model: 'who' } }));
  assert.equal(shown(await waiting.event('session.updated')).type, 'server_vad');
  const secret = await fetch(`${gateway.base}/v1/realtime/client_secrets`, {
    method: 'POST',
    body: JSON.stringify({ session: { audio: { input: { transcription: { model: 'waits' } } } } }),
  });
  assert.equal(shown(await json(secret)), null);
});

test('Wyoming takes an alias', async () => {
  await using gateway = await withAliases();
  await using client = await connectWyoming(gateway);
  client.send('transcribe', { name: 'who' });
  client.say(SPOKEN);
  assert.equal((await client.event('transcript')).text, WORDS.trim());
});
