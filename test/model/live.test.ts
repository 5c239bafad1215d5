/** Real speech over a live session has the words of the same clip as a file, and some of them before its end. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { form } from '../http/harness.ts';
import { append, at16kHz, COMPLETED, connectLive, DELTA, silence } from '../http/realtime.ts';
import { wav } from '../wav.ts';
import { JFK, MODEL, needsWeights, plain, startRealGateway } from './gateway.ts';

test('a clip that is heard live has the words of the same clip as a file', async (t) => {
  if (!needsWeights(t)) return;
  await using gateway = await startRealGateway();
  const raw = execFileSync('ffmpeg', [
    '-v',
    'error',
    '-i',
    JFK,
    '-f',
    's16le',
    '-ac',
    '1',
    '-ar',
    '16000',
    '-',
  ]);
  const pcm = new Int16Array(
    raw.buffer.slice(raw.byteOffset, raw.byteOffset + 2 * Math.floor(raw.length / 2)),
  );
  const samples = Float32Array.from([...pcm.map((s) => s), ...silence(1)], (s) => s / 32_768);
  const body = form(wav(pcm), {
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
