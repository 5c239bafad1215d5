/** Real speech over a live session has the words of the same clip as a file, and some of them before its end. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text as allText } from 'node:stream/consumers';
import { test } from 'node:test';
import { TURN_DETECTION } from '../../src/models/catalogue.ts';
import { form } from '../http/harness.ts';
import { append, at16kHz, COMPLETED, connectLive, DELTA, silence } from '../http/realtime.ts';
import { wav } from '../wav.ts';
import { JFK_TEXT, MODEL, needsWeights, plain, startRealGateway } from './gateway.ts';
import { samplesOfJfk } from './jfk.ts';

test('a clip that is heard live has the words of the same clip as a file', async (t) => {
  if (!needsWeights(t)) return;
  await using gateway = await startRealGateway();
  const samples = Float32Array.from([...samplesOfJfk(), ...silence(1)]);
  const body = form(wav(samplesOfJfk()), {
    model: MODEL,
    language: 'en',
    'chunking_strategy[silence_duration_ms]': '1500',
    'chunking_strategy[type]': 'server_vad',
  });
  const file = await fetch(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', body });
  const { text } = (await file.json()) as { text: string };
  await using client = await connectLive(gateway);
  const turn_detection = { type: 'server_vad', silence_duration_ms: 1500 };
  client.send(at16kHz({ transcription: { model: MODEL, language: 'en', delay: 'minimal' }, turn_detection }));
  for (let at = 0; at < samples.length; at += 8000) {
    client.send(append(samples.subarray(at, at + 8000)));
    // Faster than speech, but with time for texts of what was said so far.
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  client.speak(silence(1));
  const { transcript } = await client.event(COMPLETED);
  assert.equal(plain(transcript), plain(text));
  const deltas = client.events.filter(({ type }) => type === DELTA).map(({ delta }) => delta);
  assert(plain(deltas.join('')) !== '');
});

test('semantic_vad ends the turns of a clip where they are complete, and none in a pause within', async (t) => {
  if (!needsWeights(t, TURN_DETECTION.id)) return;
  await using gateway = await startRealGateway();
  const samples = Float32Array.from([...samplesOfJfk(), ...silence(1)]);
  const ends = async (turn_detection: object, count: number) => {
    await using client = await connectLive(gateway);
    client.send(at16kHz({ transcription: { model: MODEL, language: 'en' }, turn_detection }));
    await client.event('session.updated');
    for (let at = 0; at < samples.length; at += 8000) client.send(append(samples.subarray(at, at + 8000)));
    await client.event(COMPLETED, count);
    const texts = client.events.filter(({ type }) => type === COMPLETED).map(({ transcript }) => transcript);
    assert.equal(plain(texts.join(' ')), plain(JFK_TEXT));
    const stopped = client.events.filter(({ type }) => type === 'input_audio_buffer.speech_stopped');
    return stopped.map(({ audio_end_ms }) => audio_end_ms);
  };
  // The pauses after "Americans", "ask not", "for you" and "country" end turns by their length alone.
  const byLength = await ends({ type: 'server_vad', silence_duration_ms: 200 }, 4);
  const [first = 0, , , last = 0] = byLength;
  assert.equal(byLength.length, 4, String(byLength));
  const byModel = await ends({ type: 'semantic_vad' }, 2);
  assert.equal(byModel.length, 2, String(byModel));
  for (const [i, end] of [first, last].entries())
    assert(Math.abs((byModel[i] ?? 0) - end) < 100, `${byModel} and ${byLength}`);
});

test('voxgate live writes what a clip says, one line for each utterance', async (t) => {
  if (!needsWeights(t)) return;
  await using gateway = await startRealGateway();
  const args = ['dist/main.js', 'live', '-', '--url', gateway.base, '--model', MODEL, '--language', 'en'];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  child.stdin.end(wav(samplesOfJfk()));
  const printed = await allText(child.stdout);
  assert.deepEqual(await ended, [0, null]);
  assert.equal(plain(printed), plain(JFK_TEXT));
  assert(printed.endsWith('\n') && !printed.includes('\n\n'), JSON.stringify(printed));
});
