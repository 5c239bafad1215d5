/** As test/model/generated-sounds.test.ts, with all sounds that are made by formulas. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { generatedSounds } from '../../bench/silence/sound-clips.ts';
import { form, json } from '../http/harness.ts';
import { MODEL, needsWeights, startRealGateway } from '../model/gateway.ts';
import { wav } from '../wav.ts';

/** One creak of a door sounds like a vowel to both models. */
const MOST_WITH_TEXT = 3;

test(`of hundreds of sounds no more than ${MOST_WITH_TEXT} give text`, async (t) => {
  if (!needsWeights(t)) return;
  await using gateway = await startRealGateway();
  const sounds = generatedSounds();
  assert(sounds.length > 300);
  const texts: string[] = [];
  for (const [i, { name, samples }] of sounds.entries()) {
    const language = i % 2 === 0 ? 'auto' : 'en'; // by turns, as each takes half a second
    const body = form(wav(samples()), { model: MODEL, language });
    const response = await fetch(`${gateway.base}/v1/audio/transcriptions`, { method: 'POST', body });
    const { text } = await json(response);
    if (text !== '') texts.push(`${name}, ${language}: ${text}`);
  }
  assert(texts.length <= MOST_WITH_TEXT, texts.join('\n'));
});
