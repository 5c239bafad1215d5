/** The spellings in which models look for a keyword. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { spellingsOf } from '../../src/transcription/keywords.ts';

test('a keyword is looked for as written, in lower case and with a capital, once each', () => {
  assert.deepEqual(spellingsOf(['Voxgate', 'iPhone', 'élan vital', '3M']), [
    'Voxgate',
    'voxgate',
    'iPhone',
    'iphone',
    'IPhone',
    'élan vital',
    'Élan vital',
    '3M',
    '3m',
  ]);
  assert.deepEqual(spellingsOf(['你好', '你好']), ['你好']);
});

test('keywords have the form of vocabularies, and those without letters and digits are left out', () => {
  assert.deepEqual(spellingsOf([' new\t york\n', 'ｶﾀ', 'e\u0301']), [
    'new york',
    'New york',
    'カタ',
    'é',
    'É',
  ]);
  assert.deepEqual(spellingsOf(['', '  ', '…', '▁', '\ufdfa'.repeat(200)]), []);
});

test('a list of any keywords has no more spellings, and none of more bytes, than the engine takes', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary', maxLength: 100 }), { maxLength: 100 }), (keywords) => {
      const spellings = spellingsOf(keywords);
      assert(spellings.length <= 300);
      for (const text of spellings) assert(Buffer.byteLength(text) <= 600 && text === text.trim());
    }),
  );
});
