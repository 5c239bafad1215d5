/** Who speaks far away, right after someone at the microphone, is heard as if he were alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { form, json } from '../http/harness.ts';
import { readSpeech } from '../native/fixtures.ts';
import { wav } from '../wav.ts';
import { MODEL, needsWeights, plain, startRealGateway } from './gateway.ts';

const WORDS =
  'fellow americans ask not what your country can do for you ask what you can do for your country';

test('a voice 32, 38 and 42 dB softer than the one before it is written', async (t) => {
  if (!needsWeights(t)) return;
  const near = await readSpeech();
  const both = new Float32Array(2 * near.length + 16_000);
  both.set(near);
  await using gateway = await startRealGateway();
  for (const decibels of [32, 38, 42]) {
    both.set(near.map((sample) => sample * 10 ** (-decibels / 20)), near.length + 16_000); // biome-ignore format: one line
    const body = form(wav(both), { model: MODEL, language: 'en' });
    const answer = await json(
      await fetch(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', body }),
    );
    assert.equal(plain(answer.text).split(WORDS).length - 1, 2, `${decibels} dB: ${answer.text}`);
  }
});

test('soft speech on the offset of a cheap microphone is written', async (t) => {
  if (!needsWeights(t)) return;
  const speech = await readSpeech();
  await using gateway = await startRealGateway();
  const body = form(wav(speech.map((sample) => 0.03 * sample + 0.37)), { model: MODEL, language: 'en' });
  const answer = await json(await fetch(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', body }));
  assert(plain(answer.text).includes(WORDS), answer.text);
});
