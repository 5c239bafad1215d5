/** The language of a recording is that of most of its words. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLanguageTally } from '../../src/transcription/language-tally.ts';

const french = { language: 'fr', probability: 0.9 };
const untold = { language: 'en', probability: 0 };

test('the language of most words counts, with its highest probability', () => {
  const tally = createLanguageTally(undefined);
  tally.add({ language: 'de', probability: 1 }, 30);
  tally.add(french, 20);
  tally.add({ language: 'fr', probability: 0.8 }, 20);
  assert.deepEqual(tally.most(), { language: 'fr', languageProbability: 0.9 });
});

test('without words the last detected language counts, else the given one, else English with probability 0', () => {
  assert.deepEqual(createLanguageTally(undefined).most(), { language: 'en', languageProbability: 0 });
  assert.deepEqual(createLanguageTally('de').most(), { language: 'de', languageProbability: 1 });
  const tally = createLanguageTally(undefined);
  tally.add(french, 0);
  assert.deepEqual(tally.most(), { language: 'fr', languageProbability: 0.9 });
});

test('words without a known language do not outweigh those whose language is known', () => {
  const tally = createLanguageTally(undefined);
  tally.add(untold, 100);
  assert.deepEqual(tally.most(), { language: 'en', languageProbability: 0 });
  tally.add(french, 20);
  tally.add(untold, 100);
  assert.deepEqual(tally.most(), { language: 'fr', languageProbability: 0.9 });
});
