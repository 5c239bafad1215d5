/** The syllables of a text tell whether it can be all that was said. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countSyllables, isFarTooShort, isShort } from '../../src/transcription/speech/speech-rate.ts';

test('syllables are counted in every script, near enough to compare with time', () => {
  const cases: [string, number][] = [
    ['Ask not what your country can do for you.', 10],
    ['Bienvenido al directorio.', 9],
    ['Après le bip sonore', 7],
    ['Нажмите один, чтобы включить', 9],
    ['Καλημέρα', 4],
    ['日本語です', 5],
    ['안녕하세요', 5],
    ['brr', 1],
    ['2 4 6', 4.5],
    ['', 0],
    ['...!', 0],
    ['\u0301 \u0301', 1],
  ];
  for (const [text, syllables] of cases) assert.equal(countSyllables(text), syllables, text);
  assert(countSyllables('नमस्ते दुनिया') > 3 && countSyllables('السلام عليكم') > 3);
});

test('speech at 3 to 8 syllables a second has all of its text, and half of it does not', () => {
  const sentence = 'Ask not what your country can do for you, ask what you can do for your country.';
  const syllables = countSyllables(sentence);
  for (const rate of [3.5, 5, 8]) {
    assert(!isShort(sentence, syllables / rate), String(rate));
    assert(!isFarTooShort(sentence, syllables / rate), String(rate));
  }
  assert(isShort(sentence, (2 * syllables) / 6));
  assert(isFarTooShort(sentence, (4 * syllables) / 6));
});

test('a text of any characters is counted in a moment', () => {
  for (const text of ['a', 'б', '日', '1', ' ', '\u0301', '\ud800', 'ạ̈'].map((c) => c.repeat(100_000))) {
    const startedAt = performance.now();
    countSyllables(text);
    assert(performance.now() - startedAt < 500);
  }
});
