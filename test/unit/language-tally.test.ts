/** The language of a recording is that of most of its words. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLanguageTally } from '../../src/transcription/language/tally.ts';

const french = { language: 'fr', probability: 0.9 };
const untold = { language: 'en', probability: 0 };

test('the language of most words counts, with its highest probability', () => {
  const tally = createLanguageTally(undefined)
    .with({ language: 'de', probability: 1 }, 30)
    .with(french, 20)
    .with({ language: 'fr', probability: 0.8 }, 20);
  assert.deepEqual(tally.most(), { language: 'fr', languageProbability: 0.9 });
});

test('without words the last detected language counts, else the given one, else English with probability 0', () => {
  assert.deepEqual(createLanguageTally(undefined).most(), { language: 'en', languageProbability: 0 });
  assert.deepEqual(createLanguageTally('de').most(), { language: 'de', languageProbability: 1 });
  assert.deepEqual(createLanguageTally(undefined).with(french, 0).most(), {
    language: 'fr',
    languageProbability: 0.9,
  });
});

test('words without a known language do not outweigh those whose language is known', () => {
  const tally = createLanguageTally(undefined).with(untold, 100);
  assert.deepEqual(tally.most(), { language: 'en', languageProbability: 0 });
  assert.deepEqual(tally.with(french, 20).with(untold, 100).most(), {
    language: 'fr',
    languageProbability: 0.9,
  });
});

test('a language has a larger share the more of the speech is in it, and a small one after few words', () => {
  const none = createLanguageTally('de');
  assert.deepEqual([none.share('de'), none.last], [0, null], 'what the client gave was not heard');
  const little = none.with(french, 2);
  const much = little.with(french, 100);
  assert(little.share('fr') > 0 && little.share('fr') < 0.5, `${little.share('fr')}`);
  assert(much.share('fr') > 0.9 && much.share('fr') < 1, `${much.share('fr')}`);
  const both = much.with({ language: 'de', probability: 1 }, 102);
  assert.equal(both.share('fr'), both.share('de'));
  assert.deepEqual([both.last?.language, much.last?.language], ['de', 'fr']);
  assert.equal(much.share('de'), 0, 'a tally does not change');
});
